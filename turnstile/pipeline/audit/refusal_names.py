"""Checks that the limit that a refusal names (a setting or quota, its value, a version) was in force.

That version must set the limit to that value for the address, and must have been stored before the refusal; no newer version may
have been acknowledged when the connection arrived.
"""

from typing import NamedTuple

import numpy
import pyarrow

from broker.journal.schema import AFTER_LOGIN
from shards.limits.caps import CLUSTER, UNLIMITED
from shards.limits.quota_entities import CONNECTION_RATE
from turnstile.pipeline.events import arrays, open_counts
from turnstile.pipeline.events.arrays import TableRow
from turnstile.pipeline.events.timeline import Timeline
from turnstile.pipeline.events.version_limits import VersionLimits

CLUSTER_RATE = "cluster_rate"
CAPS = {"broker_cap": "broker", "ssl_cap": "ssl", "ip_cap": "ip", "cluster_cap": CLUSTER}
"""Reason -> kind of pool. `max.connections`, also that of a listener, makes connections wait (KIP-402). It refuses only those that
were held for their rate and then asked again (`turnstile.ip.rate.recheck`)."""
BY_LIMITS = (
    "broker_cap",
    "listener_cap",
    "ssl_cap",
    "ip_cap",
    "cluster_cap",
    *AFTER_LOGIN,
    "ip_rate",
    "core_rate",
    CLUSTER_RATE,
)
"""The reasons of refusals. Rows of AFTER_LOGIN have the user as their `ip` (user_checks.py)."""
_RATES = ("ip_rate", "user_rate", "core_rate", CLUSTER_RATE)
FOUND = pyarrow.schema(
    [
        ("broker", pyarrow.int32()),
        ("shard", pyarrow.int32()),
        *((name, pyarrow.int64()) for name in ("epoch", "conn")),
        ("ip", pyarrow.string()),
        ("at_ns", pyarrow.int64()),
        ("reason", pyarrow.string()),
        ("limit", pyarrow.string()),
        ("limit_value", pyarrow.float64()),
        ("version", pyarrow.int64()),
        ("why", pyarrow.string()),
        ("refusals", pyarrow.int64()),
    ]
)
INCARNATION = ("broker", "shard", "epoch")
ASKED = pyarrow.schema(
    [
        ("broker", pyarrow.int32()),
        ("shard", pyarrow.int32()),
        *((name, pyarrow.int64()) for name in ("epoch", "conn")),
        ("ip", pyarrow.string()),
        *((name, pyarrow.int64()) for name in ("at_ns", "arrived_ns")),
        ("reason", pyarrow.string()),
        ("limit", pyarrow.string()),
        ("limit_value", pyarrow.float64()),
        ("version", pyarrow.int64()),
    ]
)
"""A refusal, or something that explains one: then `reason` is null."""


def held_ns(table: pyarrow.Table) -> arrays.Array:
    """The time from the arrival of each connection to its refusal or admission."""
    held_ns: arrays.Array = (arrays.numbers(table, "held_ms") * 1_000_000).astype("i8")
    return held_ns


def misnamed(timeline: Timeline, table: pyarrow.Table) -> pyarrow.Table:
    """FOUND: refusals that name a limit, a value or a version that was not in force; the first of each that are alike."""
    table = table.filter(pyarrow.array(arrays.is_one_of(table, "reason", BY_LIMITS)))
    at_ns, version = arrays.numbers(table, "mono_ns"), arrays.numbers(table, "version")
    stored = arrays.looked_up([version], lambda key: timeline.stored.get(key[0], 0))
    passed = arrays.looked_up(
        [version],
        lambda key: min((at for at, each in timeline.acknowledged if each > key[0] > 0), default=open_counts.NEVER),
    )
    early, late = at_ns < stored, at_ns - held_ns(table) > passed
    names = [arrays.codes(table, name)[0] for name in ("ip", "listener", "reason", "limit")]
    value = arrays.numbers(table, "limit_value", null=-1)
    order, starts = arrays.grouped(arrays.numbers(table, "broker"), *names, value, version, early, late, at_ns)
    # `at_ns` only orders those that are alike.
    starts = arrays.begins(
        *(key[order] for key in (arrays.numbers(table, "broker"), *names, value, version, early, late))
    )
    sizes = numpy.diff(numpy.append(starts, len(order)))
    columns = [*INCARNATION, "conn", "ip", "listener", "reason", "limit", "limit_value", "version"]
    rows = table.take(pyarrow.array(order[starts])).select(columns).to_pylist()
    found = []
    for row, place, refusals in zip(rows, order[starts], sizes, strict=True):
        row["why"] = _misnamed(row, timeline, early=bool(early[place]), late=bool(late[place]))
        if row["why"]:
            found.append({**row, "at_ns": int(at_ns[place]), "refusals": int(refusals)})
    return pyarrow.Table.from_pylist(found, FOUND)


