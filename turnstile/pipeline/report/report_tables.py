"""Refused clients, with time and reason: the tables of a report, each made of rows by kernels (rows.py), here or on Spark.

A table that only draws a picture is cut into at most BUCKETS steps of time before it reaches this process; that is some
thousand rows, for a journal of any size.
"""

from collections.abc import Callable, Sequence
from functools import partial
from ipaddress import ip_network
from typing import NamedTuple

import numpy
import pyarrow
import pyarrow.compute

from broker.journal.schema import GAVE_UP
from turnstile.pipeline.audit.moves import GRANT, LOST, RETURN, moves
from turnstile.pipeline.events import arrays
from turnstile.pipeline.events.rows import Rows
from turnstile.pipeline.events.survey import Survey
from turnstile.pipeline.report.open_connections import open_per_ip
from turnstile.pipeline.report.reconnects import reconnects
from turnstile.pipeline.report.sums import add, count, first, in_order, plain, summed, topped
from turnstile.pipeline.report.time_steps import TimeSteps

TOP = 20
DECIDED = ("admitted", "refused")
LOGGED_IN = "logged in"

_STRING, _LONG, _DOUBLE = pyarrow.string(), pyarrow.int64(), pyarrow.float64()
_OUTCOMES = pyarrow.schema([("at", _DOUBLE), ("outcome", _STRING), ("count", _LONG)])
_BY_REASON = pyarrow.schema([("ip", _STRING), ("reason", _STRING), ("refused", _LONG), ("admitted", _LONG)])
_NETWORK_IPS = pyarrow.schema([("network", _STRING), ("ip", _STRING), ("refused", _LONG)])
_NETWORKS = pyarrow.schema([("network", _STRING), ("addresses", _LONG), ("refused", _LONG)])
_BINS = pyarrow.schema([("bin", _LONG), ("count", _LONG)])
_THROTTLED = pyarrow.schema(
    [("user", _STRING), ("client_id", _STRING), ("limit", _STRING)]
    + [(name, _LONG) for name in ("throttles", "throttle_ms", "worst_ms")]
)
_TOKENS = pyarrow.schema([("at", _DOUBLE), ("kind", _STRING), ("moves", _LONG), ("tokens", _LONG)])
_OBSERVED = pyarrow.schema([("limit", _STRING), ("limit_value", _DOUBLE), ("reason", _STRING), ("count", _LONG)])
_OBSERVED_IPS = pyarrow.schema([("ip", _STRING), ("limit", _STRING), ("limit_value", _DOUBLE), ("count", _LONG)])
_OBSERVED_THROTTLED = pyarrow.schema(
    [
        ("user", _STRING),
        ("client_id", _STRING),
        ("limit", _STRING),
        ("limit_value", _DOUBLE),
        ("charges", _LONG),
        ("throttle_ms", _LONG),
    ]
)
_PATHS = pyarrow.schema([("at", _DOUBLE), ("path", _STRING), ("count", _LONG)])


class Source(NamedTuple):
    """The source of tables: a journal's events (REPORTED), what is known of them, and the steps of time."""

    events: Rows
    seen: Survey
    steps: TimeSteps


def decisions(source: Source) -> pyarrow.Table:
    """One row per (at, outcome): admitted, or the reason of a refusal, and how many."""
    steps = source.steps

    def outcomes(table: pyarrow.Table) -> pyarrow.Table:
        outcome = pyarrow.compute.coalesce(table["reason"], table["kind"])
        return count(("at", "outcome"), pyarrow.table({"at": steps.of_wall(table), "outcome": outcome}))

    decided = source.events.of_kinds(DECIDED, ("ts_us", "kind", "reason"))
    return summed(decided, ("at", "outcome"), outcomes, _OUTCOMES)


def refused_ips(source: Source) -> pyarrow.Table:
    """The TOP addresses refused most: ip, reasons (each with how often, the most frequent first), refused, admitted,
    refused_share."""
    decided = source.events.of_kinds(DECIDED, ("ip", "kind", "reason"))
    return _refused_most(decided.each(_by_reason, _BY_REASON))


