"""A journal of a connection log: one broker with four shards that admitted all of it, within every limit.

Caps on broker and addresses; with `tokens`, also every move of tokens between the shards, and the units of creation rates of
listener and addresses. Written as a cluster writes it: whole, in the order of each process, some 5.5 events a connection.
"""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from zlib import crc32

import numpy
import pyarrow
import pyarrow.compute
import pyarrow.parquet

from broker.journal.schema import COORDINATOR
from broker.journal.spool_columns import SCHEMA

Array = numpy.ndarray[Any, Any]
SHARDS = 4
CHUNK = 500_000
BATCH = 100
"""The broker's tokens are granted so many at a time, and kept."""
ADMITTED, CLOSED, IP_GRANT, IP_RETURN, BROKER_GRANT, IP_RATE, LISTENER_RATE = range(7)
KINDS = ("admitted", "closed", "grant", "reclaim", "grant", "grant", "grant")
# When something happens beside the admission (or for CLOSED and IP_RETURN beside the close), in ns.
OFFSETS_NS = (0, 0, -1000, 1000, -2000, -3000, -4000)
CAPS = {"kafka_connections_max": "100000000", "kafka_connections_max_per_ip": "1000000"}
RATES = {"max.connection.creation.rate": "1000000"}
QUOTA = ["quota", json.dumps({"ip": None}), {"connection_creation_rate": 1_000_000.0}]


def make_journal(folder: Path, log: Path, *, tokens: bool) -> Path:
    """Parts in `folder`, of a log as make_connlog writes it in Parquet."""
    folder.mkdir()
    ips, codes, opened_ns, closed_ns = _connections(log)
    shard = numpy.arange(len(codes)) % SHARDS
    home = numpy.array([crc32(f"ip:{ip}".encode()) % SHARDS for ip in ips])[codes]
    end_ns = int(closed_ns.max()) + 1_000_000_000
    _write_coordinator(folder, end_ns, tokens=tokens)
    events = _events(shard, home, opened_ns, closed_ns, tokens=tokens)
    for number in range(SHARDS):
        mine = events[events["shard"] == number]
        mine = mine[numpy.argsort(mine["mono_ns"], kind="stable")]
        _write(folder, number, 0, _start(number, tokens=tokens))
        for first in range(0, len(mine), CHUNK):
            chunk = mine[first : first + CHUNK]
            _write(folder, number, first + 2, _columns(chunk, ips, codes, shard))
        _write(folder, number, len(mine) + 2, {"kind": ["ended"], "mono_ns": [end_ns]})
    return folder


def _connections(log: Path) -> tuple[list[str], Array, Array, Array]:
    """Addresses, and of each connection in order of opening its address's code and when it was open."""
    table = (
        pyarrow.parquet.read_table(log, columns=["ip", "opened_at", "closed_at"]).unify_dictionaries().combine_chunks()
    )
    names = pyarrow.compute.dictionary_encode(table["ip"].cast(pyarrow.string())).combine_chunks()
    opened, closed = (table[name].cast("i8").to_numpy() * 1000 for name in ("opened_at", "closed_at"))
    order = numpy.argsort(opened, kind="stable")
    codes = names.indices.to_numpy()[order]
    return (
        names.dictionary.to_pylist(),
        codes,
        opened[order] + 10_000,
        numpy.maximum(closed, opened + 1)[order] + 10_000,
    )


