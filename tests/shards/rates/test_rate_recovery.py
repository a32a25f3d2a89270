"""What shards remember for a home that starts anew."""

from shards.limits.rate import Window
from shards.rates.rate_recovery import WAIT_FOR_USE_MS, RateRecovery, RecentUse


class Desk:
    """A memory, what it posted and what it resumed with."""

    def __init__(self, me=0, shards=3, homes=None, configured=True):
        self.posted, self.resumed = [], []
        homes = homes or {}
        self.recovery = RateRecovery(
            me, shards, lambda key: homes.get(key, 0), lambda peer, item: self.posted.append((peer, item)), self.resume
        )
        if configured:
            self.recovery.configured(now_ms=0)

    def resume(self, entries, now_ms):
        self.resumed.append(entries)


def test_recent_keeps_as_long_as_a_window_counts():
    recent = RecentUse(Window(2, 1000))
    recent.add("a", 1, now_ms=1000)
    recent.add("a", 2, now_ms=1999)
    recent.add("b", 1, now_ms=2500)
    assert recent.entries(now_ms=2600) == [(2000, "a", 3), (2600, "b", 1)]
    assert recent.entries(now_ms=5500) == [(3000, "b", 1)]


def test_a_home_decides_when_all_have_told():
    desk = Desk()
    for peer in (1, 2):
        desk.recovery.peer_up(peer)
    assert desk.posted == [(1, ("ask_use", 1, "")), (2, ("ask_use", 1, ""))]
    desk.recovery.receive_use(1, 50, 1, False, [[30, "ip:a", 2]])
    desk.recovery.receive_use(1, 50, 1, True, [[10, "ip:a", 1]])
    assert desk.resumed == []
    desk.recovery.receive_use(2, 50, 1, True, [])
    assert desk.resumed == [[(10, "ip:a", 1), (30, "ip:a", 2)]]


def test_it_waits_neither_for_the_dead_nor_for_ever():
    desk = Desk()
    desk.recovery.peer_up(1)
    desk.recovery.peer_lost(1)
    desk.recovery.peer_dead(1, now_ms=10)
    desk.recovery.tick(now_ms=20)
    assert desk.resumed == []
    desk.recovery.tick(now_ms=20 + WAIT_FOR_USE_MS)
    assert desk.resumed == [[]]


def test_a_peer_whose_links_broke_is_asked_again_when_they_are_up():
    desk = Desk(shards=2)
    desk.recovery.peer_up(1)
    desk.recovery.peer_lost(1)
    assert desk.resumed == [], "it lives, and knows what it used"
    desk.recovery.peer_up(1)
    assert desk.posted == [(1, ("ask_use", 1, ""))] * 2
    desk.recovery.receive_use(1, 50, 1, True, [[10, "ip:a", 1]])
    assert desk.resumed == [[(10, "ip:a", 1)]]


def test_an_answer_to_an_earlier_question_is_not_taken():
    desk = Desk(shards=2)
    desk.recovery.peer_up(1)
    desk.recovery.receive_use(1, 0, 1, True, [])
    desk.recovery.ask_for_listeners(now_ms=10)
    desk.recovery.receive_use(1, 20, 1, True, [[5, "listener:A", 9]])
    assert len(desk.resumed) == 1
    desk.recovery.receive_use(1, 20, 2, True, [[5, "listener:A", 1]])
    assert desk.resumed[1] == [(5, "listener:A", 1)]


def test_each_home_hears_of_its_own_keys_and_of_what_it_used_itself():
    desk = Desk(me=1, homes={"ip:a": 0, "ip:b": 2})
    for peer in (0, 2):
        desk.recovery.peer_up(peer)
    desk.posted.clear()
    desk.recovery.record_use("ip:a", 1, 0, now_ms=1000)
    desk.recovery.record_use("ip:b", 5, 2, now_ms=1000)
    desk.recovery.receive_backup(0, 1000, "ip:a", 7)
    desk.recovery.send_use(0, 1500, 1, "")
    assert desk.posted == [(0, ("use", 1, True, [(1500, "ip:a", 1), (1500, "ip:a", 7)]))]


def test_what_a_home_uses_itself_is_told_to_another_once_a_pass():
    desk = Desk()
    desk.recovery.peer_up(2)
    desk.posted.clear()
    for _ in range(3):
        desk.recovery.record_use("ip:a", 1, 0, now_ms=1000)
    desk.recovery.flush()
    desk.recovery.flush()
    assert desk.posted == [(2, ("backup", "ip:a", 3))]


def test_a_rate_switched_on_is_told_what_came_without_it_and_not_twice():
    desk = Desk(shards=2, homes={"listener:A": 0})
    desk.recovery.peer_up(1)
    desk.recovery.receive_use(1, 0, 1, True, [])
    desk.recovery.note_unrecorded(
        "listener:A", 1000, count=True, now_ms=900
    )  # what there was before counts for nothing
    desk.recovery.note_unrecorded("listener:A", 1005, count=True, now_ms=1000)
    desk.recovery.ask_for_listeners(now_ms=1100)
    desk.recovery.receive_use(1, 1100, 2, True, [])
    assert desk.resumed[-1] == [(1100, "listener:A", 5)]
    other = Desk(me=1, shards=2)
    other.recovery.receive_backup(0, 1000, "listener:A", 5)
    other.recovery.send_use(0, 1100, 2, "listener:")
    assert other.posted == [(0, ("use", 2, True, []))]


def test_nothing_is_decided_before_the_windows_have_their_shape():
    desk = Desk(shards=2, configured=False)
    desk.recovery.peer_up(1)
    desk.recovery.receive_use(1, 50, 1, True, [[30, "ip:a", 2]])
    assert desk.resumed == []
    desk.recovery.start(Window(3, 1000))
    desk.recovery.configured(now_ms=60)
    assert desk.resumed == [[(30, "ip:a", 2)]]
