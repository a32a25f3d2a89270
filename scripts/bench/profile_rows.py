"""Where a shard's CPU time goes, for each row of the benchmarks: kernel and interpreter, system calls, functions.

    python scripts/bench/profile_rows.py [--seconds 5] [--only ROW]... [--write]

A cluster of one shard, where the row doesn't say otherwise, is driven for each tool anew: perf samples its shards, strace counts
their system calls, py-spy the functions of two of them at most (the one on top of the stack; a system call counts for the
function that makes it). --write puts the table into docs/internals/benchmarks.md.
Needs perf, strace and py-spy, and the right to use them.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from confluent_kafka import Consumer, Producer, TopicPartition  # noqa: E402 - importable only from here on

from scripts.bench import borrow, frames, machine, requests, table  # noqa: E402
from scripts.bench.machine import CannotMeasure, Server  # noqa: E402
from scripts.bench.wire import AT_ITS_CAP, CAPS, at_its_cap  # noqa: E402

TOPIC, PARTITIONS = "profiled", 4
COLUMNS = ("row", "kernel", "interpreter", "C libraries", "system calls, by their time", "functions, by their own time")
_WHERE = "one shard, but where the row says more"
_HZ = 499
_MANY = 50_000_000  # more than are asked for while the tools look
_WAITING = (
    "epoll_wait", "restart_syscall", "sched_yield",
    "Poller._run_passes", "Poller._wait", "Poller.run_pass", "EpollIOManager.get_events",
)  # fmt: skip
_SPIED_ON = 2  # py-spy takes a good part of a core for each process
Load = Callable[[Server], object]
"""Drives the server for some seconds."""


class Subject(NamedTuple):
    """The processes of a row, and what drives them for some seconds."""

    pids: list[int]
    drive: Callable[[], object]


Row = Callable[[], AbstractContextManager[Subject]]


def cluster(load: Load, shards: int = 1) -> Row:
    """The shards of a cluster with caps and a topic, under a load."""

    @contextmanager
    def run() -> Iterator[Subject]:
        with machine.turnstile(*CAPS, "--topic", f"{TOPIC}:{PARTITIONS}", shards=shards) as server:
            load(server)
            yield Subject(machine.tree(server.pid)[-shards:], lambda: load(server))

    return run


def borrowing(*, addresses: int) -> Row:
    """The home and the holder of so many addresses."""

    @contextmanager
    def run() -> Iterator[Subject]:
        with borrow.home_process() as (home, holder_command):
            command = [*holder_command, "1", str(addresses)]
            holder = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL)
            try:
                time.sleep(1)
                yield Subject([home, holder.pid], lambda: time.sleep(0.1))
            finally:
                holder.terminate()
                holder.wait()

    return run


def client(mode: str, **values: object) -> Load:
    return lambda server: machine.drive(server, mode, seconds=2, **values)


def refused(stack: ExitStack) -> Load:
    held = set[int]()

    def load(server: Server) -> None:
        if server.pid not in held:
            held.add(server.pid)
            stack.enter_context(at_its_cap(server))
        machine.drive(server, "connect", seconds=2, sources=1, base=AT_ITS_CAP)

    return load


def produced(size: int) -> Load:
    def load(server: Server) -> None:
        producer = Producer(
            {"bootstrap.servers": f"127.0.0.1:{server.port}", "linger.ms": 5, "batch.size": 16384, "log_level": 0}
        )
        for _ in range(40_000_000 // size):
            while True:
                try:
                    producer.produce(TOPIC, b"x" * size)
                    break
                except BufferError:
                    producer.poll(0.01)
        producer.flush(30)

    return load


def consumed(size: int) -> Load:
    fill, filled = produced(size), set[int]()

    def load(server: Server) -> None:
        if server.pid not in filled:
            filled.add(server.pid)
            fill(server)
        consumer = Consumer({"bootstrap.servers": f"127.0.0.1:{server.port}", "group.id": "g", "log_level": 0})
        consumer.assign([TopicPartition(TOPIC, partition, 0) for partition in range(PARTITIONS)])
        left = 40_000_000 // size
        while left > 0:
            left -= len(consumer.consume(10_000, 1.0))
        consumer.close()

    return load


def metered(path: str) -> Load:
    """Each of 64 clients produces and fetches in turn, under byte rates that none of them reaches."""
    limited = set[int]()

    def load(server: Server) -> None:
        if server.pid not in limited:
            limited.add(server.pid)
            requests.set_quotas(server)
        requests.produce_and_fetch(server, path, seconds=2)

    return load


def rows(stack: ExitStack) -> dict[str, Row]:
    api_versions, metadata = (
        stack.enter_context(frames.file_of(one)) for one in (frames.API_VERSIONS, frames.METADATA)
    )
    in_turn = stack.enter_context(frames.file_of(*frames.produce_and_fetch(requests.CONNECTIONS, TOPIC, PARTITIONS)))
    return {
        "connect + ApiVersions + close": cluster(client("connect")),
        "the same, 8 shards": cluster(client("connect"), shards=8),
        "refusals at the cap": cluster(refused(stack)),
        "refusals at the cap, 2 shards": cluster(refused(stack), shards=2),
        "ApiVersions, 64 connections": cluster(client("requests", frames=api_versions)),
        "Metadata, 64 connections": cluster(client("requests", frames=metadata)),
        "Produce + Fetch with byte quotas, 2 shards": cluster(metered(in_turn), shards=2),
        "borrow, busy: home and holder": borrowing(addresses=_MANY),
        "produce, 100 bytes": cluster(produced(100)),
        "produce, 1,000 bytes": cluster(produced(1000)),
        "consume, 100 bytes": cluster(consumed(100)),
        "consume, 1,000 bytes": cluster(consumed(1000)),
    }


def profile(name: str, row: Row, seconds: float) -> tuple[str, ...]:
    """The cells of a row."""
    with TemporaryDirectory() as folder, row() as subject:
        length, pids = str(int(seconds)), [str(pid) for pid in subject.pids]

        def under(*commands: Sequence[str]) -> None:
            tools = [subprocess.Popen(each, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) for each in commands]
            over = threading.Event()
            driving = threading.Thread(target=_again_and_again, args=(subject.drive, over))
            driving.start()
            for tool in tools:
                tool.wait()
            over.set()
            driving.join()

        record = ["perf", "record", "-q", "-F", str(_HZ), "-o", f"{folder}/perf", "-p", ",".join(pids)]
        under([*record, "--", "sleep", length])
        attached = [word for pid in pids for word in ("-p", pid)]
        under(["timeout", "-s", "INT", length, "strace", "-c", "-f", "-o", f"{folder}/strace", *attached])
        spy = ["py-spy", "record", "--nonblocking", "-r", str(_HZ), "-f", "raw", "-d", length]
        spied_on = pids[:_SPIED_ON]
        under(*([*spy, "-p", pid, "-o", f"{folder}/py-spy-{pid}"] for pid in spied_on))
        perf = ["perf", "report", "-i", f"{folder}/perf", "--stdio", "-q", "--sort", "dso"]
        shares = _shares(subprocess.run(perf, capture_output=True, text=True).stdout)
        calls = Path(folder, "strace").read_text()
        stacks = "".join(Path(folder, f"py-spy-{pid}").read_text() for pid in spied_on)
    return name, *shares, _system_calls(calls), _functions(stacks)


def _again_and_again(drive: Callable[[], object], over: threading.Event) -> None:
    while not over.is_set():
        drive()


def _shares(report: str) -> tuple[str, str, str]:
    kernel = interpreter = 0.0
    for line in report.splitlines():
        share, _, where = line.strip().partition("%")
        if "[kernel" in where or "[vdso]" in where:
            kernel += float(share)
        elif "python" in where and "cpython-" not in where:
            interpreter += float(share)
    return f"{kernel:.0f} %", f"{interpreter:.0f} %", f"{max(100 - kernel - interpreter, 0):.0f} %"


def _system_calls(summary: str, most: int = 6) -> str:
    rows = [line.split() for line in summary.splitlines()]
    times = {row[-1]: float(row[1]) for row in rows if len(row) >= 5 and row[0].replace(".", "").isdigit()}
    times = {name: spent for name, spent in times.items() if name != "total" and name not in _WAITING}
    total = sum(times.values()) or 1
    ranked = sorted(times, key=times.__getitem__, reverse=True)
    return ", ".join(f"{name} {times[name] / total:.0%}" for name in ranked[:most] if times[name] >= total / 100)


def _functions(stacks: str, most: int = 5) -> str:
    own: Counter[str] = Counter()
    for line in stacks.splitlines():
        stack, _, count = line.rpartition(" ")
        own[stack.rpartition(";")[2].partition(" (")[0]] += int(count)
    for name in _WAITING:
        own.pop(name, None)
    total = own.total() or 1
    return ", ".join(f"`{name}` {count / total:.0%}" for name, count in own.most_common(most))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=5.0)
    parser.add_argument("--only", action="append", metavar="ROW")
    parser.add_argument("--write", action="store_true")
    asked = parser.parse_args()
    missing = [tool for tool in ("perf", "strace", "py-spy") if shutil.which(tool) is None]
    if missing:
        print(f"not installed: {', '.join(missing)}", file=sys.stderr)
        return 1
    table_rows = []
    with ExitStack() as stack:
        for name, row in rows(stack).items():
            if not asked.only or name in asked.only:
                print(f"profiling {name} ...", file=sys.stderr, flush=True)
                try:
                    table_rows.append(profile(name, row, asked.seconds))
                except CannotMeasure as reason:
                    print(reason, file=sys.stderr)
                    return 1
    table.show_plain("Where the CPU time of a shard goes", COLUMNS, table_rows)
    if asked.write:
        table.write_plain(
            COLUMNS,
            table_rows,
            ROOT / "docs" / "internals" / "benchmarks.md",
            mark="profile table",
            where=_WHERE,
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
