"""Honest journals of storms, made with the real writer, and ways to break them.

A storm is simulated with plain counters: caps per IP and in all, changed live, connections over several shards, some of
which are killed and restarted. What is written is what such a cluster must write; mono_ns is given, not measured.
"""

import json
import random
from pathlib import Path
from typing import Any

import pyarrow
import pyarrow.parquet

from broker.journal.spool_columns import SCHEMA

COORDINATOR = -1


class Storm:
    """Events in order of mono_ns, as dicts of the journal's columns."""

    def __init__(self, seed: int, *, shards: int = 2, ips: int = 4, per_ip: int = 5, total: int = 15) -> None:
        self.random = random.Random(seed)
        self.events: list[dict[str, Any]] = []
        self.now_ns = 1_000_000_000_000
        self.shards = shards
        self.ips = [f"10.0.0.{number}" for number in range(1, ips + 1)]
        self.caps = {"kafka_connections_max_per_ip": per_ip, "kafka_connections_max": total}
        self.before: dict[str, int] | None = None  # while a change is under way
        self.version = 1
        self.epochs = [shard + 1 for shard in range(shards)]
        self.epoch = shards + 1
        self.seq: dict[tuple[int, int, int], int] = {}
        self.open: list[dict[str, Any]] = []
        self.conn = 0
        for shard in range(shards):
            self.start(shard)
        self.config(COORDINATOR, full=True)
        self.config(COORDINATOR, acknowledged=True)

    def add(self, kind: str, shard: int, **columns: Any) -> dict[str, Any]:
        """Write one event a little later than the one before."""
        self.now_ns += self.random.randint(1, 2_000_000)
        broker = 0 if shard >= 0 else COORDINATOR
        epoch = self.epochs[shard] if shard >= 0 else 0
        place = (broker, shard, epoch)
        seq = self.seq[place] = self.seq.get(place, -1) + 1
        event = {"kind": kind, "mono_ns": self.now_ns, "seq": seq, "broker": broker, "shard": shard, "epoch": epoch}
        event["ts"] = 1_600_000_000_000_000 + self.now_ns // 1000
        event.update(columns)
        self.events.append(event)
        return event

    def config(self, shard: int, *, full: bool = False, acknowledged: bool = False) -> None:
        changes = [["setting", f"/{name}", str(value)] for name, value in self.caps.items()]
        detail = json.dumps({"changes": changes, "full": full, "acknowledged": acknowledged})
        self.add("config", shard, version=self.version, detail=detail)

    def start(self, shard: int) -> None:
        """A process begins: it says so, and then the coordinator."""
        place = {"broker": 0, "shard": shard, "epoch": self.epochs[shard]}
        self.add("shard_up", shard, detail=json.dumps({**place, "shards": self.shards}))
        self.add("shard_up", COORDINATOR, detail=json.dumps({**place, "pid": 1}))
        self.config(shard, full=True)

    def end(self) -> "Storm":
        """All processes end in order."""
        for event in list(self.open):
            self.close(event)
        self.open.clear()
        for shard in (*range(self.shards), COORDINATOR):
            self.add("ended", shard)
        return self

    def change(self) -> None:
        """A cap changes live: stored, applied by every shard with storms going on, acknowledged."""
        before = dict(self.caps)
        name = self.random.choice(list(self.caps))
        self.caps[name] = self.random.randint(1, 20)
        self.version += 1
        self.config(COORDINATOR)
        after = dict(self.caps)
        self.before = before
        for shard in range(self.shards):
            self.config(shard)
            # Until all have it, the tighter of both is what a real cluster surely keeps.
            self.caps = {each: min(before[each], after[each]) for each in after}
            self.arrive()
            self.caps = after
        self.before = None
        self.config(COORDINATOR, acknowledged=True)

    def arrive(self, shard: int | None = None) -> None:
        """One connect: admitted if it may be."""
        ip = self.random.choice(self.ips)
        shard = self.random.randrange(self.shards) if shard is None else shard
        self.conn += 1
        of_ip = sum(each["ip"] == ip for each in self.open)
        columns = {
            "conn": self.conn,
            "ip": ip,
            "port": 1000 + self.conn,
            "listener": "EXTERNAL",
            "version": self.version,
        }
        if of_ip >= self.caps["kafka_connections_max_per_ip"]:
            self.refuse(shard, "ip_cap", "kafka_connections_max_per_ip", columns)
        elif len(self.open) >= self.caps["kafka_connections_max"]:
            self.refuse(shard, "broker_cap", "kafka_connections_max", columns)
        else:
            self.open.append(self.add("admitted", shard, held_ms=0.1, **columns))

    def refuse(self, shard: int, reason: str, limit: str, columns: dict[str, Any]) -> None:
        """In the version whose cap it is: while a change is under way, the tighter one."""
        if self.before is not None and self.before[limit] == self.caps[limit]:
            columns["version"] -= 1
        self.add("refused", shard, reason=reason, limit=limit, limit_value=float(self.caps[limit]), **columns)

    def leave(self) -> None:
        """One connection closes."""
        if self.open:
            event = self.open.pop(self.random.randrange(len(self.open)))
            self.close(event)

    def close(self, event: dict[str, Any]) -> None:
        held_ms = (self.now_ns - event["mono_ns"]) / 1e6
        same = {name: event[name] for name in ("conn", "ip", "port", "listener")}
        self.add("closed", event["shard"], reason="client", held_ms=held_ms, bytes=100, **same)

    def kill(self) -> None:
        """A shard dies: its tokens are free before the coordinator says so, and its successor starts."""
        shard = self.random.randrange(self.shards)
        lost = {"broker": 0, "shard": shard, "epoch": self.epochs[shard]}
        self.open = [event for event in self.open if event["shard"] != shard]
        self.epochs[shard] = self.epoch = self.epoch + 1
        self.arrive((shard + 1) % self.shards)
        self.add("shard_lost", COORDINATOR, detail=json.dumps(lost))
        self.start(shard)

    def run(self, steps: int = 150) -> "Storm":
        """A storm of that many steps with kills and live changes."""
        doings = [self.arrive] * 12 + [self.leave] * 8 + [self.change] + [self.kill]
        for _ in range(steps):
            self.random.choice(doings)()
        return self

    def write(self, folder: Path, *, parts: int = 3) -> Path:
        """As Parquet parts."""
        write(folder, self.events, parts=parts)
        return folder


