"""peers.py: sessions, one message per pass, gives that add up, and who has applied what."""

from typing import Any

from shards.tokens.peers import NEVER, Peers


def make_peers(shards: int = 3, *up: int) -> Peers:
    peers = Peers(0, shards, epoch=5)
    for peer in up:
        peers.up(peer, 10 + peer)
    return peers


def flushed(peers: Peers) -> list[tuple[int, Any]]:
    sent: list[tuple[int, Any]] = []
    peers.flush(lambda peer, message: sent.append((peer, message)))
    return sent


def test_all_items_of_a_pass_are_one_message_per_peer() -> None:
    peers = make_peers(3, 1, 2)
    peers.post(1, ("sync", 1))
    peers.post(2, ("sync", 1))
    peers.post(1, ("probe", 1))
    assert flushed(peers) == [(1, (11, [("sync", 1), ("probe", 1)])), (2, (12, [("sync", 1)]))]
    assert flushed(peers) == []


def test_the_session_is_the_higher_epoch_so_both_sides_agree() -> None:
    here, there = Peers(0, 2, epoch=5), Peers(1, 2, epoch=7)
    here.up(1, 7)
    there.up(0, 5)
    here.post(1, ("sync", 1))
    [(_, message)] = flushed(here)
    assert there.fresh(0, message)


def test_a_message_of_an_earlier_incarnation_is_not_fresh() -> None:
    here = make_peers(2, 1)
    assert here.fresh(1, (11, []))
    here.dead(1)
    assert not here.fresh(1, (11, []))
    here.up(1, 20)
    assert not here.fresh(1, (11, []))
    assert here.fresh(1, (20, []))


def test_nothing_is_kept_for_a_peer_that_is_not_up() -> None:
    peers = make_peers(3)
    peers.post(1, ("sync", 1))
    peers.give(1, "broker", 1)
    peers.up(1, 9)
    assert flushed(peers) == []
    peers.post(1, ("sync", 1))
    peers.dead(1)
    peers.up(1, 12)
    assert flushed(peers) == []


def test_the_gives_of_a_pass_add_up() -> None:
    peers = make_peers(3, 1)
    for _ in range(3):
        peers.give(1, "broker", 1)
    peers.post(1, ("probed", 1))
    peers.give(1, "broker", 2)
    assert flushed(peers) == [(1, (11, [("give", "broker", 5), ("probed", 1)]))]
    peers.give(1, "broker", 1)
    assert flushed(peers) == [(1, (11, [("give", "broker", 1)]))]


def test_what_is_given_of_reported_tokens_comes_after_the_report() -> None:
    peers = make_peers(3, 1)
    peers.give(1, "broker", 1)
    peers.report(1, "broker", 2)
    peers.give(1, "broker", 2)
    assert flushed(peers)[0][1][1] == [("give", "broker", 1), ("report", "broker", 2), ("give", "broker", 2)]


def test_a_message_has_a_bounded_number_of_items() -> None:
    peers = make_peers(2, 1)
    for number in range(5000):
        peers.report(1, f"ip:{number}", 1)
    lengths = [len(message[1]) for _, message in flushed(peers)]
    assert sum(lengths) == 5000 and max(lengths) <= 2048


def test_items_for_this_shard_stay_here() -> None:
    peers = make_peers(2, 1)
    peers.post(0, ("grant", "broker", 1, True, 1))
    assert list(peers.local) == [("grant", "broker", 1, True, 1)]
    assert flushed(peers) == []


def test_the_floor_is_what_every_live_peer_has_applied() -> None:
    peers = make_peers(3)
    assert peers.applied_everywhere == NEVER  # no peer is known
    peers.up(1, 11)
    peers.up(2, 12)
    peers.note_applied(1, 4)
    assert peers.applied_everywhere == NEVER
    peers.note_applied(2, 3)
    assert peers.applied_everywhere == 3
    peers.dead(2)
    assert peers.applied_everywhere == 4
    peers.up(2, 20)
    assert peers.applied_everywhere == NEVER


def test_a_lone_shard_agrees_with_itself() -> None:
    assert Peers(0, 1, epoch=1).have_confirmed(99)


def test_a_version_is_agreed_when_all_have_it_and_know_that_we_have() -> None:
    peers = make_peers(3, 1, 2)
    for peer in (1, 2):
        peers.note_applied(peer, 7)
    assert not peers.have_confirmed(7)
    peers.confirmed[1] = peers.confirmed[2] = 7
    assert peers.have_confirmed(7) and not peers.have_confirmed(8)


def test_a_link_that_ends_while_it_is_written_to_does_no_harm() -> None:
    peers = make_peers(3, 1, 2)
    peers.post_all(("sync", 1))
    sent: list[int] = []

    def send(peer: int, message: object) -> None:
        sent.append(peer)
        peers.dead(2)

    peers.flush(send)
    assert sent == [1]