def _misnamed(row: TableRow, timeline: Timeline, *, early: bool, late: bool) -> str:
    """The fault of the limit that a refusal names; "" for none, or when the version is not known."""
    version = row["version"]
    if not version:
        return "it names no version"
    if version not in timeline.versions:
        return ""
    if early:
        return "that version was stored later"
    if late:
        return "a newer version had been acknowledged when the connection arrived"
    limits = timeline.limits(version, row["broker"])
    said = row["limit"], row["limit_value"]
    expected = refusing(limits, row["reason"], row["ip"])
    if said == expected:
        return ""
    if said == late_refusing(limits, row["reason"], row["listener"]) and _rechecked(timeline, version, row["broker"]):
        return ""
    if expected is None and row["reason"] in _RATES and not row["limit_value"]:
        return ""  # the rate of a connection that was held, or waited, may have been removed meanwhile
    if expected is None:
        return "that version sets no such limit"
    return f"that version says {expected.name}={expected.value:g}"


class LimitValue(NamedTuple):
    """A setting or quota, and its value."""

    name: str
    value: float


def refusing(limits: VersionLimits, reason: str, ip: str) -> LimitValue | None:
    """The limit that refuses an address for a reason under a version; None: none does."""
    if reason in CAPS:
        pool = f"ip:{ip}" if reason == "ip_cap" else CAPS[reason]
        rule = limits.limits.refusing if reason == "broker_cap" else limits.limits.rule_of(pool)
        return None if rule.cap is None else LimitValue(rule.name, float(rule.cap))
    if reason == "user_cap":
        own = limits.limits.rule_of(f"user:{ip}")
        return None if own.cap is None else LimitValue(own.name, float(own.cap))
    if reason == "user_rate":
        user_rate = limits.limits.rate_of(f"user:{ip}")
        return None if user_rate.rate is None else LimitValue(user_rate.name, user_rate.rate)
    if reason == CLUSTER_RATE:
        rule_of_all = limits.limits.rate_of(CLUSTER)
        return None if rule_of_all.rate is None else LimitValue(rule_of_all.name, rule_of_all.rate)
    if reason == "ip_rate":
        rate = limits.rate("ip", ip)
        return None if rate == float("inf") else LimitValue(CONNECTION_RATE, rate)
    if reason == "core_rate":
        core = limits.limits.core_rate_of(ip)
        return None if core.rate is None else LimitValue(core.name, core.rate)
    return None


def late_refusing(limits: VersionLimits, reason: str, listener: str | None) -> LimitValue | None:
    """The limit that refuses connections which do not wait where others do (KIP-402): those that were held and checked again."""
    pool = {"broker_cap": "broker", "listener_cap": f"listener:{listener}"}.get(reason)
    rule = UNLIMITED if pool is None else limits.limits.rule_of(pool)
    return LimitValue(rule.name, float(rule.cap)) if rule.wait and rule.cap is not None else None


def _rechecked(timeline: Timeline, version: int, broker: int) -> bool:
    """True if a connection that was held may have been checked again, under this version or an earlier one."""
    return any(timeline.limits(each, broker).limits.recheck for each in timeline.versions if each <= version)
