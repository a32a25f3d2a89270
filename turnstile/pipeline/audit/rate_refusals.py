"""Checks that every refusal by a rate was right: that rate was violated, or used up.

rate_was_violated_at_a_refusal  At a refusal by the rate of an address or of the cluster, its home had found it violated since
    the connection arrived.
second_of_the_core_was_used_up  At a refusal by the rate of a core, that shard had let a whole second's worth of connections
    pass within a second.

Both allow for everything that the journal may not show, as refusal_checks.py does.
"""

from bisect import bisect_right
from collections.abc import Sequence
from functools import partial

import numpy
import pyarrow
import pyarrow.compute

from broker.journal.schema import BEFORE_ARRIVAL
from shards.limits.caps import CLUSTER
from turnstile.pipeline.audit.moves import RATE
from turnstile.pipeline.audit.refusal_names import ASKED, CLUSTER_RATE, FOUND, INCARNATION, held_ns
from turnstile.pipeline.audit.unseen import SLACK_NS, Unseen
from turnstile.pipeline.audit.whole_cluster import of_cluster
from turnstile.pipeline.events import arrays
from turnstile.pipeline.events.rows import Rows

SECOND_NS = 1_000_000_000


def _asked(reason: str, table: pyarrow.Table, *, with_others: bool = False) -> pyarrow.Table:
    """ASKED: the refusals for a reason; `with_others`: and everything else that came, with no reason."""
    is_it = arrays.is_one_of(table, "reason", (reason,)) & arrays.is_one_of(table, "kind", ("refused",))
    picked = is_it | ~arrays.is_one_of(table, "reason", (BEFORE_ARRIVAL,)) if with_others else is_it
    mine = table.filter(pyarrow.array(picked))
    at_ns = arrays.numbers(mine, "mono_ns")
    said = numpy.array([None, reason], dtype=object)[is_it[picked].astype("i8")]
    same = {name: mine[name] for name in (*INCARNATION, "conn", "ip", "limit", "limit_value", "version")}
    return arrays.table_of(ASKED, at_ns=at_ns, arrived_ns=at_ns - held_ns(mine), reason=said, **same)


# ---- rate_was_violated_at_a_refusal


def without_violated_rate(refused: Rows, moves: Rows, unseen: Unseen, reason: str, of: str = "") -> pyarrow.Table:
    """FOUND: refusals by the rate of an address, of a user or of the cluster that its home had not found violated. `refused`:
    DECISIONS, whose `ip` is whose rate it is; of that of the cluster, what is found has none. `of`: before the names of keys."""
    prefix = of + (CLUSTER if reason == CLUSTER_RATE else f"{reason.removesuffix('_rate')}:")
    asked = refused.each(partial(_asked, reason), ASKED).and_(moves.each(partial(_violated, prefix), ASKED))
    if reason == CLUSTER_RATE:
        asked = asked.each(_of_no_address, ASKED)
    return asked.by(("broker", "ip"), partial(without_violation, unseen), FOUND).table()


def _of_no_address(table: pyarrow.Table) -> pyarrow.Table:
    ip = pyarrow.array([""] * table.num_rows, pyarrow.string())
    return of_cluster(table).set_column(table.column_names.index("ip"), ASKED.field("ip"), ip)


def _violated(prefix: str, table: pyarrow.Table) -> pyarrow.Table:
    """ASKED: when homes found rates of keys that begin with `prefix` violated, of moves.MOVES."""
    mine = table.filter(
        pyarrow.compute.and_(table["is_violated"], pyarrow.array(arrays.is_one_of(table, "what", (RATE,))))
    )
    mine = mine.filter(pyarrow.compute.starts_with(mine["pool"], prefix))
    blank = {
        field.name: pyarrow.nulls(mine.num_rows, field.type)
        for field in ASKED
        if field.name not in (*INCARNATION, "ip", "at_ns", "arrived_ns")
    }
    ip = pyarrow.compute.utf8_slice_codeunits(mine["pool"], len(prefix))
    same = {name: mine[name] for name in INCARNATION}
    return arrays.table_of(ASKED, ip=ip, at_ns=mine["at_ns"], arrived_ns=mine["at_ns"], **same, **blank)


def without_violation(unseen: Unseen, table: pyarrow.Table) -> pyarrow.Table:
    """FOUND: refusals by an address's rate that its home had not found violated since the connection arrived."""
    is_refusal = arrays.present(table, "reason")
    at_ns, arrived_ns = arrays.numbers(table, "at_ns"), arrays.numbers(table, "arrived_ns")
    broker, (ip, _) = arrays.numbers(table, "broker"), arrays.codes(table, "ip")
    order = numpy.lexsort((is_refusal, numpy.where(is_refusal, at_ns + SLACK_NS, at_ns), ip, broker))
    starts = arrays.begins(broker[order], ip[order])
    last = arrays.latest(~is_refusal[order], starts)
    never = (last < 0) | (at_ns[order][last] < arrived_ns[order] - SLACK_NS)
    wrong = order[is_refusal[order] & never]
    return _seen(unseen, "its home found no violation of that rate", (), table.take(pyarrow.array(wrong)))


# ---- second_of_the_core_was_used_up


def without_used_up_second(decided: Rows, unseen: Unseen, changed_ns: Sequence[int]) -> pyarrow.Table:
    """FOUND: refusals by a core's rate although it let fewer pass. `decided`: DECISIONS of all that came; `changed_ns`: the
    instants at which changes came into force."""
    asked = decided.each(partial(_asked, "core_rate", with_others=True), ASKED)
    return asked.by(INCARNATION, partial(without_pace, unseen, changed_ns), FOUND).table()


def without_pace(unseen: Unseen, changed_ns: Sequence[int], table: pyarrow.Table) -> pyarrow.Table:
    """FOUND: refusals by a core's rate although fewer than that came to a shard within a second before."""
    is_other, arrived_us = ~arrays.present(table, "reason"), arrays.numbers(table, "arrived_ns") // 1000
    second = SECOND_NS // 1000 + 1
    order, starts = arrays.grouped(*(arrays.numbers(table, name) for name in INCARNATION))
    core = numpy.empty(len(order), dtype="i8")
    core[order] = arrays.group_of(starts, len(order))
    ip, ips = arrays.codes(table, "ip")
    of_core = arrays.in_span(core, arrived_us, 2 * second, second, is_other)
    limit, limits = arrays.codes(table, "limit")
    is_of_ip = numpy.array([str(name).endswith("overrides") for name in limits])[limit]
    _, pair = numpy.unique(core * len(ips) + ip, return_inverse=True)
    of_ip = arrays.in_span(pair, arrived_us, 2 * second, second, is_other) if is_of_ip.any() else of_core
    few = numpy.where(is_of_ip, of_ip, of_core) < arrays.numbers(table, "limit_value")
    wrong = table.filter(pyarrow.array(~is_other & few))
    return _seen(unseen, "fewer than that came within a second", changed_ns, wrong)


def _seen(unseen: Unseen, why: str, changed_ns: Sequence[int], table: pyarrow.Table) -> pyarrow.Table:
    """Some of ASKED as FOUND, without those that can't be judged: `unseen`, or soon after one of the sorted `changed_ns`."""
    found = []
    for row in table.drop_columns(["arrived_ns"]).to_pylist():
        recent = bisect_right(changed_ns, row["at_ns"]) - bisect_right(changed_ns, row["at_ns"] - SLACK_NS)
        if not recent and not unseen.contains(row["broker"], row["at_ns"]):
            found.append({**row, "why": why, "refusals": 1})
    return pyarrow.Table.from_pylist(found, FOUND)
