"""Journals of simulated client quotas: the meters that run, at homes that stop, die and lose their links, and what they note."""

import json
from collections.abc import Callable
from functools import partial
from typing import Any

from simulation.quota_schedule import QuotaSchedule
from simulation.quota_world import QuotaWorld, SimulatedShard

from broker.metrics.quota_events import QuotaEvents
from shards.limits.client_quota_managers import MUTATION
from shards.quotas.sharded_quotas import RecordedCharge

Event = dict[str, Any]
COORDINATOR = -1
MS = 1_000_000
WALL_US = 1_600_000_000_000_000
LATE = ("charge", "meter", "throttled")


class Notebook:
    """The part of a journal's writer that the notes of meters use; rows go to `add`."""

    def __init__(self, add: Callable[..., None]) -> None:
        self._add = add

    def charge(
        self, user: str | None, client_id: str | None, amount: int, throttle_ms: int, limit: str, limit_value: float,
        version: int, at_ms: int, detail: str, stand_in: bool, code: int = 0,
    ) -> None:  # fmt: skip
        self._add(
            "charge", mono_ns=at_ms * MS, user=user, client_id=client_id, bytes=amount, throttle_ms=throttle_ms, limit=limit,
            limit_value=limit_value, version=version, detail=detail, reason="stand_in" if stand_in else None,
        )  # fmt: skip

    def add(self, kind: str, *, version: int, detail: Any, at_ns: int, **columns: Any) -> None:
        text = json.dumps(detail, separators=(",", ":"))
        self._add(kind, mono_ns=at_ns, version=version, detail=text, **columns)


class JournaledWorld(QuotaWorld):
    """`rows`: what all processes have journaled, without `seq`. `is_sound`: no shard missed a version; none of a cluster does."""

    def __init__(self, seed: int, shards: int, quotas: dict[str, dict[str, float]]) -> None:
        self.rows: list[Event] = []
        self.is_sound = True
        self.stored: dict[int, int] = {1: 0}
        self.acknowledged: dict[int, int] = {}
        self._ticks = 0
        self._changes: dict[int, Any] = {}
        super().__init__(seed, shards, quotas)
        self._tell(1, self.state, full=True)
        self._look()

    def add(self, place: tuple[int, int], kind: str, **columns: Any) -> None:
        """A row of a process (shard, epoch)."""
        self._ticks += 1
        at_ns = self.now_ms * MS + min(self._ticks, MS - 1) if kind not in LATE else self.now_ms * MS
        row = {"kind": kind, "broker": 0, "shard": place[0], "epoch": place[1], "mono_ns": at_ns, **columns}
        if place[0] == COORDINATOR:
            row["broker"] = COORDINATOR
        self.rows.append({**row, "ts": WALL_US + row["mono_ns"] // 1000})

    def notes_of(self, shard: SimulatedShard) -> QuotaEvents:
        place = tuple(shard.process)
        detail = {"broker": 0, "shard": place[0], "epoch": place[1]}
        self.add(place, "shard_up", detail=json.dumps({**detail, "shards": self.count}))
        self.add((COORDINATOR, 0), "shard_up", detail=json.dumps(detail))
        self._config(place, self.version, self.state, full=True)
        return QuotaEvents(Notebook(partial(self.add, place)), lambda: shard.image.version)  # type: ignore[arg-type]

    def kill(self, number: int) -> None:
        shard = self.shards[number]
        if shard.alive:
            lost = {"broker": 0, "shard": number, "epoch": shard.process.epoch}
            super().kill(number)
            self.add((COORDINATOR, 0), "shard_lost", detail=json.dumps(lost))

    def change(self, client_id: str, values: dict[str, float | None]) -> None:
        super().change(client_id, values)
        self.stored[self.version] = self.now_ms
        record = [
            each
            for each in self.state
            if json.loads(each[1] if each[0] == "quota" else "{}").get("client-id") == client_id
        ]
        kept = {kind: value for kind, value in values.items() if value is not None} or None
        key = json.dumps({"client-id": client_id}, separators=(",", ":"))
        self._tell(self.version, record or [("quota", key, kept)])

    def _apply(self, shard: SimulatedShard, version: int, record: Any) -> None:
        self.is_sound &= shard.image.version == version - 1 or (
            shard.image.version >= version and bool(shard.process.epoch)
        )
        before = shard.image.version
        super()._apply(shard, version, record)
        if shard.image.version != before:
            self._config(tuple(shard.process), version, [record])
        self._look()

    def start(self, number: int) -> None:
        super().start(number)
        self._look()

    def _look(self) -> None:
        """Acknowledges what every shard has."""
        if all(shard.alive for shard in self.shards):
            least = min(shard.image.version for shard in self.shards)
            for version in range(max(self.acknowledged, default=0) + 1, least + 1):
                self.acknowledged[version] = self.now_ms
                self._tell(version, self._changes[version], full=version == 1, acknowledged=True)

    def _tell(self, version: int, changes: Any, *, full: bool = False, acknowledged: bool = False) -> None:
        self._changes[version] = changes
        self._config((COORDINATOR, 0), version, changes, full=full, acknowledged=acknowledged)

    def _config(
        self, place: tuple[int, int], version: int, changes: Any, *, full: bool = False, acknowledged: bool = False
    ) -> None:
        detail = {"changes": [list(each) for each in changes], "full": full, "acknowledged": acknowledged}
        self.add(place, "config", version=version, detail=json.dumps(detail))

    def charge(
        self, shard: SimulatedShard, kind: str, client_id: str, amount: float, strict: bool,
        then: Callable[[RecordedCharge], None],
    ) -> None:  # fmt: skip
        def answered(recorded: RecordedCharge) -> None:
            limit = shard.meters.limit(kind, "", client_id)
            if recorded.throttle_ms and limit is not None:
                at_ms = self.now_ms if kind == MUTATION else recorded.at_ms
                left_ms = recorded.throttle_ms
                self.add(
                    tuple(shard.process), "throttled", mono_ns=at_ms * MS, client_id=client_id, limit=kind, limit_value=limit,
                    throttle_ms=left_ms, bytes=int(amount), version=shard.image.version,
                    reason="stand_in" if recorded.stand_in else None, conn=1, ip="10.0.0.1", listener="A", api="Produce",
                )  # fmt: skip
            then(recorded)

        super().charge(shard, kind, client_id, amount, strict, answered)


def run(seed: int) -> list[Event] | None:
    """The journal of a seed, numbered; None for one in which a shard missed a version."""
    made: list[JournaledWorld] = []

    def make(*args: Any) -> JournaledWorld:
        made.append(JournaledWorld(*args))
        return made[0]

    QuotaSchedule(seed, make=make).run()
    world = made[0]
    if not world.is_sound:
        return None
    world.now_ms += 5000
    for shard in world.shards:
        world.add(tuple(shard.process), "ended")
    world.add((COORDINATOR, 0), "ended")
    return numbered(world.rows)


def numbered(rows: list[Event]) -> list[Event]:
    """Rows in the order in which they were written, each with its number in its process."""
    counts: dict[tuple[int, int, int], int] = {}
    for row in rows:
        place = row["broker"], row["shard"], row["epoch"]
        row["seq"] = counts.get(place, 0)
        counts[place] = row["seq"] + 1
    return rows
