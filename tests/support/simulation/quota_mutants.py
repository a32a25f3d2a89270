"""Client quotas broken on purpose, one guard at a time: each mutant must violate an invariant within ENOUGH schedules.

The oracle has to see it: the parts' own check() is off. Not here: an update that failed is not made again. On a link that lives
it arrives all the same, and when a link comes up everything is sent; only a call that found no room on its link is lost.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from simulation.oracle import Violation
from simulation.quota_schedule import QuotaSchedule

from shards.limits.rate import Rate
from shards.quotas import away_homes, sharded_quotas
from shards.quotas.away_homes import STALE_AFTER_MS, AwayHomes
from shards.quotas.charge_history import ChargeHistory, CurvePart, MeterKey, Recorded
from shards.quotas.history_replication import HistoryReplication
from shards.quotas.replication_queue import ReplicationQueue
from shards.quotas.sharded_quotas import NOTHING_RECORDED, ShardedQuotas

ENOUGH = 200


class Mutant(NamedTuple):
    """A member of a class or module that is another one; `invariant`: the name of the one that it violates."""

    name: str
    of: Any
    member: str
    other: Any
    invariant: str


_decide_all, _merge, _since, _mark_away = (
    ShardedQuotas._decide_all,
    ChargeHistory.merge,
    ChargeHistory.since,
    AwayHomes.mark_away,
)


def accepts_what_no_home_answers(quotas: ShardedQuotas, charges: list[Any]) -> None:
    for waiting in charges:
        waiting.answer.resolve(NOTHING_RECORDED)


def decides_by_an_empty_meter(
    quotas: ShardedQuotas, place: MeterKey, amount: float, *, at_ms: int, now_ms: int
) -> None:
    return


def waits_for_an_answer(homes: AwayHomes[Any], *, now_ms: int) -> list[Any]:
    return []


def loses_what_was_asked(homes: AwayHomes[Any], shard: int) -> list[Any]:
    _mark_away(homes, shard)
    return []


def counts_twice(history: ChargeHistory, row: CurvePart) -> list[Recorded]:
    news = _merge(history, row)
    return news + news


def counts_again_what_comes_again(history: ChargeHistory, row: CurvePart) -> list[Recorded]:
    _merge(history, row)
    pairs = zip(row.points, row.points[1:], strict=False)
    return [Recorded(row.key, point.at_ms, point.total - last.total) for last, point in pairs]


def sends_the_last_point_alone(history: ChargeHistory, key: MeterKey, number: int) -> Iterator[CurvePart]:
    for row in _since(history, key, number):
        yield row._replace(points=row.points[-2:])


def sends_a_new_shard_nothing(queue: ReplicationQueue, shard: int, keys: Any) -> None:
    other = queue._others[shard]
    other.is_under_way, other.needs_all = False, True


def publishes_nothing(replication: HistoryReplication, key: MeterKey, *, now_ms: int) -> None:
    return


def drops_what_is_told_late(rate: Rate, amount: float, *, at_ms: int, now_ms: int) -> None:
    if at_ms >= max(rate._last, default=at_ms):
        rate.charge(amount, None, now_ms=at_ms)


def knows_no_predecessor(quotas: ShardedQuotas) -> None:
    return


def stands_in_before_it_was_told(quotas: ShardedQuotas, charges: list[Any]) -> None:
    awaited, quotas._awaited = quotas._awaited, set()
    _decide_all(quotas, charges)
    quotas._awaited = awaited


def decides_what_was_asked_after_it(homes: AwayHomes[Any], asker: int, asked_ms: int, *, now_ms: int) -> bool:
    return now_ms - asked_ms >= STALE_AFTER_MS


MUTANTS = (
    Mutant(
        "accepts_what_no_home_answers", ShardedQuotas, "_decide_all", accepts_what_no_home_answers, "never_unlimited"
    ),
    Mutant("decides_by_an_empty_meter", ShardedQuotas, "insert", decides_by_an_empty_meter, "knows_the_others"),
    Mutant("waits_for_an_answer", AwayHomes, "overdue", waits_for_an_answer, "bounded_wait"),
    Mutant("loses_what_was_asked", AwayHomes, "mark_away", loses_what_was_asked, "bounded_wait"),
    Mutant("counts_twice", ChargeHistory, "merge", counts_twice, "counted"),
    Mutant("counts_again_what_comes_again", ChargeHistory, "merge", counts_again_what_comes_again, "counted"),
    Mutant("decides_what_is_stale", away_homes, "STALE_AFTER_MS", 10**9, "counted"),
    Mutant("decides_what_was_asked_after_it", AwayHomes, "is_stale", decides_what_was_asked_after_it, "counted"),
    Mutant("sends_the_last_point_alone", ChargeHistory, "since", sends_the_last_point_alone, "knows_the_others"),
    Mutant(
        "sends_a_new_shard_nothing", ReplicationQueue, "add_everything", sends_a_new_shard_nothing, "knows_the_others"
    ),
    Mutant("publishes_nothing", HistoryReplication, "publish", publishes_nothing, "knows_the_others"),
    Mutant("keeps_a_window_to_itself", sharded_quotas, "UNTOLD_SHARE", 0.5, "knows_the_others"),
    Mutant("drops_what_is_told_late", Rate, "insert", drops_what_is_told_late, "knows_the_others"),
    Mutant("knows_no_predecessor", ShardedQuotas, "await_peers", knows_no_predecessor, "knows_the_others"),
    Mutant(
        "stands_in_before_it_was_told", ShardedQuotas, "_decide_all", stands_in_before_it_was_told, "knows_the_others"
    ),
)

SEEN = {
    "accepts_what_no_home_answers": 3,
    "decides_by_an_empty_meter": 3,
    "waits_for_an_answer": 3,
    "loses_what_was_asked": 3,
    "counts_twice": 1,
    "counts_again_what_comes_again": 1,
    "decides_what_is_stale": 3,
    "decides_what_was_asked_after_it": 5,
    "sends_the_last_point_alone": 7,
    "sends_a_new_shard_nothing": 8,
    "publishes_nothing": 3,
    "keeps_a_window_to_itself": 3,
    "drops_what_is_told_late": 5,
    "knows_no_predecessor": 17,
    "stands_in_before_it_was_told": 17,
}
"""Where each mutant is seen first, as `run.py --of quotas --mutants` prints it: so the tests need one schedule each."""


def seed_that_sees(mutant: Mutant, seeds: range = range(ENOUGH)) -> int | None:
    """The first seed whose schedule violates the mutant's invariant; None: it survives."""
    with _broken(mutant):
        return next((seed for seed in seeds if what_fails(seed) == mutant.invariant), None)


def what_fails(seed: int) -> str:
    """The invariant that a schedule violates first; "": all held."""
    try:
        QuotaSchedule(seed).run()
    except Violation as violation:
        return str(violation).partition(":")[0]
    return ""


def _no_check(part: object) -> None:
    return


@contextmanager
def _broken(mutant: Mutant) -> Iterator[None]:
    changes: list[tuple[Any, str, Callable[..., Any]]] = [
        (mutant.of, mutant.member, mutant.other), (AwayHomes, "check", _no_check), (ChargeHistory, "check", _no_check),
    ]  # fmt: skip
    originals = [(of, name, vars(of)[name]) for of, name, _ in changes if name in vars(of)]
    try:
        for of, name, other in changes:
            setattr(of, name, other)
        yield
    finally:
        for of, name, _ in changes:
            if not any(of is each and name == told for each, told, _ in originals):
                delattr(of, name)
        for of, name, original in originals:
            setattr(of, name, original)
