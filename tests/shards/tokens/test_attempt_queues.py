"""attempt_queues.py: queues by pool, tickets that rise, and which attempts the home knows of."""

from shards.tokens.attempt_queues import Attempt, AttemptQueues
from shards.tokens.pool import Admitted, Refused


class Nobody:
    def decided(self, decision: Admitted | Refused) -> None:
        raise AssertionError("nobody asked")


def join(queues: AttemptQueues, *pools: str, index: int = 0, at_once: bool = False) -> Attempt:
    attempt = Attempt(pools, Nobody(), at_once=at_once)
    queues.join(attempt, index)
    return attempt


def test_an_attempt_waits_for_the_first_pool_of_which_it_has_no_token() -> None:
    attempt = join(AttemptQueues(), "broker", "listener:A", "ip:10.0.0.1", index=1)
    assert attempt.key == "listener:A" and attempt.taken == ("broker",)


def test_first_come_first_served() -> None:
    queues = AttemptQueues()
    first, second = join(queues, "broker"), join(queues, "broker")
    assert [queues.pop("broker"), queues.pop("broker"), queues.pop("broker")] == [first, second, None]
    assert "broker" not in queues


def test_a_ticket_that_was_not_spoken_for_stays() -> None:
    queues = AttemptQueues()
    first, second = join(queues, "broker"), join(queues, "broker")
    assert queues.pop_up_to("broker", first.ticket, at_once=False) == [first]
    assert queues.pop_up_to("broker", first.ticket, at_once=False) == []
    assert queues.pop_up_to("broker", second.ticket, at_once=False) == [second]
    assert "broker" not in queues


def test_an_attempt_that_waits_keeps_its_place_where_others_are_refused_at_once() -> None:
    queues = AttemptQueues()
    waiting = [join(queues, "broker"), join(queues, "broker")]
    late = join(queues, "broker", at_once=True)
    waiting.append(join(queues, "broker"))
    later = join(queues, "broker", at_once=True)
    assert queues.ask("broker") == [(2, 1, 2, False), (1, 3, 3, True), (1, 4, 4, False), (1, 5, 5, True)]
    queues.check()
    assert queues.pop_up_to("broker", 4, at_once=True) == [late]
    queues.check()
    assert list(queues) == [*waiting, later]


def test_everybody_new_is_asked_for_at_once_and_only_once() -> None:
    queues = AttemptQueues()
    join(queues, "broker")
    assert queues.take_unasked() == ["broker"] and not queues.unasked
    assert queues.ask("broker") == [(1, 1, 1, False)]
    join(queues, "ip:10.0.0.1")
    join(queues, "broker")
    join(queues, "broker")
    assert queues.ask("broker") == [(2, 3, 4, False)]
    assert queues.ask("broker") == []
    queues.check()


def test_a_home_that_died_is_asked_again_for_everybody() -> None:
    queues = AttemptQueues()
    attempts = [join(queues, "broker"), join(queues, "broker")]
    queues.take_unasked()
    queues.ask("broker")
    attempts[0].deadline_s = 5.0
    queues.forget(["broker"])
    assert queues.take_unasked() == ["broker"]
    assert queues.ask("broker") == [(2, 1, 2, False)]
    assert attempts[0].deadline_s is None


def test_an_attempt_that_leaves_is_not_asked_for() -> None:
    queues = AttemptQueues()
    queues.leave(join(queues, "broker"))
    assert queues.take_unasked() == ["broker"]
    assert queues.ask("broker") == []
    assert list(queues) == [] and queues.pools() == []
