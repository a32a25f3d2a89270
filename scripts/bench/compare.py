"""Two checkouts side by side: each row of the benchmarks before and after, in interleaved pairs of runs.

    python scripts/bench/compare.py BEFORE [--rounds 9] [--seconds 1.0] [--only ROW]...

BEFORE is another checkout of this repository with an environment of its own in .venv. Runs go before, after, after, before,
..., so that a machine that becomes slower or faster hits both alike. Most rows start a cluster for each run: two processes
of the same code differ by up to 20 % for as long as they live. The client is this checkout's wherever a cluster is driven.
A figure is the median of its runs, the ratio the median of after/before of each pair, with the quartiles of the pairs
beside it: a ratio whose quartiles lie on both sides of 1 is noise.

CPU time per operation says more than a rate: on few cores client and servers share them.
"""

from __future__ import annotations

import argparse
import itertools
import json
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from scripts.bench import (  # noqa: E402 - importable only from here on
    consuming,
    frames,
    held,
    machine,
    producing,
    secured,
    security,
    table,
    wire,
)
from scripts.bench import requests as requested  # noqa: E402
from scripts.bench.machine import CannotMeasure, Server  # noqa: E402
from scripts.bench.pairs import Figure, Pair, Row, figures  # noqa: E402
from scripts.bench.wire import AT_ITS_CAP, CAPS  # noqa: E402
from scripts.peers.fetching import Missing  # noqa: E402
from scripts.peers.jars import Tools  # noqa: E402

RATES = {"max.connection.creation.rate": 1_000_000}
IP_RATE = {"connection_creation_rate": 100_000.0}
RECORDS = {100: 500_000, 1000: 150_000}
READ = {100: 2_000_000, 1000: 500_000}
MANY = 8
"""Shards of the row in which they are more than cores."""
PROTOCOLS = {"tls": "TLS", "sasl": "SASL PLAIN"}
"""Part of a row's name -> security protocol."""
IN_A_PROCESS = {
    "decisions": "tokens.decisions(200_000)",
    "across": "tokens.across(10_000)",
    "borrow": "borrow.rows(1000, 200_000)",
    "replay": "replaying.rows(200_000, 1)",
}
"""Row -> what yields it in the benchmarks of either checkout: these run that checkout's modules themselves."""
_SCRIPT = """
import json
from scripts.bench import borrow, replaying, tokens
print(json.dumps([(row.what, row.value) for row in {call}]))
"""
Rows = Callable[[Path], Iterator[table.Row]]


FRESH: dict[str, Rows] = {
    "start-up": lambda checkout: wire.start_up(3, checkout),
    "held": lambda checkout: held.rows(2000, 3.0, 1, checkout),
    "idle": lambda checkout: wire.idle(1, checkout),
    "config": lambda checkout: wire.config_change(1, checkout),
}
"""Row -> what yields it from clusters that it starts itself from a checkout."""