def logins(source: Source) -> pyarrow.Table:
    """One row per (at, outcome): logged in, or why a client that had proven who it is was refused, and how many."""
    steps = source.steps

    def outcomes(table: pyarrow.Table) -> pyarrow.Table:
        decided = table.filter(_is_decided(table))
        outcome = pyarrow.compute.fill_null(decided["reason"], LOGGED_IN)
        return count(("at", "outcome"), pyarrow.table({"at": steps.of_wall(decided), "outcome": outcome}))

    rows = source.events.of_kinds(("authenticated",), ("ts_us", "reason"))
    return summed(rows, ("at", "outcome"), outcomes, _OUTCOMES)


def refused_users(source: Source) -> pyarrow.Table:
    """The TOP users whose logins were refused most, with the columns of `refused_ips`; `admitted`: logins."""
    rows = source.events.of_kinds(("authenticated",), ("user", "reason"))
    found = _refused_most(rows.each(_logins_by_reason, _BY_REASON))
    return found.rename_columns(["user" if name == "ip" else name for name in found.column_names])


def _is_decided(table: pyarrow.Table) -> pyarrow.Array:
    """True for each `authenticated` event but those of clients that left before their login was decided."""
    return pyarrow.compute.fill_null(pyarrow.compute.not_equal(table["reason"], GAVE_UP), True)


def _logins_by_reason(table: pyarrow.Table) -> pyarrow.Table:
    decided = table.filter(_is_decided(table))
    is_refusal = pyarrow.compute.is_valid(decided["reason"]).cast(_LONG)
    return _ones(decided["user"], decided["reason"], is_refusal)


def _refused_most(parts: Rows) -> pyarrow.Table:
    """A row for each of the TOP addresses that are refused most, from rows of _BY_REASON."""
    parts = parts.by(("ip",), _most_refused, _BY_REASON)
    found: dict[str, list[dict[str, int]]] = {}
    for row in in_order(_most_refused(parts.table()), "ip", "-refused", "reason").to_pylist():
        found.setdefault(row["ip"], []).append(row)
    rows = [
        {
            "ip": ip,
            "reasons": ", ".join(f"{each['reason']} {each['refused']}" for each in of_ip if each["refused"]),
            "refused": (refused := sum(each["refused"] for each in of_ip)),
            "admitted": (admitted := sum(each["admitted"] for each in of_ip)),
            "refused_share": refused / (refused + admitted),
        }
        for ip, of_ip in found.items()
    ]
    schema = [
        ("ip", _STRING),
        ("reasons", _STRING),
        ("refused", _LONG),
        ("admitted", _LONG),
        ("refused_share", _DOUBLE),
    ]
    return in_order(pyarrow.Table.from_pylist(rows, pyarrow.schema(schema)), "-refused", "ip")


def _by_reason(table: pyarrow.Table) -> pyarrow.Table:
    return _ones(table["ip"], table["reason"], pyarrow.compute.equal(table["kind"], "refused").cast(_LONG))


def _ones(names: pyarrow.Array, reasons: pyarrow.Array, is_refusal: pyarrow.Array) -> pyarrow.Table:
    columns = {"ip": names, "reason": reasons, "refused": is_refusal}
    return _added_by_reason(plain(pyarrow.table({**columns, "admitted": pyarrow.compute.subtract(1, is_refusal)})))


def _added_by_reason(table: pyarrow.Table) -> pyarrow.Table:
    return add(("ip", "reason"), {"refused": "sum", "admitted": "sum"}, table).cast(_BY_REASON)


def _most_refused(table: pyarrow.Table) -> pyarrow.Table:
    """_BY_REASON of the TOP addresses refused most, of rows that have whole addresses."""
    table = _added_by_reason(table)
    refused = table.filter(pyarrow.compute.greater(table["refused"], 0))
    most = first(add(("ip",), {"refused": "sum"}, refused), TOP, "-refused", "ip")
    return table.filter(pyarrow.compute.is_in(table["ip"], most["ip"].combine_chunks()))


def refused_networks(source: Source) -> pyarrow.Table:
    """The TOP networks (/24, /64): network, addresses, refused."""
    refused = source.events.of_kinds(("refused",), ("ip",))
    found = refused.each(_networks, _NETWORK_IPS).by(("network",), _most_refused_networks, _NETWORKS).table()
    return first(found, TOP, "-refused", "network")


