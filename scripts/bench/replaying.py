"""Benchmark of `turnstile replay`: a scenario of connects, closes, records and changes, as a user runs it."""

from __future__ import annotations

import json
import random
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

from scripts.bench.machine import CannotMeasure
from scripts.bench.rounds import measured
from scripts.bench.table import Row

IPS = 1000
BUDGET_PER_S = 200_000


def rows(events: int, rounds: int) -> Iterator[Row]:
    """Events a second of the whole command, start-up, reading and writing included."""
    with TemporaryDirectory(prefix="turnstile-bench-") as home:
        path = Path(home) / "scenario.jsonl"
        with path.open("w") as file:
            file.writelines(json.dumps(event, separators=(",", ":")) + "\n" for event in scenario(events))
        per_s = measured(rounds, lambda: events / _run(path, Path(home) / "answers"))
    yield Row(f"`turnstile replay`, {events:,} events", per_s.text(",.0f", "/s"), "", f"{BUDGET_PER_S:,}/s",
              per_s.median >= BUDGET_PER_S)  # fmt: skip


def _run(path: Path, answers: Path) -> float:
    began = time.perf_counter()
    with answers.open("wb") as out:
        done = subprocess.run(
            [str(Path(sys.executable).parent / "turnstile"), "replay", str(path)], stdout=out, stderr=subprocess.PIPE
        )
    seconds = time.perf_counter() - began
    if done.returncode:
        raise CannotMeasure(f"turnstile replay failed: {done.stderr.decode().strip()[-300:]}")
    return seconds


def scenario(events: int) -> Iterator[dict[str, object]]:
    """Caps and rates in force, two connects in five and their closes, one record in five, now and then a change."""
    source = random.Random(7)
    ips = [f"10.0.{number // 256}.{number % 256}" for number in range(IPS)]
    yield {"at": 0, "do": "setup", "listeners": ["EXTERNAL", "INTERNAL"], "inter_broker": "INTERNAL"}
    yield {"at": 0, "do": "set", "name": "max.connections.per.ip", "value": "20"}
    yield {"at": 0, "do": "quota", "entity": {"ip": None}, "key": "connection_creation_rate", "value": 50}
    yield {"at": 0, "do": "quota", "entity": {"user": None}, "key": "producer_byte_rate", "value": 100_000}
    at_ms, open_ids = 0.0, list[str]()
    for number in range(events - 4):
        at_ms += source.expovariate(10)
        at, kind = int(at_ms), source.random()
        if kind < 0.4 or not open_ids:
            open_ids.append(f"c{number}")
            yield {"at": at, "do": "connect", "id": open_ids[-1], "ip": source.choice(ips), "listener": "EXTERNAL"}
        elif kind < 0.8:
            which = source.randrange(len(open_ids))
            open_ids[which], open_ids[-1] = open_ids[-1], open_ids[which]
            yield {"at": at, "do": "close", "id": open_ids.pop()}
        elif kind < 0.999:
            user = f"u{source.randrange(100)}"
            yield {"at": at, "do": "record", "quota": "produce", "user": user, "client_id": "app", "amount": 1000}
        else:
            yield {"at": at, "do": "set", "name": "max.connections.per.ip", "value": str(source.randint(10, 30))}
