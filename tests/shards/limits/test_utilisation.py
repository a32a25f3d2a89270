"""utilisation.py: shares of limits, and the fullest of many that are looked at in turns."""

import math

from hypothesis import given
from hypothesis import strategies as st

from shards.limits.utilisation import HIGH_FROM, CloseLimits, Fullest, Level, level, utilisation

SHARES = st.one_of(st.floats(0, 2), st.sampled_from([0.0, 0.8, 0.9, 1.0, math.inf]))


def test_a_limit_of_zero_is_always_reached() -> None:
    assert utilisation(0, 0) == 1.0 and math.isinf(utilisation(1, 0))
    assert [level(used, 10) for used in (7, 8, 9, 10)] == [Level.ROOMY, Level.HIGH, Level.NEAR, Level.FULL]


@given(st.lists(SHARES, max_size=60), st.integers(1, 8))
def test_a_turn_keeps_the_fullest_and_counts_every_one(shares: list[float], most: int) -> None:
    seen: Fullest[int] = Fullest(most)
    for number, share in enumerate(shares):
        if share >= HIGH_FROM or share > seen.floor:
            seen.look(number, share)
        else:
            seen.pass_over(1)
    seen.end_turn()
    kept = seen.limits()
    assert len(kept) == len(set(kept)) == min(most, len(shares))
    assert [shares[each] for each in kept] == sorted(shares, reverse=True)[:most]
    counts = [sum(share >= least for share in shares) for least in (0.8, 0.9, 1.0)]
    assert seen.close == CloseLimits(*counts, len(shares))


@given(st.lists(SHARES, max_size=30), st.lists(SHARES, max_size=30), st.integers(1, 8))
def test_a_turn_under_way_adds_to_the_last_one_and_replaces_its_counts_at_its_end(
    before: list[float], now: list[float], most: int
) -> None:
    seen: Fullest[int] = Fullest(most)
    for number, share in enumerate(before):
        seen.look(number, share)
    seen.end_turn()
    counted = seen.close
    for number, share in enumerate(now):
        seen.look(1000 + number, share)
    assert seen.close == counted, "of the last whole turn"
    every = [*before, *now]
    assert [before[each] if each < 1000 else now[each - 1000] for each in seen.limits()] == sorted(every, reverse=True)[
        :most
    ]
    seen.end_turn()
    assert seen.close.limits == len(now)
