"""fullest_pools.py: the addresses closest to their caps, seen in the sweep."""

import pytest

from shards.limits.caps import OBSERVED, CapRule
from shards.limits.utilisation import CloseLimits
from shards.tokens.fullest_pools import FEW, MOST
from shards.tokens.pool import Pool
from shards.tokens.tokens import ADMITTED, Tokens

CAP = 10
TURN_S = 5


class Waiter:
    def decided(self, decision: object) -> None:
        assert decision is ADMITTED


def make_tokens(use: dict[str, int]) -> Tokens:
    tokens = Tokens(
        0, 1, epoch=1, send=lambda peer, message: None, rule_of=lambda pool: CapRule(CAP, "a cap"), ttl_s=2 * TURN_S
    )
    for key, number in use.items():
        for _ in range(number):
            tokens.take((key,), Waiter())
    tokens.flush()
    return tokens


def test_all_of_a_few_are_seen_as_they_are() -> None:
    tokens = make_tokens(
        {"ip:10.0.0.1": 9, "ip:10.0.0.2": 10, "ip:10.0.0.3": 1, "broker": 10, f"{OBSERVED}ip:10.0.0.1": 10}
    )
    assert tokens.fullest.addresses() == ["10.0.0.2", "10.0.0.1", "10.0.0.3"]
    assert tokens.fullest.close() == CloseLimits(high=2, near=2, full=1, limits=3)
    tokens.release(("ip:10.0.0.2",))
    assert tokens.fullest.close().full == 0


def sweep(tokens: Tokens, turns: int, at_s: float) -> float:
    for _ in range(turns * 4 * TURN_S):
        at_s += 0.25
        tokens.tick(at_s)
        tokens.flush()
    return at_s


@pytest.fixture
def many() -> Tokens:
    """More pools than a question may look at."""
    use = {f"ip:10.0.{n // 250}.{n % 250}": 1 + n % 7 for n in range(FEW + 1)}
    return make_tokens(use | {"ip:10.9.0.1": 10, "ip:10.9.0.2": 9, "ip:10.9.0.3": 8})


def test_the_sweep_finds_the_fullest_of_many(many: Tokens) -> None:
    assert many.fullest.addresses() == [], "none was looked at yet"
    sweep(many, 3, 0.0)
    assert many.fullest.addresses()[:3] == ["10.9.0.1", "10.9.0.2", "10.9.0.3"]
    assert len(many.fullest.addresses()) == MOST
    assert many.fullest.close() == CloseLimits(high=3, near=2, full=1, limits=FEW + 4)


def test_what_was_given_back_is_forgotten_after_two_turns(many: Tokens) -> None:
    at_s = sweep(many, 3, 0.0)
    for _ in range(CAP):
        many.release(("ip:10.9.0.1",))
    many.flush()
    sweep(many, 2, at_s)
    assert "10.9.0.1" not in many.fullest.addresses()
    assert many.fullest.close() == CloseLimits(high=2, near=1, full=0, limits=FEW + 3)


def test_no_question_looks_at_every_pool_of_many(many: Tokens, monkeypatch: pytest.MonkeyPatch) -> None:
    def looked(turn: object, pool: Pool) -> None:
        raise AssertionError("a question walks the pools")

    monkeypatch.setattr("shards.tokens.fullest_pools._look", looked)
    many.fullest.addresses()
    many.fullest.close()
