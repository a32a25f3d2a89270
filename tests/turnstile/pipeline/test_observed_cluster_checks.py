"""The audit of an observed cap of a whole cluster, over the journals of two brokers: decisions of an honest cluster hold; a member
beyond the cap, or a refusal without cause, is found."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from one_shard import COORDINATOR, OneShard

from turnstile.pipeline.events.journal import Journal

NAME = "turnstile.cluster.max.connections"
OTHER = {"broker": 1, "shard": 0, "epoch": 2}


class Clients(OneShard):
    """The clients of two brokers with a shard each; `setting`, a cap of 3 connections for both, is observed."""

    setting, reason = (NAME, "3"), "cluster_cap"

    def __init__(self) -> None:
        observed = ("observed", f"/{self.setting[0]}", self.setting[1])
        super().__init__(observed)
        self.add("shard_up", **OTHER, detail=json.dumps({**OTHER, "shards": 1}))
        self.add("shard_up", shard=COORDINATOR, detail=json.dumps({**OTHER, "pid": 2}))
        config = {"changes": [observed], "full": True, "acknowledged": False}
        self.add("config", **OTHER, version=1, detail=json.dumps(config))
        self._opened: list[dict[str, Any]] = []

    def open(self, conn: int, broker: int) -> None:
        place = {"conn": conn, "ip": f"10.0.0.{conn}", "port": 1000, "listener": "EXTERNAL", "broker": broker,
                 "epoch": broker + 1}  # fmt: skip
        self._opened.append(self.add("admitted", version=1, held_ms=0.1, **place))

    def would_refuse(self, conn: int, broker: int, value: float = 3.0) -> None:
        """The connection that was opened last would be refused."""
        same = {name: self._opened[-1][name] for name in ("conn", "ip", "port", "listener", "broker", "shard", "epoch")}
        named = {"reason": self.reason, "limit": self.setting[0], "limit_value": value}
        self.add("observed", version=1, held_ms=0.1, **named, **same)

    def written(self, folder: Path) -> Journal:
        self.pause()
        for opened in self._opened:
            same = {name: opened[name] for name in ("conn", "ip", "port", "listener", "broker", "shard", "epoch")}
            self.add("closed", reason="client", held_ms=1.0, bytes=9, **same)
        self.add("ended", **OTHER)
        return super().written(folder)


def test_members_up_to_the_cap_and_decisions_at_it_hold(tmp_path: Path) -> None:
    clients = Clients()
    for conn, broker in ((1, 0), (2, 1), (3, 1), (4, 0)):
        clients.open(conn, broker)
    clients.would_refuse(4, 0)
    checks = clients.judged(tmp_path)
    assert {check.verdict for check in checks.values()} == {"held"}, checks
    assert checks["observed_with_cause"].detail == "1 observed decisions, each by a cap that was reached"


def test_a_member_beyond_the_cap_is_found_over_both_brokers(tmp_path: Path) -> None:
    clients = Clients()
    for conn, broker in ((1, 0), (2, 1), (3, 0), (4, 1)):
        clients.open(conn, broker)
    check = clients.judged(tmp_path)["observed_caps"]
    assert check.verdict == "exceeded"
    assert "1 admissions to the observed world beyond its cap; first the cluster: 4 in it, 3 allowed" in check.detail


def test_a_decision_with_room_is_found(tmp_path: Path) -> None:
    clients = Clients()
    for conn, broker in ((1, 0), (2, 1)):
        clients.open(conn, broker)
    clients.would_refuse(2, 1)
    check = clients.judged(tmp_path)["observed_with_cause"]
    assert check.verdict == "not justified"
    assert f"by {NAME} of version 1 on the cluster" in check.detail and "could be in use" in check.detail


def test_a_decision_that_names_another_value_is_found(tmp_path: Path) -> None:
    clients = Clients()
    for conn, broker in ((1, 0), (2, 1), (3, 1), (4, 0)):
        clients.open(conn, broker)
    clients.would_refuse(4, 0, value=2)
    check = clients.judged(tmp_path)["observed_with_cause"]
    assert check.verdict == "not justified" and f"that version observes {NAME}=3" in check.detail
