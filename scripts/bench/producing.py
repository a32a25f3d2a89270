"""Benchmark of produce: Kafka's own `kafka-producer-perf-test`, unthrottled, against Turnstile, a real Kafka and kfake."""

from __future__ import annotations

import re
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from operator import attrgetter
from tempfile import TemporaryDirectory
from typing import NamedTuple, TypeVar

from scripts.bench import machine
from scripts.bench.machine import CannotMeasure
from scripts.bench.rounds import CPU, OURS, RATE, Quantity, Quartiles, Rounds, measured, rate_row, take_turns
from scripts.bench.table import Row
from scripts.peers import servers
from scripts.peers.fetching import Missing
from scripts.peers.jars import MAINS, Tools, classpath

RECORDS = {100: 2_000_000, 1000: 600_000}
"""Record size in bytes -> how many of them one run sends."""
PARTITIONS = 4
LATENCY = Quantity(attrgetter("latency_ms"), ".0f", " ms")
CPU_OF_RECORDS = CPU._replace(digits=".2f")
_BATCH_BYTES = 16 * 1024  # the tool's batch.size
_SAID = re.compile(r"^\d+ records sent, ([\d.]+) records/sec .* ([\d.]+) ms avg latency", re.MULTILINE)

T = TypeVar("T")


class Peer(NamedTuple):
    """A broker under test. `properties`: the path of a file of properties of its clients, if they need any."""

    name: str
    bootstrap: str
    pid: int
    properties: str = ""

    @property
    def config(self) -> Sequence[str]:
        """The option by which Kafka's tools are told of `properties`."""
        return ("--command-config", self.properties) if self.properties else ()


class Produced(NamedTuple):
    """The measurements of one run: records a second, the client's mean latency, the server's CPU time per record."""

    per_s: float
    latency_ms: float
    cpu_us: float


def rows(rounds: int, share: float) -> Iterator[Row]:
    """Turnstile's figures beside those of its peers, taken in turns; `share` of RECORDS in each run."""
    with ExitStack() as stack:
        try:
            peers = brokers(stack)
            tools = stack.enter_context(Tools())
        except Missing as missing:
            raise CannotMeasure(str(missing)) from missing
        for size, most in RECORDS.items():
            records = int(most * share)
            found = runs_of(tools, peers, rounds, f"perf-{size}", size, records)
            yield from _rows(size, found, measured(rounds, partial(floor_us, size, records)))


def runs_of(
    tools: Tools, peers: Mapping[str, Peer], rounds: int, topic: str, size: int, records: int
) -> Rounds[Produced]:
    """Each run into a topic of its own, whose name begins with `topic`."""
    return take_turns(
        rounds, peers, lambda peer, number: run(tools, peer, f"{topic}-{number}", size, records), (RATE, CPU)
    )


def brokers(stack: ExitStack) -> dict[str, Peer]:
    """All three by name, running. Raises Missing."""
    turnstile = stack.enter_context(machine.turnstile("--set", f"num.partitions={PARTITIONS}"))
    kafka = stack.enter_context(servers.kafka({"num.partitions": str(PARTITIONS)}))
    kfake = stack.enter_context(servers.kfake(partitions=PARTITIONS))
    running = (
        Peer(OURS, f"127.0.0.1:{turnstile.port}", turnstile.pid),
        Peer("Kafka 4.3", kafka.bootstrap, kafka.pid),
        Peer("kfake", kfake.bootstrap, kfake.pid),
    )
    return {peer.name: peer for peer in running}


def run(tools: Tools, peer: Peer, topic: str, size: int, records: int) -> Produced:
    """One run into a topic of its own, made by asking for it and deleted again, so that no broker's memory or disk fills up."""
    produced = produce(peer, topic, size, records)
    deleted = tools("kafka-topics", "--bootstrap-server", peer.bootstrap, *peer.config, "--delete", "--topic", topic)
    if deleted.code:
        raise CannotMeasure(f"{peer.name} does not delete a topic: {(deleted.err or deleted.out).strip()}")
    time.sleep(1)  # the work of a broker after a deletion should not count for the next run
    return produced


def produce(peer: Peer, topic: str, size: int, records: int) -> Produced:
    """One run."""
    options = ["--topic", topic, "--num-records", str(records), "--record-size", str(size), "--throughput", "-1"]
    options += ["--producer-props", f"bootstrap.servers={peer.bootstrap}", *peer.config]
    said, cpu_s = perf_test("kafka-producer-perf-test", peer, options, _SAID.findall)
    return Produced(float(said[-1][0]), float(said[-1][1]), cpu_s / records * 1e6)


def perf_test(tool: str, peer: Peer, options: Sequence[str], read: Callable[[str], list[T]]) -> tuple[list[T], float]:
    """One run of a tool of Kafka's: what `read` finds in its output, and the server's CPU time meanwhile (s). Raises
    CannotMeasure when it failed, or nothing was found."""
    command = ["java", "-Xmx1g", "-cp", classpath(), MAINS[tool], *options]
    before_s = machine.cpu_s(peer.pid)
    done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    cpu_s = machine.cpu_s(peer.pid) - before_s
    said = read(done.stdout)
    if done.returncode or not said:
        raise CannotMeasure(f"{tool} against {peer.name}: {(done.stderr or done.stdout).strip()[-300:]}")
    return said, cpu_s


def floor_us(size: int, records: int) -> float:
    """CPU time per record (us) of a C program that only receives batches, appends them to a file and answers."""
    with TemporaryDirectory(prefix="turnstile-bench-") as folder:
        command = [
            machine.binary("store_loop"),
            f"{folder}/log",
            str(_BATCH_BYTES),
            str(size * records // _BATCH_BYTES),
        ]
        done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    if done.returncode:
        raise CannotMeasure(done.stderr.strip())
    return float(done.stdout) * size / _BATCH_BYTES


def _rows(size: int, found: Rounds[Produced], floor: Quartiles) -> Iterator[Row]:
    what = f"kafka-producer-perf-test, {size:,}-byte records"
    yield rate_row(what, found, "1.1 x both", found.leads_all_by(1.1), f"produce {size}")
    yield Row(
        "- server CPU per record; the client's mean latency",
        f"{found.median_text(CPU_OF_RECORDS)}; {found.median_text(LATENCY)}",
        f"{found.beside(CPU_OF_RECORDS, LATENCY)}; C loop that only stores {floor.text('.2f', ' us')}",
    )
