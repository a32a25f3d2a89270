"""The notes of meters, as rows that the checks of client quotas read: each with the meter that it is of.

meter_follows_from_the_version  A `charge` names a client; its meter follows from the quotas of the version that it was decided
    under, as its process knew them (quota_tables.py). A `meter` event names the meter itself.
"""

import json
from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy
import pyarrow

from broker.journal.schema import STAND_IN
from shards.limits.quota_entities import CLIENT_KEYS
from shards.limits.short_names import short_name
from turnstile.pipeline.audit.quota_tables import QuotaTables
from turnstile.pipeline.events import arrays
from turnstile.pipeline.events.arrays import EventDetail, TableRow
from turnstile.pipeline.events.rows import Rows
from turnstile.pipeline.events.sequence import Incarnation

CHARGE, STATE, TOLD, RESET, BAD = "charge", "state", "told", "reset", "bad"
INCARNATION = ("broker", "shard", "epoch")
READ = (
    *INCARNATION, "seq", "mono_ns", "kind", "reason", "user", "client_id", "bytes", "throttle_ms", "limit", "limit_value",
    "version", "detail",
)  # fmt: skip
NOTED = pyarrow.schema(
    [
        ("what", pyarrow.string()),
        ("broker", pyarrow.int32()),
        ("shard", pyarrow.int32()),
        *((name, pyarrow.int64()) for name in ("epoch", "seq", "at_ns", "era", "version")),
        ("quota", pyarrow.string()),
        *((name, pyarrow.string()) for name in ("meter_user", "meter_client", "user", "client_id")),
        ("amount", pyarrow.int64()),
        ("throttle_ms", pyarrow.int64()),
        *((name, pyarrow.float64()) for name in ("limit_value", "in_force")),
        *(
            (name, pyarrow.bool_())
            for name in ("is_known", "is_named", "is_stand_in", "is_strict", "is_accepted", "is_shared")
        ),
        ("asker", pyarrow.int32()),
        ("home", pyarrow.int32()),
        ("detail", pyarrow.string()),
    ]
)
"""in_force    the quota of the client's meter by that version, null: none
is_known    whether that version is in the journal
is_named    whether the quota names all clients that it is of
home        the meter's, -1 where it can't be known
detail      of STATE and TOLD what was noted"""
_CHARGE_DETAIL = {"asker", "strict", "accepted", "shared"}


class Noted(NamedTuple):
    """The kinds of the events of some meters: of their charges, and of what they note besides."""

    charge: str
    meter: str


ENFORCED, OBSERVED = Noted("charge", "meter"), Noted("observed_charge", "observed_meter")


def resets(events: Rows, kinds: Noted = ENFORCED) -> list[TableRow]:
    """The events that say that all meters of a process begin anew."""
    columns = ("kind", *INCARNATION, "seq", "version", "limit")
    schema = pyarrow.schema([(name, NOTED.field(name).type) for name in (*INCARNATION, "seq", "version")])

    def mine(table: pyarrow.Table) -> pyarrow.Table:
        kept = table.filter(pyarrow.array(~arrays.present(table, "limit")))
        return arrays.table_of(schema, **{name: kept[name] for name in schema.names})

    return list(events.of_kinds((kinds.meter,), columns).each(mine, schema).table().to_pylist())


def noted(events: Rows, tables: QuotaTables, kinds: Noted = ENFORCED) -> Rows:
    """NOTED of a journal."""
    return events.of_kinds(kinds, READ).each(partial(placed, tables, kinds), NOTED)


def placed(tables: QuotaTables, kinds: Noted, table: pyarrow.Table) -> pyarrow.Table:
    """NOTED from the columns of READ."""
    if not table.num_rows:
        return NOTED.empty_table()
    is_charge = arrays.is_one_of(table, "kind", (kinds.charge,))
    charges, meters = (table.filter(pyarrow.array(each)) for each in (is_charge, ~is_charge))
    return pyarrow.concat_tables([_charges(tables, charges), _meters(tables, meters)])