def _networks(table: pyarrow.Table) -> pyarrow.Table:
    counts = count(("ip",), plain(table))
    names = pyarrow.array([_network(ip) for ip in counts["ip"].to_pylist()], _STRING)
    return pyarrow.table([names, counts["ip"], counts["count"]], schema=_NETWORK_IPS)


def _network(ip: str) -> str:
    if ":" not in ip:
        return f"{ip.rpartition('.')[0]}.0/24"
    try:
        return str(ip_network(f"{ip.partition('%')[0]}/64", strict=False))
    except ValueError:
        return ip


def _most_refused_networks(table: pyarrow.Table) -> pyarrow.Table:
    by_ip = add(("network", "ip"), {"refused": "sum"}, table)
    sums = by_ip.group_by(["network"], use_threads=False).aggregate([("ip", "count"), ("refused", "sum")])
    named = sums.select(["network", "ip_count", "refused_sum"]).rename_columns(_NETWORKS.names).cast(_NETWORKS)
    return first(named, TOP, "-refused", "network")


def latency(source: Source) -> pyarrow.Table:
    """low_ms, high_ms, count: from accept to decision, of admitted connections, in bins that double."""
    return _binned(source.events.of_kinds(("admitted",), ("held_ms",)), least=0.03125)


def hold_times(source: Source) -> pyarrow.Table:
    """low_ms, high_ms, count: how long connections were open, in bins that double."""
    return _binned(source.events.of_kinds(("closed",), ("held_ms",)), least=1.0)


def _binned(rows: Rows, *, least: float) -> pyarrow.Table:
    """Counts of held_ms in bins that double from `least`; smaller values are in the first."""

    def bins(table: pyarrow.Table) -> pyarrow.Table:
        values = table["held_ms"].drop_null().to_numpy() / least
        numbers = numpy.full(len(values), -1, dtype="i8")
        is_in = values >= 1
        numbers[is_in] = numpy.floor(numpy.log2(values[is_in]))
        return count(("bin",), pyarrow.table({"bin": numbers}))

    counts = summed(rows, ("bin",), bins, _BINS)
    number = counts["bin"].to_numpy().astype("f8")
    low = numpy.where(number < 0, 0.0, least * 2.0**number)
    return pyarrow.table({"low_ms": low, "high_ms": least * 2.0 ** (number + 1), "count": counts["count"]})


def throttled(source: Source) -> pyarrow.Table:
    """The TOP (user, client_id) by throttle time: user, client_id, limit, throttles, throttle_s, worst_ms."""
    keys = ("user", "client_id", "limit")
    instead = dict(zip(keys, ("ANONYMOUS", "", ""), strict=True))
    added = {"throttles": "sum", "throttle_ms": "sum", "worst_ms": "max"}

    def each(table: pyarrow.Table) -> pyarrow.Table:
        columns = {name: pyarrow.compute.fill_null(table[name], text) for name, text in instead.items()}
        ones = pyarrow.repeat(pyarrow.scalar(1), table.num_rows)
        sums = {"throttles": ones, "throttle_ms": table["throttle_ms"], "worst_ms": table["throttle_ms"]}
        return add(keys, added, pyarrow.table({**columns, **sums})).cast(_THROTTLED)

    rows = source.events.of_kinds(("throttled",), (*keys, "throttle_ms"))
    found = topped(rows, keys, each, _THROTTLED, added, most=TOP, by=("-throttle_ms", *keys))
    seconds = pyarrow.compute.divide(found["throttle_ms"].cast(_DOUBLE), 1000.0)
    return found.set_column(found.schema.get_field_index("throttle_ms"), "throttle_s", seconds)


def tokens(source: Source) -> pyarrow.Table:
    """at, kind (grant or reclaim), moves, tokens: what homes granted, and what came back to them, lost ones included."""
    kinds = {GRANT: "grant", RETURN: "reclaim", LOST: "reclaim"}

    steps = source.steps

    def moved(table: pyarrow.Table) -> pyarrow.Table:
        chosen = table.filter(pyarrow.compute.is_in(table["what"], pyarrow.array(list(kinds))))
        columns = {
            "at": steps.of_mono(arrays.numbers(chosen, "at_ns")),
            "kind": pyarrow.array([kinds[what] for what in chosen["what"].to_pylist()], _STRING),
            "moves": pyarrow.repeat(pyarrow.scalar(1), chosen.num_rows),
            "tokens": pyarrow.compute.abs(chosen["tokens"]),
        }
        return add(("at", "kind"), {"moves": "sum", "tokens": "sum"}, pyarrow.table(columns)).cast(_TOKENS)

    return summed(moves(source.events), ("at", "kind"), moved, _TOKENS)