def busy(seed: int = 4, *, reasons: bool = False) -> Storm:
    """A storm with every kind of event a report draws; with `reasons` its refusals have several, also for one address."""
    storm = Storm(seed, ips=8).run(200).end()
    if reasons:
        for number, refusal in enumerate([event for event in storm.events if event["kind"] == "refused"]):
            refusal["reason"] = ("ip_cap", "ip_rate", "broker_cap")[number % 3]
            refusal["ip"] = f"2001:db8:0:{number % 3}::{number % 5}" if number % 2 else refusal["ip"]
    for number in range(20):
        storm.add(
            "throttled",
            0,
            user="alice",
            client_id="<app>",
            limit="producer_byte_rate",
            throttle_ms=100 + number,
            bytes=5,
        )
        storm.add("grant", 1, detail='{"pool":"broker","to":0,"tokens":3}')
        storm.add("reclaim", 0, detail='{"pool":"broker","from":1,"tokens":2}')
    return storm


def write(folder: Path, events: list[dict[str, Any]], *, parts: int = 1) -> None:
    """Events as parts of a journal folder."""
    folder.mkdir(parents=True, exist_ok=True)
    size = -(-len(events) // parts)
    for number in range(parts):
        rows = events[number * size : (number + 1) * size]
        columns = {name: [row.get(name) for row in rows] for name in SCHEMA.names}
        arrays = [pyarrow.array(columns[field.name], type=_plain(field.type)) for field in SCHEMA]
        pyarrow.parquet.write_table(pyarrow.Table.from_arrays(arrays, names=SCHEMA.names), folder / f"{number}.parquet")


def _plain(kind: pyarrow.DataType) -> pyarrow.DataType:
    return pyarrow.string() if pyarrow.types.is_dictionary(kind) else kind
