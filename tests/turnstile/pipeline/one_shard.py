"""The journal of one shard, event by event, a second apart; judged once both processes have ended."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from storms import COORDINATOR, write

from turnstile.pipeline.audit.audit import audit
from turnstile.pipeline.audit.audit_result import Check
from turnstile.pipeline.events.journal import Journal, here

LATER_NS = 10_000_000_000


class OneShard:
    """`records`: the configuration from beginning to end, each of a kind, a key and a value."""

    def __init__(self, *records: Sequence[str]) -> None:
        self.events: list[dict[str, Any]] = []
        self._now_ns = LATER_NS
        self._step_ns = 1_000_000_000
        place = {"broker": 0, "shard": 0, "epoch": 1}
        config = {"changes": [list(record) for record in records], "full": True, "acknowledged": False}
        self.add("shard_up", detail=json.dumps({**place, "shards": 1}))
        self.add("shard_up", shard=COORDINATOR, detail=json.dumps({**place, "pid": 1}))
        self.add("config", shard=COORDINATOR, version=1, detail=json.dumps(config))
        self.add("config", shard=COORDINATOR, version=1, detail=json.dumps({**config, "acknowledged": True}))
        self.add("config", version=1, detail=json.dumps(config))

    def add(self, kind: str, *, shard: int = 0, **columns: Any) -> dict[str, Any]:
        self._now_ns += self._step_ns
        own = {"broker": -1, "shard": -1, "epoch": 0} if shard == COORDINATOR else {"broker": 0, "shard": 0, "epoch": 1}
        event = {
            "kind": kind,
            "mono_ns": self._now_ns,
            "ts": 1_600_000_000_000_000 + self._now_ns // 1000,
            **own,
            **columns,
        }
        self.events.append(event)
        return event

    @property
    def now_ms(self) -> int:
        return self._now_ns // 1_000_000

    @contextmanager
    def at_once(self) -> Iterator[None]:
        """Events are a millisecond apart in it."""
        self._step_ns = 1_000_000
        yield
        self._step_ns = 1_000_000_000

    def pause(self) -> None:
        """Longer than any check allows for."""
        self._now_ns += LATER_NS

    def close(self, opened: dict[str, Any]) -> None:
        same = {name: opened.get(name) for name in ("conn", "ip", "port", "listener", "user")}
        self.add("closed", reason="client", held_ms=1.0, bytes=9, **same)

    def judged(self, folder: Path) -> dict[str, Check]:
        """The journal's checks by name."""
        return {check.name: check for check in audit(self.written(folder)).checks}

    def written(self, folder: Path) -> Journal:
        """The whole journal, in `folder`."""
        self.pause()
        self.add("ended")
        self.add("ended", shard=COORDINATOR)
        numbers: dict[int, int] = {}
        for event in self.events:
            event["seq"] = numbers[event["broker"]] = numbers.get(event["broker"], -1) + 1
        write(folder, self.events, parts=2)
        journal = here([folder])
        assert journal is not None
        return journal