def paths(source: Source) -> pyarrow.Table:
    """at, path, count: decisions taken at once on the shard that accepted, and after asking another."""
    steps = source.steps

    def counted(table: pyarrow.Table) -> pyarrow.Table:
        asked = pyarrow.compute.greater(pyarrow.compute.fill_null(table["held_ms"], 0), 0)
        path = pyarrow.compute.if_else(asked, "asked another shard", "decided at once")
        return count(("at", "path"), pyarrow.table({"at": steps.of_wall(table), "path": path}))

    decided = source.events.of_kinds(DECIDED, ("ts_us", "held_ms"))
    return summed(decided, ("at", "path"), counted, _PATHS)


def observed(source: Source) -> pyarrow.Table:
    """limit, limit_value, reason, count: the admitted connections that each observed cap would have refused, or made wait."""
    return summed(_decided_by_observed(source), _OBSERVED.names[:3], partial(_counted, _OBSERVED.names[:3]), _OBSERVED)


def observed_ips(source: Source) -> pyarrow.Table:
    """ip, limit, limit_value, count: the TOP addresses of these connections, for each cap."""
    keys = _OBSERVED_IPS.names[:3]
    rows = _decided_by_observed(source)
    return topped(rows, keys, partial(_counted, keys), _OBSERVED_IPS, {"count": "sum"}, most=TOP, by=("-count", *keys))


def observed_throttled(source: Source) -> pyarrow.Table:
    """The TOP (user, client_id) that observed quotas would have throttled, for each quota and value: charges, throttle_s."""
    keys = _OBSERVED_THROTTLED.names[:4]
    added = {"charges": "sum", "throttle_ms": "sum"}

    def each(table: pyarrow.Table) -> pyarrow.Table:
        delayed = table.filter(pyarrow.compute.greater(table["throttle_ms"], 0))
        names = {name: pyarrow.compute.fill_null(delayed[name], "") for name in keys[:2]}
        ones = pyarrow.repeat(pyarrow.scalar(1), delayed.num_rows)
        columns = {
            **names,
            **{name: delayed[name] for name in keys[2:]},
            "charges": ones,
            "throttle_ms": delayed["throttle_ms"],
        }
        return add(keys, added, pyarrow.table(columns)).cast(_OBSERVED_THROTTLED)

    rows = source.events.of_kinds(("observed_charge",), (*keys, "throttle_ms"))
    found = topped(rows, keys, each, _OBSERVED_THROTTLED, added, most=TOP, by=("-throttle_ms", *keys))
    seconds = pyarrow.compute.divide(found["throttle_ms"].cast(_DOUBLE), 1000.0)
    return found.set_column(found.schema.get_field_index("throttle_ms"), "throttle_s", seconds)


def _decided_by_observed(source: Source) -> Rows:
    return source.events.of_kinds(("observed",), ("ip", "limit", "limit_value", "reason"))


def _counted(keys: Sequence[str], table: pyarrow.Table) -> pyarrow.Table:
    by_a_cap = pyarrow.compute.and_(
        pyarrow.compute.is_valid(table["reason"]), pyarrow.compute.is_valid(table["limit_value"])
    )
    return count(keys, table.filter(by_a_cap).select(list(keys)))


TABLES: dict[str, Callable[[Source], pyarrow.Table]] = {
    "decisions": decisions,
    "refused_ips": refused_ips,
    "refused_networks": refused_networks,
    "logins": logins,
    "refused_users": refused_users,
    "open_per_ip": lambda source: open_per_ip(source.events, source.seen, source.steps),
    "latency": latency,
    "hold_times": hold_times,
    "throttled": throttled,
    "tokens": tokens,
    "paths": paths,
    "observed": observed,
    "observed_ips": observed_ips,
    "observed_throttled": observed_throttled,
    "reconnects": lambda source: reconnects(source.events, TOP),
}
