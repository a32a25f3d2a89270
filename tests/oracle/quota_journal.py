"""A record scenario (oracle_scenarios.py) run by a shard's own meters, and what they journal of it."""

import json
from collections.abc import Sequence
from typing import Any

from broker.metrics.quota_events import QuotaEvents
from shards.config.image import ClusterImage
from shards.limits.client_quota_managers import FETCH, MUTATION, PRODUCE, REQUEST
from shards.limits.quota_entities import entity_of, key_of_entity, quota_of
from shards.quotas.sharded_quotas import RecordedCharge, ShardedQuotas
from shards.settings.errors import ConfigInvalid

KINDS = {"produce": PRODUCE, "fetch": FETCH, "request": REQUEST, "mutation": MUTATION}
MS = 1_000_000
BEGAN_MS = 1_000
"""When the shard is up; a scenario begins a second later."""


class MeteredShard:
    """One shard that is alone. `rows`: its journal and the coordinator's; `answers`: as `turnstile replay` gives them."""

    def __init__(self) -> None:
        self.rows: list[dict[str, Any]] = []
        self.answers: list[dict[str, Any]] = []
        self.now_ms = BEGAN_MS
        self._counts: dict[int, int] = {}
        self._ticks = 0
        self._image = ClusterImage(0)
        self._state: dict[tuple[str, str], Any] = {}
        self._meters: ShardedQuotas | None = None

    # The part of a journal's writer that notes use

    def charge(
        self, user: str | None, client_id: str | None, amount: int, throttle_ms: int, limit: str, limit_value: float,
        version: int, at_ms: int, detail: str, stand_in: bool, code: int = 0,
    ) -> None:  # fmt: skip
        self._row(
            0, "charge", mono_ns=at_ms * MS, user=user, client_id=client_id, bytes=amount, throttle_ms=throttle_ms, limit=limit,
            limit_value=limit_value, version=version, detail=detail,
        )  # fmt: skip

    def add(self, kind: str, *, version: int, detail: Any, at_ns: int, **columns: Any) -> None:
        self._row(0, kind, mono_ns=at_ns, version=version, detail=json.dumps(detail), **columns)

    def _row(self, place: int, kind: str, **columns: Any) -> None:
        """`place`: 0 the shard, -1 the coordinator."""
        self._ticks += 1
        at_ns = self.now_ms * MS + min(self._ticks, MS - 1)
        row = {"kind": kind, "broker": place, "shard": place, "epoch": 0, "mono_ns": at_ns, **columns}
        row["seq"] = self._counts.get(place, 0)
        self._counts[place] = row["seq"] + 1
        self.rows.append({**row, "ts_us": row["mono_ns"] // 1000})

    # A scenario

    def run(self, lines: Sequence[str]) -> None:
        """All of a scenario, and the end of the shard."""
        detail = {"broker": 0, "shard": 0, "epoch": 0}
        self._row(0, "shard_up", detail=json.dumps({**detail, "shards": 1}))
        self._row(-1, "shard_up", detail=json.dumps(detail))
        changes: list[list[Any]] = []
        for line in lines:
            event = json.loads(line)
            if event["at"] + 2 * BEGAN_MS > self.now_ms:
                self.now_ms, self._ticks = event["at"] + 2 * BEGAN_MS, 0
            if event["do"] == "set":
                changes.append(["setting", f"/{event['name']}", event["value"]])
            elif event["do"] == "quota":
                changes += self._quota(event)
            else:
                self._apply(changes)
                changes = []
                self._record(event)
        self.now_ms += 10_000
        self._row(0, "ended")
        self._row(-1, "ended")

    def _quota(self, event: dict[str, Any]) -> list[list[Any]]:
        """One change; none where a cluster refuses it."""
        entity = entity_of(event["entity"])
        try:
            value = None if event["value"] is None else quota_of(entity, event["key"], event["value"])
        except ConfigInvalid:
            return []
        key = ("quota", key_of_entity(entity))
        values = {**(self._state.get(key) or {}), event["key"]: value}
        self._state[key] = {name: each for name, each in values.items() if each is not None} or None
        return [[*key, self._state[key]]]

    def _apply(self, changes: list[list[Any]]) -> None:
        """Each change is a version of its own, as levels count that are removed again."""
        if self._meters is None:
            settings = [each for each in changes if each[0] == "setting"]
            self._version(settings or [["setting", "/quota.window.num", "11"]], full=True)
            self._meters = ShardedQuotas(
                0, 1, self._image, call=_never, now_ms=lambda: self.now_ms, touch=lambda: None, after=lambda ms, function: None,
                mistaken=_never, notes=QuotaEvents(self, lambda: self._image.version),  # type: ignore[arg-type]
            )  # fmt: skip
            self._meters.read_quotas()
            changes = [each for each in changes if each[0] == "quota"]
        for change in changes:
            self._version([change], full=False)
            self._meters.read_quotas()

    def _version(self, changes: list[list[Any]], *, full: bool) -> None:
        version = self._image.version + 1
        for place, acknowledged in ((-1, False), (0, False), (-1, True)):
            detail = {"changes": changes, "full": full, "acknowledged": acknowledged}
            self._row(place, "config", version=version, detail=json.dumps(detail))
        self._image.apply(version, [tuple(each) for each in changes], whole=full)

    def _record(self, event: dict[str, Any]) -> None:
        assert self._meters is not None
        kind, user, client_id = KINDS[event["quota"]], event["user"], event["client_id"]
        strict = event.get("strict", True) if kind == MUTATION else False
        answer = self._meters.charge(kind, user, client_id, event["amount"], strict=strict)
        assert isinstance(answer, RecordedCharge)
        self.answers.append(
            {"outcome": "accepted" if answer.accepted else "refused", "throttle_ms": answer.throttle_ms}
        )
        if answer.throttle_ms and self._meters.limit(kind, user, client_id) is not None:
            self._row(
                0, "throttled", mono_ns=self.now_ms * MS, user=user or None, client_id=client_id or None, limit=kind,
                limit_value=self._meters.limit(kind, user, client_id), throttle_ms=answer.throttle_ms, bytes=int(event["amount"]),
                version=self._image.version,
            )  # fmt: skip


def _never(*arguments: Any) -> Any:
    raise AssertionError(f"a shard that is alone asks none: {arguments}")
