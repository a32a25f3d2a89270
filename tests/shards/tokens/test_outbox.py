"""outbox.py: sessions, one message per pass, and gives that add up."""

from typing import Any

from shards.tokens.outbox import Outbox


def make_outbox(*up: int) -> Outbox:
    outbox = Outbox(0, epoch=5)
    for peer in up:
        outbox.open(peer, 10 + peer)
    return outbox


def flushed(outbox: Outbox) -> list[tuple[int, Any]]:
    sent: list[tuple[int, Any]] = []
    outbox.flush(lambda peer, message: sent.append((peer, message)))
    return sent


def test_all_items_of_a_pass_are_one_message_per_peer() -> None:
    outbox = make_outbox(1, 2)
    outbox.post(1, ("sync", 1))
    outbox.post(2, ("sync", 1))
    outbox.post(1, ("probe", 1))
    assert flushed(outbox) == [(1, (11, [("sync", 1), ("probe", 1)])), (2, (12, [("sync", 1)]))]
    assert flushed(outbox) == []


def test_the_session_is_the_higher_epoch_so_both_sides_agree() -> None:
    here, there = Outbox(0, epoch=5), Outbox(1, epoch=7)
    here.open(1, 7)
    there.open(0, 5)
    here.post(1, ("sync", 1))
    [(_, message)] = flushed(here)
    assert there.is_of_session(0, message)


def test_a_message_of_an_earlier_incarnation_is_of_another_session() -> None:
    here = make_outbox(1)
    assert here.is_of_session(1, (11, []))
    here.close(1)
    assert not here.is_of_session(1, (11, []))
    here.open(1, 20)
    assert not here.is_of_session(1, (11, []))
    assert here.is_of_session(1, (20, []))


def test_nothing_is_kept_for_a_peer_that_is_not_up() -> None:
    outbox = make_outbox()
    outbox.post(1, ("sync", 1))
    outbox.give(1, "broker", 1)
    outbox.open(1, 9)
    assert flushed(outbox) == []
    outbox.post(1, ("sync", 1))
    outbox.close(1)
    outbox.open(1, 12)
    assert flushed(outbox) == []


def test_the_gives_of_a_pass_add_up() -> None:
    outbox = make_outbox(1)
    for _ in range(3):
        outbox.give(1, "broker", 1)
    outbox.post(1, ("probed", 1))
    outbox.give(1, "broker", 2)
    assert flushed(outbox) == [(1, (11, [("give", "broker", 5), ("probed", 1)]))]
    outbox.give(1, "broker", 1)
    assert flushed(outbox) == [(1, (11, [("give", "broker", 1)]))]


def test_reported_tokens_are_given_after_the_report() -> None:
    outbox = make_outbox(1)
    outbox.give(1, "broker", 1)
    outbox.report(1, "broker", 2)
    outbox.give(1, "broker", 2)
    assert flushed(outbox)[0][1][1] == [("give", "broker", 1), ("report", "broker", 2), ("give", "broker", 2)]


def test_a_message_has_a_bounded_number_of_items() -> None:
    outbox = make_outbox(1)
    for number in range(5000):
        outbox.report(1, f"ip:{number}", 1)
    lengths = [len(message[1]) for _, message in flushed(outbox)]
    assert sum(lengths) == 5000 and max(lengths) <= 2048


def test_items_for_this_shard_stay_here() -> None:
    outbox = make_outbox(1)
    outbox.post(0, ("grant", "broker", 1, True, 1))
    assert list(outbox.local) == [("grant", "broker", 1, True, 1)]
    assert flushed(outbox) == []


def test_a_link_that_ends_while_it_is_written_to_does_no_harm() -> None:
    outbox = make_outbox(1, 2)
    outbox.post_all(("sync", 1))
    sent: list[int] = []

    def send(peer: int, message: object) -> None:
        sent.append(peer)
        outbox.close(2)

    outbox.flush(send)
    assert sent == [1]
