"""attempts.py: queues by pool, tickets that rise, and which attempts the home knows of."""

from shards.tokens.attempts import Attempt, Queues
from shards.tokens.pool import Admitted, Refused


class Nobody:
    def decided(self, decision: Admitted | Refused) -> None:
        raise AssertionError("nobody asked")


def join(queues: Queues, *pools: str, index: int = 0) -> Attempt:
    attempt = Attempt(pools, Nobody())
    queues.join(attempt, index)
    return attempt


def test_an_attempt_waits_for_the_first_pool_of_which_it_has_no_token() -> None:
    attempt = join(Queues(), "broker", "listener:A", "ip:10.0.0.1", index=1)
    assert attempt.key == "listener:A" and attempt.taken == ("broker",)


def test_first_come_first_served() -> None:
    queues = Queues()
    first, second = join(queues, "broker"), join(queues, "broker")
    assert [queues.pop("broker"), queues.pop("broker"), queues.pop("broker")] == [first, second, None]
    assert "broker" not in queues


def test_a_ticket_that_was_not_spoken_for_stays() -> None:
    queues = Queues()
    first, second = join(queues, "broker"), join(queues, "broker")
    assert queues.pop("broker", first.ticket) is first
    assert queues.pop("broker", first.ticket) is None
    assert queues.pop("broker", second.ticket) is second


def test_everybody_new_is_asked_for_at_once_and_only_once() -> None:
    queues = Queues()
    join(queues, "broker")
    assert queues.take_unasked() == ["broker"] and not queues.unasked
    assert queues.ask("broker") == (1, 1, 1)
    join(queues, "ip:10.0.0.1")
    join(queues, "broker")
    join(queues, "broker")
    assert queues.ask("broker") == (2, 3, 4)
    assert queues.ask("broker") == (0, 0, 0)
    queues.check()


def test_a_home_that_died_is_asked_again_for_everybody() -> None:
    queues = Queues()
    attempts = [join(queues, "broker"), join(queues, "broker")]
    queues.take_unasked()
    queues.ask("broker")
    attempts[0].deadline_s = 5.0
    queues.forget(["broker"])
    assert queues.take_unasked() == ["broker"]
    assert queues.ask("broker") == (2, 1, 2)
    assert attempts[0].deadline_s is None


def test_who_leaves_is_not_asked_for() -> None:
    queues = Queues()
    queues.leave(join(queues, "broker"))
    assert queues.take_unasked() == ["broker"]
    assert queues.ask("broker") == (0, 0, 0)
    assert list(queues) == [] and queues.pools() == []