def _charges(tables: QuotaTables, table: pyarrow.Table) -> pyarrow.Table:
    places = [arrays.numbers(table, name) for name in INCARNATION]
    seq, version = arrays.numbers(table, "seq"), arrays.numbers(table, "version")
    user, users = arrays.codes(table, "user")
    client, clients = arrays.codes(table, "client_id")
    quota, quotas = arrays.codes(table, "limit")
    era = _eras(tables, places, seq)
    order, starts = arrays.grouped(*places, era, version, quota, user, client)
    group = numpy.empty(len(order), dtype="i8")
    group[order] = arrays.group_of(starts, len(order))
    first = order[starts]
    metered = [
        _metered(
            tables, (int(places[0][row]), int(places[1][row]), int(places[2][row])), version=int(version[row]),
            quota=quotas[quota[row]] or "", user=users[user[row]] or "", client=clients[client[row]] or "",
        )
        for row in first
    ]  # fmt: skip
    detail, details = arrays.codes(table, "detail")
    read = [_detail(text) for text in details]
    is_bad = numpy.array([each is None for each in read])[detail]
    is_bad |= numpy.array([name not in CLIENT_KEYS for name in quotas])[quota]
    of = [each or {} for each in read]

    def said(name: str, absent: object) -> Any:
        return numpy.array([each.get(name, absent) for each in of])[detail]

    taken = {
        name: pyarrow.array([getattr(each, name) for each in metered], NOTED.field(name).type).take(
            pyarrow.array(group)
        )
        for name in _Metered._fields
    }
    return arrays.table_of(
        NOTED,
        what=numpy.where(is_bad, BAD, CHARGE),
        era=era,
        at_ns=table["mono_ns"],
        quota=table["limit"],
        amount=table["bytes"],
        is_stand_in=arrays.is_one_of(table, "reason", (STAND_IN,)),
        asker=said("asker", -1),
        is_strict=said("strict", False),
        is_accepted=said("accepted", True),
        is_shared=said("shared", False),
        detail=pyarrow.nulls(table.num_rows, pyarrow.string()),
        **taken,
        **{name: table[name] for name in (*INCARNATION, "seq", "version", "throttle_ms", "limit_value")},
    )


class _Metered(NamedTuple):
    """The meter of a client, its short names, its quota, whether that is known and names its clients, and the home."""

    meter_user: str
    meter_client: str
    user: str
    client_id: str
    in_force: float | None
    is_known: bool
    is_named: bool
    home: int


def _metered(tables: QuotaTables, place: Incarnation, *, version: int, quota: str, user: str, client: str) -> _Metered:
    user, client = short_name(user), short_name(client)
    table = tables.table(version, quota)
    if table is None:
        return _Metered(user, client, user, client, None, False, False, -1)
    key = table.key(user, client)
    home, found = tables.home(place, quota, key), table.quota(key)
    limit, is_named = (None, False) if found is None else (found.limit, found.is_named)
    return _Metered(*key, user, client, limit, True, is_named, -1 if home is None else home)


def _meters(tables: QuotaTables, table: pyarrow.Table) -> pyarrow.Table:
    rows = []
    for event in table.to_pylist():
        place = event["broker"], event["shard"], event["epoch"]
        same = {name: event[name] for name in (*INCARNATION, "seq", "version", "detail")}
        key = event["user"] or "", event["client_id"] or ""
        quota, era = event["limit"] or "", tables.era(place, event["seq"])
        quotas = tables.table(event["version"], quota) if quota else None
        home = tables.home(place, quota, key)
        rows.append(
            {**same, "what": _what(event["limit"], event["detail"]), "at_ns": event["mono_ns"], "quota": quota, "era": era,
             "meter_user": key[0], "meter_client": key[1], "in_force": None if quotas is None else quotas.limit(key),
             "is_known": quotas is not None, "home": -1 if home is None else home}
        )  # fmt: skip
    return pyarrow.Table.from_pylist(rows, NOTED)


def _what(quota: str | None, detail: str) -> str:
    try:
        of = json.loads(detail)
    except ValueError:
        return BAD
    if not isinstance(of, dict):
        return BAD
    if quota is not None and quota not in CLIENT_KEYS:
        return BAD
    if quota is None:
        return RESET if of == {"reset": True} else BAD
    if {"recorded_ms", "amount"} == of.keys():
        return TOLD if all(isinstance(each, int | float) for each in of.values()) else BAD
    return STATE


def _eras(tables: QuotaTables, places: Sequence[arrays.Array], seq: arrays.Array) -> arrays.Array:
    return arrays.looked_up([*places, seq], lambda key: tables.era(key[:3], key[3])) if tables.was_reset else seq * 0  # type: ignore[arg-type]


def placed_detail(text: str | None) -> EventDetail:
    """The detail of a charge; empty for what is none."""
    return _detail(text) or {}


def _detail(text: str | None) -> EventDetail | None:
    """The detail of a charge, read; None for what is none."""
    try:
        of = json.loads(text or "")
    except ValueError:
        return None
    if not isinstance(of, dict) or of.keys() - _CHARGE_DETAIL or not isinstance(of.get("asker"), int):
        return None
    return of if all(isinstance(of.get(name, True), bool) for name in ("strict", "accepted", "shared")) else None
