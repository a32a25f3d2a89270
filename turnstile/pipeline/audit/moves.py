"""Every `grant` and `reclaim` of a journal (docs/internals/journal.md), read once: moves of tokens, and changes of rates' windows.

One row per event and pool. What can't be read is a row, too (BAD), so that a check can say that it does not know.
"""

import json
from collections.abc import Sequence

import numpy
import pyarrow
import pyarrow.compute
import pyarrow.json

from turnstile.pipeline.events import arrays
from turnstile.pipeline.events.arrays import EventDetail, TableRow
from turnstile.pipeline.events.rows import Rows

GRANT, REPORT, RETURN, LOST, RATE, START, BAD = "grant", "report", "return", "lost", "rate", "start", "bad"
TOKENS = (GRANT, REPORT, RETURN, LOST)
READ = ("broker", "shard", "epoch", "seq", "mono_ns", "version", "kind", "detail")
MOVES = pyarrow.schema(
    [
        ("broker", pyarrow.int32()),
        ("shard", pyarrow.int32()),
        *((name, pyarrow.int64()) for name in ("epoch", "seq", "at_ns", "version")),
        ("what", pyarrow.string()),
        ("pool", pyarrow.string()),
        ("peer", pyarrow.int32()),
        ("tokens", pyarrow.int64()),
        ("at_ms", pyarrow.int64()),
        *((name, pyarrow.bool_()) for name in ("is_grant", "is_violated", "is_charged")),
        ("detail", pyarrow.string()),
    ]
)
"""`shard`: the home that noted it. `tokens`: positive when they leave the home, negative when they come back; for a rate, its
units. `pool`: for a rate, without the prefix `rate:`. `detail`: for START only, the other fields of the event."""
_JSON = pyarrow.schema(
    [
        ("pool", pyarrow.string()),
        *((name, pyarrow.int64()) for name in ("to", "from", "tokens", "at_ms")),
        *((name, pyarrow.bool_()) for name in ("reported", "violated", "charged")),
    ]
)
_BLOCK = 64 << 20


def moves(events: Rows) -> Rows:
    """MOVES of a journal."""
    return events.of_kinds(("grant", "reclaim"), READ).each(parse, MOVES)


def parse(table: pyarrow.Table) -> pyarrow.Table:
    """MOVES from the columns of READ."""
    if not table.num_rows:
        return MOVES.empty_table()
    detail = table["detail"].cast(pyarrow.string())
    has_more = numpy.zeros(table.num_rows, dtype=bool)
    for word in ('"lost"', '"remembered"', "\n"):
        has_more |= pyarrow.compute.match_substring(detail, word).to_numpy()
    plain, rest = (table.filter(pyarrow.array(each)) for each in (~has_more, has_more))
    try:
        read = _read(plain["detail"].to_pylist()) if plain.num_rows else _JSON.empty_table()
    except pyarrow.ArrowInvalid:
        plain, rest, read = table.slice(0, 0), table, _JSON.empty_table()
    return pyarrow.concat_tables([_plain(plain, read), pyarrow.Table.from_pylist(_slowly(rest), MOVES)])


def _read(details: Sequence[str]) -> pyarrow.Table:
    """_JSON of each, in one go. Raises ArrowInvalid where one is of another shape."""
    options = pyarrow.json.ParseOptions(explicit_schema=_JSON, unexpected_field_behavior="ignore")
    read = pyarrow.json.read_json(
        pyarrow.BufferReader("\n".join(details).encode()), pyarrow.json.ReadOptions(use_threads=False, block_size=_BLOCK),
        options,
    )  # fmt: skip
    if read.num_rows != len(details):
        raise pyarrow.ArrowInvalid("a line each is expected")
    return read


def _plain(table: pyarrow.Table, read: pyarrow.Table) -> pyarrow.Table:
    """MOVES of events that are about one pool each."""
    is_grant = arrays.is_one_of(table, "kind", ("grant",))
    pool, pools = arrays.codes(read, "pool")
    is_rate = numpy.array([str(name).startswith("rate:") for name in pools])[pool]
    has_peer = arrays.present(read, "to") | arrays.present(read, "from")
    is_whole = (arrays.present(read, "pool") & arrays.present(read, "tokens") & has_peer) & (
        ~is_rate | arrays.present(read, "at_ms")
    )
    is_report = arrays.present(read, "reported")
    what = numpy.select([~is_whole, is_rate, is_report, is_grant], [BAD, RATE, REPORT, GRANT], RETURN)
    names = pyarrow.array([str(name).removeprefix("rate:") for name in pools])
    tokens = arrays.numbers(read, "tokens")
    return arrays.table_of(
        MOVES,
        **{name: table[name] for name in ("broker", "shard", "epoch", "seq", "version")},
        at_ns=table["mono_ns"],
        what=what,
        pool=names.take(pyarrow.array(pool)),
        peer=numpy.where(arrays.present(read, "to"), arrays.numbers(read, "to"), arrays.numbers(read, "from")),
        tokens=numpy.where(is_grant | is_rate, tokens, -tokens),
        at_ms=read["at_ms"],
        is_grant=is_grant,
        is_violated=pyarrow.compute.fill_null(read["violated"], False),
        is_charged=pyarrow.compute.fill_null(read["charged"], True),
        detail=pyarrow.nulls(table.num_rows, pyarrow.string()),
    )


def _slowly(table: pyarrow.Table) -> list[TableRow]:
    """MOVES of any events, one by one."""
    rows = []
    for event in table.to_pylist():
        same = {name: event[name] for name in ("broker", "shard", "epoch", "seq", "version")}
        same |= {
            "at_ns": event["mono_ns"],
            "is_grant": event["kind"] == "grant",
            "is_violated": False,
            "is_charged": True,
        }
        try:
            rows += [{**same, **each} for each in _told(json.loads(event["detail"]), is_grant=event["kind"] == "grant")]
        except (ValueError, KeyError, TypeError, AttributeError):
            rows.append({**same, "what": BAD})
    return rows


def _told(detail: EventDetail, *, is_grant: bool) -> list[TableRow]:
    """The pools that one event is about. Raises ValueError, KeyError, TypeError or AttributeError for another shape."""
    if "lost" in detail:
        peer = int(detail["from"])
        return [{"what": LOST, "pool": pool, "peer": peer, "tokens": -int(n)} for pool, n in detail["lost"].items()]
    pool = detail["pool"]
    if "remembered" in detail:
        remembered = [(int(at_ms), str(key), int(units)) for at_ms, key, units in detail["remembered"]]
        rest = {"started": bool(detail["started"]), "remembered": remembered}
        return [{"what": START, "pool": pool.removeprefix("rate:"), "detail": json.dumps(rest)}]
    tokens = int(detail["tokens"])
    one = {"pool": pool.removeprefix("rate:"), "peer": int(detail["to"] if "to" in detail else detail["from"])}
    if pool.startswith("rate:"):
        more = {"is_violated": bool(detail.get("violated")), "is_charged": bool(detail.get("charged", True))}
        return [{**one, **more, "what": RATE, "tokens": tokens, "at_ms": int(detail["at_ms"])}]
    what = REPORT if detail.get("reported") else GRANT if is_grant else RETURN
    return [{**one, "what": what, "tokens": tokens if is_grant else -tokens}]