def main() -> int:
    """Measure and print; the exit code says whether everything could be measured."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("before", type=Path)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--seconds", type=float, default=1.0)
    parser.add_argument("--only", action="append", metavar="ROW")
    asked = parser.parse_args()
    checkouts = asked.before.resolve(), ROOT
    known = rows(checkouts, asked.seconds)
    if unknown := [name for name in asked.only or () if name not in known]:
        parser.error(f"there is no row {unknown[0]}; there are {', '.join(known)}")
    failed = False
    found: list[tuple[str, ...]] = []
    for name in asked.only or known:
        print(f"measuring {name} ...", file=sys.stderr, flush=True)
        try:
            with known[name]() as pair:
                found += [(name, *_cells(figure)) for figure in figures(pair, asked.rounds)]
        except (CannotMeasure, Missing) as reason:
            failed = True
            found.append((name, f"not measured: {reason}", "", "", "", ""))
    columns = ("row", "figure", "before", "after", "after/before", "quartiles")
    table.show_plain(f"{asked.rounds} pairs of runs: {checkouts[0]} and {ROOT}", columns, found)
    return 1 if failed else 0


def rows(checkouts: tuple[Path, Path], seconds: float) -> dict[str, Row]:
    """The rows by name. `seconds`: the length of a run over the wire."""
    return {
        "connections": partial(_new_clusters, checkouts, partial(connections, seconds)),
        "connections-8": partial(_new_clusters, checkouts, partial(connections, seconds), MANY),
        "rated": partial(_new_clusters, checkouts, partial(rated, seconds)),
        "refusals": partial(_new_clusters, checkouts, partial(refusals, seconds)),
        "refusals-1": partial(_new_clusters, checkouts, partial(refusals, seconds), 1),
        "refusals-4": partial(_new_clusters, checkouts, partial(refusals, seconds), 4),
        "api-versions": partial(requests, checkouts, seconds, frames.API_VERSIONS),
        "metadata": partial(requests, checkouts, seconds, frames.METADATA),
        "metered": partial(metered, checkouts, seconds),
        "produce-100": partial(produce, checkouts, 100),
        "produce-1000": partial(produce, checkouts, 1000),
        "consume-100": partial(consume, checkouts, 100),
        "consume-1000": partial(consume, checkouts, 1000),
        **{name: partial(secured_connections, checkouts, seconds, of) for name, of in PROTOCOLS.items()},
        **{f"produce-{name}": partial(secured_produce, checkouts, of) for name, of in PROTOCOLS.items()},
        **{name: partial(_pair, checkouts, rows_of) for name, rows_of in FRESH.items()},
        **{name: partial(_pair, checkouts, partial(in_a_process, call)) for name, call in IN_A_PROCESS.items()},
    }


def _cells(figure: Figure) -> tuple[str, ...]:
    return (
        figure.name,
        f"{figure.before:,.4g}",
        f"{figure.after:,.4g}",
        f"{figure.ratio.median:.3f}",
        f"{figure.ratio.low:.3f} .. {figure.ratio.high:.3f}",
    )


# --- over the wire: connections, on a cluster for each run ------------------------------------------------------------


@contextmanager
def _new_clusters(
    checkouts: tuple[Path, Path], measure: Callable[[Server], dict[str, float]], shards: int = machine.SHARDS
) -> Iterator[Pair]:
    """A Turnstile for each run."""

    def one(checkout: Path) -> dict[str, float]:
        with machine.turnstile(*CAPS, shards=shards, checkout=checkout) as server:
            return measure(server)

    yield Pair(*(partial(one, each) for each in checkouts))


def _drive(server: Server, mode: str, what: str, seconds: float, wanted: str, **values: object) -> dict[str, float]:
    load = machine.drive(server, mode, seconds=seconds, **values)
    if getattr(load, wanted) < load.answered + load.refused:
        raise CannotMeasure(f"{load.answered} answered, {load.refused} refused; all should be {wanted}")
    return {f"server CPU, us per {what}": load.cpu_us, f"{what}s/s": load.per_s}


def _twice(server: Server, seconds: float, what: str, wanted: str, **values: object) -> dict[str, float]:
    """The second of two runs: the first events of a journal make its converter import pyarrow."""
    _drive(server, "connect", what, seconds, wanted, **values)
    machine.settle(server)
    return _drive(server, "connect", what, seconds, wanted, **values)


def connections(seconds: float, server: Server) -> dict[str, float]:
    """Connect, ApiVersions, close, from a thousand addresses below their caps."""
    return _twice(server, seconds, "connection", "answered")


def rated(seconds: float, server: Server) -> dict[str, float]:
    """Connections with creation rates set for the broker and for each address, far above what comes."""
    machine.put(server, dict(RATES))
    machine.put_quota(server, {"ip": None}, IP_RATE)  # type: ignore[dict-item]  # the default of all addresses
    return _twice(server, seconds, "connection", "answered")


def refusals(seconds: float, server: Server) -> dict[str, float]:
    """One address at its cap that goes on connecting."""
    with wire.at_its_cap(server):
        return _twice(server, seconds, "refusal", "refused", sources=1, base=AT_ITS_CAP)


# --- over the wire: requests and records, on clusters that run all the time and are driven in turns -------------------


@contextmanager
def _both(checkouts: tuple[Path, Path], *options: str) -> Iterator[tuple[Server, Server]]:
    """A Turnstile of each checkout."""
    with ExitStack() as stack:
        before, after = (stack.enter_context(machine.turnstile(*options, checkout=each)) for each in checkouts)
        yield before, after


def _in_turns(servers: tuple[Server, Server], measure: Callable[[Server], dict[str, float]]) -> Pair:
    before, after = (partial(measure, each) for each in servers)
    return Pair(before, after, partial(machine.settle, *servers))


@contextmanager
def requests(checkouts: tuple[Path, Path], seconds: float, frame: bytes) -> Iterator[Pair]:
    """One request, over and over, one in flight on each of 64 connections."""
    with _both(checkouts, *CAPS) as servers, frames.file_of(frame) as path:

        def one(server: Server) -> dict[str, float]:
            return _drive(server, "requests", "request", seconds, "answered", concurrency=64, frames=path)

        yield _in_turns(servers, one)


@contextmanager
def metered(checkouts: tuple[Path, Path], seconds: float) -> Iterator[Pair]:
    """Produce and Fetch of 64 clients in turn, charged to byte quotas that none reaches."""
    topic, partitions = requested.TOPIC, requested.PARTITIONS
    kinds = frames.produce_and_fetch(requested.CONNECTIONS, topic, partitions)
    with _both(checkouts, "--topic", f"{topic}:{partitions}") as servers, frames.file_of(*kinds) as path:

        def one(server: Server) -> dict[str, float]:
            load = requested.produce_and_fetch(server, path, seconds)
            return {"server CPU, us per request": load.cpu_us, "requests/s": load.per_s}

        for server in servers:
            requested.set_quotas(server)
        yield _in_turns(servers, one)


@contextmanager
def produce(checkouts: tuple[Path, Path], size: int) -> Iterator[Pair]:
    """kafka-producer-perf-test with records of `size` bytes."""
    with _both(checkouts, "--set", f"num.partitions={producing.PARTITIONS}") as servers, Tools() as tools:

        def one(server: Server) -> dict[str, float]:
            done = producing.run(tools, _peer(server), "compared", size, RECORDS[size])
            return {"server CPU, us per record": done.cpu_us, "records/s": done.per_s}

        yield _in_turns(servers, one)


@contextmanager
def consume(checkouts: tuple[Path, Path], size: int) -> Iterator[Pair]:
    """kafka-consumer-perf-test of records of `size` bytes, each run in a group of its own."""
    groups = itertools.count()
    with _both(checkouts, "--set", f"num.partitions={producing.PARTITIONS}") as servers:

        def one(server: Server) -> dict[str, float]:
            done = consuming.consume(_peer(server), "compared", f"g-{next(groups)}", READ[size])
            return {"server CPU, us per record": done.cpu_us, "records/s": done.per_s}

        for server in servers:
            producing.produce(_peer(server), "compared", size, READ[size])
        yield _in_turns(servers, one)


def _peer(server: Server, properties: str = "") -> producing.Peer:
    return producing.Peer("Turnstile", f"127.0.0.1:{server.port}", server.pid, properties)


# --- over the wire: with TLS or SASL ----------------------------------------------------------------------------------


@contextmanager
def secured_connections(checkouts: tuple[Path, Path], seconds: float, protocol: str) -> Iterator[Pair]:
    """Connect, TLS handshake or login, ApiVersions, close, on a Turnstile for each run."""
    with security.PROTOCOLS[protocol]() as wanted:

        def one(checkout: Path) -> dict[str, float]:
            with security.turnstile(wanted, *CAPS, checkout=checkout) as server:
                return _twice(server, seconds, "connection", "answered", **wanted.client)

        yield Pair(*(partial(one, each) for each in checkouts))


@contextmanager
def secured_produce(checkouts: tuple[Path, Path], protocol: str) -> Iterator[Pair]:
    """kafka-producer-perf-test with records of secured.SIZE bytes."""
    with security.PROTOCOLS[protocol]() as wanted, Tools() as tools, ExitStack() as stack:
        partitions = ("--set", f"num.partitions={producing.PARTITIONS}")
        sides = [stack.enter_context(security.turnstile(wanted, *partitions, checkout=each)) for each in checkouts]

        def one(server: Server) -> dict[str, float]:
            done = producing.run(
                tools, _peer(server, wanted.properties), "compared", secured.SIZE, RECORDS[secured.SIZE]
            )
            return {"server CPU, us per record": done.cpu_us, "records/s": done.per_s}

        yield _in_turns((sides[0], sides[1]), one)


# --- rows of the benchmarks, whose numbers are figures ---------------------------------------------------------------


@contextmanager
def _pair(checkouts: tuple[Path, Path], rows_of: Rows) -> Iterator[Pair]:
    def one(checkout: Path) -> dict[str, float]:
        return {
            name: float(number.replace(",", ""))
            for row in rows_of(checkout)
            for name, number in _numbers(row.what, row.value)
        }

    yield Pair(*(partial(one, each) for each in checkouts))


def in_a_process(call: str, checkout: Path) -> Iterator[table.Row]:
    """The rows that `call` yields in a process of the checkout."""
    command = [str(checkout / ".venv" / "bin" / "python"), "-c", _SCRIPT.format(call=call)]
    done = subprocess.run(command, cwd=checkout, capture_output=True, text=True)
    if done.returncode:
        raise CannotMeasure(f"{call} of {checkout.name}: {done.stderr.strip().splitlines()[-1:]}")
    for what, value in json.loads(done.stdout.splitlines()[-1]):
        yield table.Row(what, value)


def _numbers(what: str, value: str) -> Iterator[tuple[str, str]]:
    """(name, number) of each number of a row's value, without quartiles: "p50 99 us (98 .. 103), p99 571 us" has two."""
    for part in value.split(", "):
        found = re.fullmatch(r"(?:(p\d+) )?([\d.,]+) ?(.*?)(?: \([^)]*\))?", part)
        if found:
            name, number, unit = found.groups()
            yield f"{what}{' ' + name if name else ''}, {unit}", number


if __name__ == "__main__":
    sys.exit(main())
