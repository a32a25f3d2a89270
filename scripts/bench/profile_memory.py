"""The lines that allocate the memory of a tracked address, at its home and at its holder, by tracemalloc of a million of them.

    python scripts/bench/profile_memory.py [--addresses 1000000] [--write]

Both shards are in one process, and what they send each other is packed as between processes. An address is tracked at both, so
lines of both (the table of pools, the wheel) allocate the same for each. --write puts the table into docs/internals/benchmarks.md.
"""

from __future__ import annotations

import argparse
import itertools
import linecache
import sys
import tracemalloc
from pathlib import Path

import msgpack
from rich.markup import escape

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from scripts.bench import table  # noqa: E402 - importable only from here on
from scripts.bench.tokens import Pair, Waiter  # noqa: E402
from shards.ownership import home_of  # noqa: E402

HOLDER, HOME = 0, 1
COLUMNS = ("bytes an address", "allocated by")
_LEAST_BYTES = 1.0


def track(pair: Pair, addresses: int) -> None:
    """One shard takes a token of each address, all of them at home at the other."""
    keys = (f"ip:10.{number >> 16 & 255}.{number >> 8 & 255}.{number & 255}" for number in itertools.count())
    waiter = Waiter()
    for key in itertools.islice((key for key in keys if home_of(key, 2) == HOME), addresses):
        pair.shards[HOLDER].take((key,), waiter)
        pair.shards[HOLDER].flush()
        while pair.on_the_way:
            sender, peer, message = pair.on_the_way.popleft()
            pair.shards[peer].receive(sender, msgpack.unpackb(msgpack.packb(message)))
            pair.shards[peer].flush()


def rows(addresses: int) -> list[tuple[str, str]]:
    """The lines that allocated most, by what an address takes."""
    pair = Pair()
    tracemalloc.start()
    track(pair, addresses)
    found = []
    for each in tracemalloc.take_snapshot().statistics("lineno"):
        size, frame = each.size / addresses, each.traceback[0]
        if size >= _LEAST_BYTES:
            path, line = Path(frame.filename), linecache.getline(frame.filename, frame.lineno).strip()
            place = path.relative_to(ROOT) if path.is_relative_to(ROOT) else path.name
            found.append((f"{size:.0f}", f"`{place}`: `{line}`"))
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--addresses", type=int, default=1_000_000)
    parser.add_argument("--write", action="store_true")
    asked = parser.parse_args()
    found = rows(asked.addresses)
    shown = [(size, escape(place)) for size, place in found]
    table.show_plain(f"What each of {asked.addresses:,} tracked addresses takes", COLUMNS, shown)
    if asked.write:
        where = f"{asked.addresses:,} addresses, home and holder in one process"
        table.write_plain(
            COLUMNS, found, ROOT / "docs" / "internals" / "benchmarks.md", mark="memory table", where=where
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
