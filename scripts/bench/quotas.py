"""Client quotas beside a real Kafka 4.3: the same client, the same quota, at the same time on both brokers.

    python scripts/bench/quotas.py [--only NAME]... [--seconds 150] [--write]

Prints a Markdown table of sustained rates, after the burst that a quota lets through, and of the throttle times that the
clients were told; --write puts it into docs/quotas.md. Rates are to be within 5 %, throttle times within 10 %.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from confluent_kafka import Producer  # noqa: E402 - importable only from here on
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]  # noqa: E402

from scripts.bench import machine  # noqa: E402
from scripts.bench.quota_client import RECORD_BYTES  # noqa: E402
from scripts.peers import fetching, jars, servers  # noqa: E402

QUOTA = 1_048_576  # not 1,000,000: at the size of librdkafka's requests, windows would end just as one arrives
BURST_S = 10  # quota.window.num - 1 windows pass at once
SETTLE_S = 5
BEGIN, END = "<!-- table: scripts/bench/quotas.py -->", "<!-- end of table -->"


class Case(NamedTuple):
    """A client under a quota. `run(bootstrap, client_id, topic, seconds)` says what it saw."""

    name: str
    quota: str
    run: Callable[[str, str, str, float], dict[str, Any]]
    unit: str = "MB/s"


def librdkafka(role: str) -> Callable[[str, str, str, float], dict[str, Any]]:
    """Producer or consumer of confluent-kafka, in a process of its own."""

    def run(bootstrap: str, client_id: str, topic: str, seconds: float) -> dict[str, Any]:
        from_s = BURST_S + SETTLE_S
        order = {"role": role, "bootstrap": bootstrap, "client_id": client_id, "topic": topic,
                 "from_s": 2, "to_s": from_s + seconds, "burst_bytes": 3 * QUOTA}  # fmt: skip
        command = [sys.executable, "-m", "scripts.bench.quota_client", json.dumps(order)]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=seconds + 120)
        if done.returncode:
            raise machine.CannotMeasure(f"the librdkafka client failed: {done.stderr.strip()[-300:]}")
        said: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
        return said

    return run


def java_producer(bootstrap: str, client_id: str, topic: str, seconds: float) -> dict[str, Any]:
    """kafka-producer-perf-test; its reports are of five seconds each."""
    records = int((BURST_S + SETTLE_S + seconds) * QUOTA / RECORD_BYTES)
    out = _java(
        "kafka-producer-perf-test", "--topic", topic, "--num-records", str(records), "--record-size", str(RECORD_BYTES),
        "--throughput", "-1", "--print-metrics",
        "--producer-props", f"bootstrap.servers={bootstrap}", f"client.id={client_id}",
    )  # fmt: skip
    reports = [line.split(", ") for line in out.splitlines() if "records/sec (" in line and "99.9th" not in line]
    sizes = [int(report[0].split()[0]) for report in reports]
    # The records of a report over its rate is its time: what comes before the steady part is left out whole.
    times = [size / float(report[1].split()[0]) for size, report in zip(sizes, reports, strict=True)]
    begun, steady_s, steady = 0.0, 0.0, 0
    for size, time_s in zip(sizes, times, strict=True):
        if begun >= BURST_S + SETTLE_S:
            steady_s, steady = steady_s + time_s, steady + size
        begun += time_s
    average, most = (_metric(out, f"produce-throttle-time-{each}") for each in ("avg", "max"))
    return {"bytes_per_s": steady * RECORD_BYTES / steady_s, "throttle_ms": average, "max_ms": most}


def java_consumer(bootstrap: str, client_id: str, topic: str, seconds: float) -> dict[str, Any]:
    """kafka-consumer-perf-test; its reports are of one second each."""
    messages = int((BURST_S + SETTLE_S + seconds) * QUOTA / RECORD_BYTES)
    with TemporaryDirectory() as home:
        config = Path(home) / "consumer.properties"
        config.write_text(f"client.id={client_id}\n")
        out = _java(
            "kafka-consumer-perf-test", "--topic", topic, "--messages", str(messages), "--timeout", "60000",
            "--show-detailed-stats", "--reporting-interval", "1000", "--print-metrics", "--hide-header",
            "--bootstrap-server", bootstrap, "--consumer.config", str(config),
            "--date-format", "yyyy-MM-dd HH:mm:ss:SSS",
        )  # fmt: skip
    points = []
    for line in out.splitlines():
        row = line.split(", ")
        if len(row) > 6 and row[1].strip().isdigit():
            points.append((datetime.strptime(row[0], "%Y-%m-%d %H:%M:%S:%f").timestamp(), int(row[4])))
    # It reports as records arrive: the first report after a silence is at the start of a burst.
    steady = [now for then, now in pairwise(points) if now[0] - then[0] >= 4] or points
    moved = (steady[-1][1] - steady[0][1]) * RECORD_BYTES
    average, most = (_metric(out, f"fetch-throttle-time-{each}") for each in ("avg", "max"))
    return {"bytes_per_s": moved / (steady[-1][0] - steady[0][0]), "throttle_ms": average, "max_ms": most}


def _java(tool: str, *args: str) -> str:
    command = ["java", *jars.JVM_FLAGS, "-cp", jars.classpath(), jars.MAINS[tool], *args]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    if done.returncode:
        raise machine.CannotMeasure(f"{tool} failed: {(done.stderr or done.stdout).strip()[-300:]}")
    return done.stdout


def _metric(out: str, name: str) -> float:
    (line,) = [line for line in out.splitlines() if f":{name}:" in line]
    return float(line.rpartition(":")[2])


CASES = (
    Case("librdkafka producer", f"producer_byte_rate={QUOTA}", librdkafka("produce")),
    Case("librdkafka consumer", f"consumer_byte_rate={QUOTA}", librdkafka("consume")),
    Case("kafka-producer-perf-test", f"producer_byte_rate={QUOTA}", java_producer),
    Case("kafka-consumer-perf-test", f"consumer_byte_rate={QUOTA}", java_consumer),
    # Handler time is each broker's own: a percentage that any request exceeds shows the bound, one window.
    Case("librdkafka producer", "request_percentage=0.001", librdkafka("produce")),
)


def prepare(case: Case, brokers: dict[str, str], number: int, seconds: float, tools: jars.Tools) -> None:
    """The case's topic, what there is to consume in it, and the quota of its client."""
    topic, client_id = f"quotas-{number}", f"client-{number}"
    for bootstrap in brokers.values():
        admin = AdminClient({"bootstrap.servers": bootstrap})
        admin.create_topics([NewTopic(topic, 1, 1)])[topic].result(timeout=30)
        if "consumer" in case.quota:
            _fill(bootstrap, topic, int((BURST_S * 3 + SETTLE_S + seconds) * QUOTA))
        tool = tools("kafka-configs", "--bootstrap-server", bootstrap, "--alter", "--add-config", case.quota,
                     "--entity-type", "clients", "--entity-name", client_id)  # fmt: skip
        if tool.code:
            raise machine.CannotMeasure(f"the quota can't be set: {tool.err or tool.out}")


