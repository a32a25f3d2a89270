"""Where a shard's CPU time goes, for each row of the benchmarks: kernel and interpreter, system calls, functions.

    python scripts/bench/profile_rows.py [--seconds 5] [--only ROW]... [--write]

A cluster of one shard is driven for each tool anew: perf samples the whole process, strace counts its system calls, py-spy its
functions (whoever is on top of the stack; a system call counts for the function that makes it). --write puts the table into
docs/benchmarks.md. Needs perf, strace and py-spy, and the right to use them.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from confluent_kafka import Consumer, Producer, TopicPartition  # noqa: E402 - importable only from here on

from scripts.bench import frames, machine, table  # noqa: E402
from scripts.bench.machine import CannotMeasure, Server  # noqa: E402
from scripts.bench.wire import AT_ITS_CAP, CAP, CAPS  # noqa: E402

TOPIC, PARTITIONS = "profiled", 4
COLUMNS = ("row", "kernel", "interpreter", "C libraries", "system calls, by their time", "functions, by their own time")
_HZ = 499
_WAITING = ("epoll_wait", "restart_syscall", "Poller._run_passes", "Poller.run_pass", "EpollIOManager.get_events")
Load = Callable[[Server], object]
"""Drives the server for some seconds."""


def client(mode: str, **values: object) -> Load:
    return lambda server: machine.drive(server, mode, seconds=2, **values)


def refused(stack: ExitStack) -> Load:
    held = set[int]()

    def load(server: Server) -> None:
        if server.pid not in held:
            held.add(server.pid)
            machine.put(server, {"kafka_connections_max_overrides": [f"{AT_ITS_CAP}:{CAP}"]})
            for sock in machine.held(server.port, AT_ITS_CAP, CAP):
                stack.enter_context(sock)
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


def loads(stack: ExitStack) -> dict[str, Load]:
    api_versions, metadata = (
        stack.enter_context(frames.file_of(one)) for one in (frames.API_VERSIONS, frames.METADATA)
    )
    return {
        "connect + ApiVersions + close": client("connect"),
        "refusals at the cap": refused(stack),
        "ApiVersions, 64 connections": client("requests", frames=api_versions),
        "Metadata, 64 connections": client("requests", frames=metadata),
        "produce, 100 bytes": produced(100),
        "produce, 1,000 bytes": produced(1000),
        "consume, 100 bytes": consumed(100),
        "consume, 1,000 bytes": consumed(1000),
    }


def profile(name: str, load: Load, seconds: float) -> tuple[str, ...]:
    """The cells of a row."""
    with (
        TemporaryDirectory() as folder,
        machine.turnstile(*CAPS, "--topic", f"{TOPIC}:{PARTITIONS}", shards=1) as server,
    ):
        shard = str(machine.tree(server.pid)[-1])
        load(server)
        length = str(int(seconds))

        def under(*command: str) -> None:
            tool = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            over = threading.Event()
            driving = threading.Thread(target=_again_and_again, args=(load, server, over))
            driving.start()
            tool.wait()
            over.set()
            driving.join()

        under("perf", "record", "-q", "-F", str(_HZ), "-o", f"{folder}/perf", "-p", shard, "--", "sleep", length)
        under("timeout", "-s", "INT", length, "strace", "-c", "-f", "-o", f"{folder}/strace", "-p", shard)
        spy = ("py-spy", "record", "--nonblocking", "-r", str(_HZ), "-f", "raw", "-d", length, "-p", shard)
        under(*spy, "-o", f"{folder}/py-spy")
        perf = ["perf", "report", "-i", f"{folder}/perf", "--stdio", "-q", "--sort", "dso"]
        shares = _shares(subprocess.run(perf, capture_output=True, text=True).stdout)
        calls, functions = Path(folder, "strace").read_text(), Path(folder, "py-spy").read_text()
    return name, *shares, _system_calls(calls), _functions(functions)


def _again_and_again(load: Load, server: Server, over: threading.Event) -> None:
    while not over.is_set():
        load(server)


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
    rows = []
    with ExitStack() as stack:
        for name, load in loads(stack).items():
            if not asked.only or name in asked.only:
                print(f"profiling {name} ...", file=sys.stderr, flush=True)
                try:
                    rows.append(profile(name, load, asked.seconds))
                except CannotMeasure as reason:
                    print(reason, file=sys.stderr)
                    return 1
    table.show_plain("Where the CPU time of a shard goes", COLUMNS, rows)
    if asked.write:
        table.write_plain(COLUMNS, rows, ROOT / "docs" / "benchmarks.md", mark="profile table", where="one shard")
    return 0


if __name__ == "__main__":
    sys.exit(main())