def _events(shard: Array, home: Array, opened_ns: Array, closed_ns: Array, *, tokens: bool) -> Array:
    """mono_ns, shard, what and connection of every event of shards."""
    numbers = numpy.arange(len(shard), dtype="i4")
    elsewhere = numbers[shard != home]
    of_broker = crc32(b"broker") % SHARDS
    batches = numbers[(numbers // SHARDS % BATCH == 0) & (shard != of_broker)]
    plan = [(ADMITTED, numbers, shard), (CLOSED, numbers, shard)]
    if tokens:
        plan += [(IP_GRANT, elsewhere, home[elsewhere]), (IP_RETURN, elsewhere, home[elsewhere])]
        plan += [(BROKER_GRANT, batches, numpy.full(len(batches), of_broker))]
        plan += [(IP_RATE, numbers, home), (LISTENER_RATE, numbers, numpy.zeros_like(numbers))]
    parts = []
    for what, which, where in plan:
        part = numpy.empty(len(which), dtype=[("mono_ns", "i8"), ("shard", "i1"), ("what", "i1"), ("conn", "i4")])
        at_ns = closed_ns if what in (CLOSED, IP_RETURN) else opened_ns
        part["mono_ns"], part["shard"] = at_ns[which] + OFFSETS_NS[what], where
        part["what"], part["conn"] = what, which
        parts.append(part)
    return numpy.concatenate(parts)


def _columns(chunk: Array, ips: Sequence[str], codes: Array, shard: Array) -> dict[str, Any]:
    """Columns of the journal."""
    what, conn = chunk["what"], chunk["conn"]
    of_connection = (what == ADMITTED) | (what == CLOSED)
    names = pyarrow.array(ips)
    details = [
        None if each < IP_GRANT else _detail(each, ips[code], to, at_ns // 1_000_000)
        for each, code, to, at_ns in zip(
            what.tolist(), codes[conn].tolist(), shard[conn].tolist(), chunk["mono_ns"].tolist(), strict=True
        )
    ]
    return {
        "mono_ns": chunk["mono_ns"],
        "kind": pyarrow.array(KINDS).take(pyarrow.array(what)),
        "conn": pyarrow.array(conn.astype("i8") + 1, mask=~of_connection),
        "ip": names.take(pyarrow.array(codes[conn], mask=~of_connection)),
        "listener": pyarrow.array(["EXTERNAL"]).take(pyarrow.array(numpy.zeros(len(chunk), "i4"), mask=~of_connection)),
        "version": pyarrow.array(numpy.ones(len(chunk), "i8"), mask=what == CLOSED),
        "detail": pyarrow.array(details, type=pyarrow.string()),
    }


def _detail(what: int, ip: str, to: int, at_ms: int) -> str:
    if what == IP_GRANT:
        return f'{{"pool":"ip:{ip}","to":{to},"tokens":1}}'
    if what == IP_RETURN:
        return f'{{"pool":"ip:{ip}","from":{to},"tokens":1}}'
    if what == BROKER_GRANT:
        return f'{{"pool":"broker","to":{to},"tokens":{BATCH}}}'
    pool = f"rate:ip:{ip}" if what == IP_RATE else "rate:listener:EXTERNAL"
    return f'{{"pool":"{pool}","to":{to},"tokens":1,"at_ms":{at_ms}}}'


def _changes(*, tokens: bool, full: bool, acknowledged: bool = False) -> str:
    settings = {**CAPS, **(RATES if tokens else {})}
    changes: list[list[Any]] = [["setting", f"/{name}", value] for name, value in settings.items()]
    changes += [QUOTA] if tokens else []
    return json.dumps({"changes": changes, "full": full, "acknowledged": acknowledged})


def _start(shard: int, *, tokens: bool) -> dict[str, Any]:
    up = json.dumps({"broker": 0, "shard": shard, "epoch": 1, "shards": SHARDS})
    return {
        "kind": ["shard_up", "config"], "mono_ns": [1, 4], "version": [None, 1],
        "detail": [up, _changes(tokens=tokens, full=True)],
    }  # fmt: skip


def _write_coordinator(folder: Path, end_ns: int, *, tokens: bool) -> None:
    ups = [json.dumps({"broker": 0, "shard": shard, "epoch": 1, "pid": 1}) for shard in range(SHARDS)]
    stored, told = (_changes(tokens=tokens, full=False, acknowledged=each) for each in (False, True))
    columns = {
        "kind": ["config", *["shard_up"] * SHARDS, "config", "ended"],
        "mono_ns": [1, *[2] * SHARDS, 5, end_ns],
        "version": [1, *[None] * SHARDS, 1, None],
        "detail": [stored, *ups, told, None],
    }
    _write(folder, COORDINATOR, 0, columns)


def _write(folder: Path, shard: int, first: int, given: dict[str, Any]) -> None:
    """One part, whose first event has the number `first`."""
    count = len(given["kind"])
    constant = {"broker": min(shard, 0), "shard": shard, "epoch": 1}
    given |= {"seq": numpy.arange(first, first + count), "ts": numpy.asarray(given["mono_ns"]) // 1000}
    columns = []
    for field in SCHEMA:
        kind = pyarrow.string() if pyarrow.types.is_dictionary(field.type) else field.type
        if field.name in constant:
            columns.append(pyarrow.repeat(constant[field.name], count).cast(kind))
        elif field.name in given:
            columns.append(pyarrow.array(given[field.name]).cast(kind))
        else:
            columns.append(pyarrow.nulls(count, kind))
    name = f"b{min(shard, 0)}-s{shard}-e000001-{first:012}.parquet"
    table = pyarrow.table(columns, names=SCHEMA.names)
    pyarrow.parquet.write_table(table, folder / name, compression="zstd", compression_level=1)