def _fill(bootstrap: str, topic: str, size: int) -> None:
    # Batches of the size of a Java producer's: Kafka counts the piece of a batch that it cuts off at the end of a fetch.
    settings = {"client.id": "filler", "linger.ms": 20, "batch.size": 16384}
    producer = Producer({"bootstrap.servers": bootstrap, **settings})
    for _ in range(size // RECORD_BYTES):
        while True:
            try:
                producer.produce(topic, b"x" * RECORD_BYTES, partition=0)
                break
            except BufferError:
                producer.poll(0.1)
        producer.poll(0)
    if producer.flush(60):
        raise machine.CannotMeasure(f"{bootstrap} did not take the records to consume")


def row(case: Case, seen: dict[str, Any]) -> str:
    """A row of the Markdown table."""
    kafka, ours = seen["kafka"], seen["turnstile"]

    def ratio(key: str) -> str:
        return f"{ours[key] / kafka[key]:.2f}" if ours[key] and kafka[key] else "-"

    def rate(each: dict[str, Any]) -> str:
        return "-" if each["bytes_per_s"] is None else f"{each['bytes_per_s'] / 1e6:.3f}"

    return (
        f"| {case.name} | `{case.quota}` | {rate(kafka)} | {rate(ours)} | {ratio('bytes_per_s')} "
        f"| {kafka['throttle_ms']:.0f} | {ours['throttle_ms']:.0f} | {ratio('throttle_ms')} |"
    )


HEAD = (
    "| client | quota | Kafka 4.3, MB/s | Turnstile, MB/s | ratio | Kafka, mean throttle ms | Turnstile, ms | ratio |",
    "|---|---|---|---|---|---|---|---|",
)


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", action="append", metavar="NAME", help="Cases whose client or quota contains this.")
    parser.add_argument("--seconds", type=float, default=150.0, help="How long the steady part is measured.")
    parser.add_argument("--write", action="store_true")
    asked = parser.parse_args()
    rows = [*HEAD]
    cases = [
        case for case in CASES if not asked.only or any(word in f"{case.name} {case.quota}" for word in asked.only)
    ]
    try:
        with servers.kafka() as kafka, machine.turnstile() as ours, jars.Tools() as tools:
            brokers = {"kafka": kafka.bootstrap, "turnstile": f"127.0.0.1:{ours.port}"}
            for number, case in enumerate(cases):
                prepare(case, brokers, number, asked.seconds, tools)
            print(f"measuring for {asked.seconds + BURST_S + SETTLE_S:.0f} s ...", file=sys.stderr, flush=True)
            with ThreadPoolExecutor(len(cases) * len(brokers)) as pool:
                runs = [
                    {name: pool.submit(case.run, at, f"client-{number}", f"quotas-{number}", asked.seconds)
                     for name, at in brokers.items()}
                    for number, case in enumerate(cases)
                ]  # fmt: skip
                for case, run in zip(cases, runs, strict=True):
                    seen = {name: future.result() for name, future in run.items()}
                    print(json.dumps({case.name: seen}), file=sys.stderr, flush=True)
                    rows.append(row(case, seen))
    except (fetching.Missing, machine.CannotMeasure) as reason:
        print(reason, file=sys.stderr)
        return 1
    print("\n".join(rows))
    if asked.write:
        path = ROOT / "docs" / "quotas.md"
        before, _, rest = path.read_text().partition(BEGIN)
        path.write_text("\n".join([before + BEGIN, *rows, END]) + rest.partition(END)[2])
    return 0


if __name__ == "__main__":
    sys.exit(main())
