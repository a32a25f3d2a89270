"""A journal of a connection log: one broker with four shards that admitted all of it, within every limit.

Caps on broker and addresses; with `tokens`, also every move of tokens between the shards, and the units of creation rates of
listener and addresses. Written as a cluster writes it: whole, in the order of each process, two events a connection or some 5.5.
A log of any size is made chunk by chunk.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any
from zlib import crc32

import numpy
import pyarrow
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
EPOCH_NS = 10_000
"""The processes start so long before the log's epoch."""
NEVER_NS = (1 << 63) - 1
EVENT = numpy.dtype([("mono_ns", "i8"), ("shard", "i1"), ("what", "i1"), ("conn", "i8"), ("ip", "i4"), ("of", "i1")])
"""`shard`: where it is journaled; `conn`, `ip`, `of`: the connection, its address's code, and its shard."""
# When something happens beside the admission (or for CLOSED and IP_RETURN beside the close), in ns.
OFFSETS_NS = (0, 0, -1000, 1000, -2000, -3000, -4000)
CAPS = {"kafka_connections_max": "100000000", "kafka_connections_max_per_ip": "1000000"}
RATES = {"max.connection.creation.rate": "1000000"}
QUOTA = ["quota", json.dumps({"ip": None}), {"connection_creation_rate": 1_000_000.0}]


def make_journal(folder: Path, names: Sequence[str], made: Iterable[Mapping[str, Any]], *, tokens: bool) -> Path:
    """Parts in `folder`, of a log's chunks as make_connlog makes them, with the address of each code in `names`.

    One chunk is held, and of the others what is yet to happen. Raises ValueError for chunks that are not in order of time.
    """
    folder.mkdir()
    shards = [_Shard(folder, number, names, tokens=tokens) for number in range(SHARDS)]
    home = numpy.array([crc32(f"ip:{ip}".encode()) % SHARDS for ip in names], dtype="i1")
    kept = numpy.empty(0, dtype=EVENT)
    count = last_ns = 0
    for chunk, until_ns in _with_next(made):
        events = numpy.concatenate([kept, _events(chunk, count, home, tokens=tokens)])
        if len(events) and events["mono_ns"].min() < last_ns:
            raise ValueError(f"chunk after {count:,} connections: begins before the one before it had ended")
        is_due = events["mono_ns"] < until_ns
        due, kept = events[is_due], events[~is_due]
        count, last_ns = count + len(chunk["ip"]), until_ns
        end_ns = int(events["mono_ns"].max()) + 1_000_000_000
        for shard in shards:
            shard.write(due)
    for shard in shards:
        shard.end(end_ns)
    _write_coordinator(folder, end_ns, tokens=tokens)
    return folder


def _with_next(made: Iterable[Mapping[str, Any]]) -> Iterator[tuple[Mapping[str, Any], int]]:
    """Each chunk, and before which mono_ns no event of a later one comes."""
    chunks = iter(made)
    held = next(chunks)
    for chunk in chunks:
        yield held, int(chunk["opened_us"][0]) * 1000 + EPOCH_NS + min(OFFSETS_NS)
        held = chunk
    yield held, NEVER_NS


class _Shard:
    """The parts of one shard, whose events come in order of time."""

    def __init__(self, folder: Path, number: int, names: Sequence[str], *, tokens: bool) -> None:
        self._folder, self._number, self._names, self._addresses = folder, number, names, pyarrow.array(names)
        _write(folder, number, 0, _start(number, tokens=tokens))
        self._next = 2

    def write(self, events: Array) -> None:
        """Writes the events of this shard among `events`."""
        mine = events[events["shard"] == self._number]
        mine = mine[numpy.argsort(mine["mono_ns"], kind="stable")]
        for first in range(0, len(mine), CHUNK):
            chunk = mine[first : first + CHUNK]
            _write(self._folder, self._number, self._next, _columns(chunk, self._names, self._addresses))
            self._next += len(chunk)

    def end(self, end_ns: int) -> None:
        """The last event of a process that ended well."""
        _write(self._folder, self._number, self._next, {"kind": ["ended"], "mono_ns": [end_ns]})


def _events(chunk: Mapping[str, Any], first: int, home: Array, *, tokens: bool) -> Array:
    """EVENT of everything that the shards do for the connections of a chunk, whose first has the number `first`."""
    codes = chunk["ip"]
    opened_ns = chunk["opened_us"] * 1000 + EPOCH_NS
    closed_ns = opened_ns + numpy.maximum(chunk["lasted_us"] * 1000, 1)
    numbers = numpy.arange(first, first + len(codes))
    shard, homes = numbers % SHARDS, home[codes]
    of_broker = crc32(b"broker") % SHARDS
    every = numpy.arange(len(codes))
    plan = [(ADMITTED, every, shard), (CLOSED, every, shard)]
    if tokens:
        elsewhere = every[shard != homes]
        batches = every[(numbers // SHARDS % BATCH == 0) & (shard != of_broker)]
        plan += [(IP_GRANT, elsewhere, homes[elsewhere]), (IP_RETURN, elsewhere, homes[elsewhere])]
        plan += [(BROKER_GRANT, batches, numpy.full(len(batches), of_broker))]
        plan += [(IP_RATE, every, homes), (LISTENER_RATE, every, numpy.zeros_like(every))]
    parts = []
    for what, which, where in plan:
        part = numpy.empty(len(which), dtype=EVENT)
        at_ns = closed_ns if what in (CLOSED, IP_RETURN) else opened_ns
        part["mono_ns"], part["shard"], part["what"] = at_ns[which] + OFFSETS_NS[what], where, what
        part["conn"], part["ip"], part["of"] = numbers[which], codes[which], shard[which]
        parts.append(part)
    return numpy.concatenate(parts)


def _columns(chunk: Array, names: Sequence[str], addresses: pyarrow.Array) -> dict[str, Any]:
    """Columns of the journal."""
    what, conn, codes = chunk["what"], chunk["conn"], chunk["ip"]
    of_connection = (what == ADMITTED) | (what == CLOSED)
    count = len(chunk)
    columns = {
        "mono_ns": chunk["mono_ns"],
        "kind": pyarrow.array(KINDS).take(pyarrow.array(what)),
        "conn": pyarrow.array(conn + 1, mask=~of_connection),
        "ip": addresses.take(pyarrow.array(codes, mask=~of_connection)),
        "listener": pyarrow.array(["EXTERNAL"]).take(pyarrow.array(numpy.zeros(count, "i4"), mask=~of_connection)),
        "version": pyarrow.array(numpy.ones(count, "i8"), mask=what == CLOSED),
    }
    if of_connection.all():
        return columns
    details = [
        None if each < IP_GRANT else _detail(each, names[code], to, at_ns // 1_000_000)
        for each, code, to, at_ns in zip(
            what.tolist(), codes.tolist(), chunk["of"].tolist(), chunk["mono_ns"].tolist(), strict=True
        )
    ]
    return {**columns, "detail": pyarrow.array(details, type=pyarrow.string())}


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
