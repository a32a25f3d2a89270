"""The audit of the cap of a whole cluster, over the journals of two brokers: an honest one holds, and one beyond it, or refused
without cause, is found."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from one_shard import COORDINATOR, OneShard

from turnstile.pipeline.events.journal import Journal

NAME = "turnstile.cluster.max.connections"
OTHER = {"broker": 1, "shard": 0, "epoch": 2}


class Clients(OneShard):
    """Of two brokers with a shard each, which together may have 3 connections."""

    setting = NAME, "3"

    def __init__(self) -> None:
        record = ("setting", f"/{self.setting[0]}", self.setting[1])
        super().__init__(record)
        self.add("shard_up", **OTHER, detail=json.dumps({**OTHER, "shards": 1}))
        self.add("shard_up", shard=COORDINATOR, detail=json.dumps({**OTHER, "pid": 2}))
        config = {"changes": [record], "full": True, "acknowledged": False}
        self.add("config", **OTHER, version=1, detail=json.dumps(config))

    def open(self, conn: int, broker: int) -> dict[str, Any]:
        return self.add("admitted", version=1, held_ms=0.1, **_client(conn, broker))

    def refused(
        self, conn: int, broker: int, value: float = 3.0, reason: str = "cluster_cap", limit: str = NAME
    ) -> None:
        why = {"reason": reason, "limit": limit, "limit_value": value}
        self.add("refused", version=1, held_ms=0.1, **_client(conn, broker), **why)

    def end(self, opened: dict[str, Any]) -> None:
        same = {name: opened[name] for name in ("conn", "ip", "port", "listener", "broker", "shard", "epoch")}
        self.add("closed", reason="client", held_ms=1.0, bytes=9, **same)

    def written(self, folder: Path) -> Journal:
        self.add("ended", **OTHER)
        return super().written(folder)


def _client(conn: int, broker: int) -> dict[str, Any]:
    place = {"broker": broker, "epoch": broker + 1}
    return {"conn": conn, "ip": f"10.0.0.{conn}", "port": 1000, "listener": "EXTERNAL", **place}


def test_connections_up_to_the_cap_and_refusals_at_it_hold(tmp_path: Path) -> None:
    clients = Clients()
    opened = [clients.open(1, 0), clients.open(2, 1), clients.open(3, 1)]
    clients.refused(4, 0)
    clients.refused(5, 1)
    clients.end(opened.pop())
    opened.append(clients.open(6, 0))
    for each in opened:
        clients.end(each)
    checks = clients.judged(tmp_path)
    assert {check.verdict for check in checks.values()} == {"held"}, checks
    assert checks["cluster_cap"].detail == "4 connections, never more open than allowed"


def test_one_beyond_the_cap_is_found_over_both_brokers(tmp_path: Path) -> None:
    clients = Clients()
    opened = [clients.open(1, 0), clients.open(2, 1), clients.open(3, 0), clients.open(4, 1)]
    for each in opened:
        clients.end(each)
    check = clients.judged(tmp_path)["cluster_cap"]
    assert check.verdict == "exceeded"
    assert "1 admissions beyond the cap; first the cluster: 4 open, 3 allowed" in check.detail
    assert check.evidence[0]["connections"] == ["1/0/2/4", "0/0/1/3", "1/0/2/2", "0/0/1/1"]


def test_a_refusal_with_room_is_found(tmp_path: Path) -> None:
    clients = Clients()
    opened = [clients.open(1, 0), clients.open(2, 1)]
    clients.pause()
    clients.refused(3, 1)
    clients.pause()
    for each in opened:
        clients.end(each)
    check = clients.judged(tmp_path)["refused_with_cause"]
    assert check.verdict == "not justified"
    assert "version 1 on the cluster" in check.detail and "at most 2 could be in use" in check.detail


def test_a_refusal_that_names_another_value_is_found(tmp_path: Path) -> None:
    clients = Clients()
    opened = [clients.open(1, 0), clients.open(2, 1), clients.open(3, 1)]
    clients.refused(4, 0, value=2)
    for each in opened:
        clients.end(each)
    check = clients.judged(tmp_path)["refused_as_configured"]
    assert check.verdict == "not justified" and f"that version says {NAME}=3" in check.detail
