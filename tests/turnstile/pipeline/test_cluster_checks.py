"""The audit of the cap of a whole cluster, over the journals of two brokers: an honest cluster holds; a connection beyond the cap,
refused without cause, or without a token is found."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest
from local_rdd import in_slices
from one_shard import COORDINATOR, OneShard

from shards.ownership import home_of, shard_of_member
from turnstile.pipeline.audit.audit import audit
from turnstile.pipeline.events.journal import Journal

NAME = "turnstile.cluster.max.connections"
HOME = shard_of_member(home_of("cluster", 2), 1)[0]
"""The broker whose only shard is home to the cluster's tokens."""
OTHER = {"broker": 1, "shard": 0, "epoch": 2}


class Clients(OneShard):
    """The clients of two brokers with a shard each, which together may have 3 connections."""

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


def test_a_connection_beyond_the_cap_is_found_over_both_brokers(tmp_path: Path) -> None:
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


@pytest.mark.parametrize("by", ["cluster_cap", "shard_unavailable"])
def test_an_address_is_at_its_cap_by_a_connection_that_the_pool_of_the_cluster_refuses_later(
    tmp_path: Path, by: str
) -> None:
    of_address = "kafka_connections_max_per_ip"
    shard = OneShard(("setting", f"/{NAME}", "1"), ("setting", f"/{of_address}", "1"))
    client = {"port": 1000, "listener": "EXTERNAL", "version": 1}
    opened = shard.add("admitted", conn=1, ip="10.0.0.1", held_ms=0.1, **client)
    full = {"reason": "ip_cap", "limit": of_address, "limit_value": 1.0}
    shard.pause()
    with shard.at_once():
        shard.add("refused", conn=3, ip="10.0.0.2", held_ms=0.1, **client, **full)
        shard.add("refused", conn=2, ip="10.0.0.2", held_ms=9.0, **client, reason=by, limit=NAME, limit_value=1.0)
    shard.close(opened)
    checks = shard.judged(tmp_path)
    assert {check.verdict for check in checks.values()} == {"held"}, checks


def test_a_refusal_that_names_another_value_is_found(tmp_path: Path) -> None:
    clients = Clients()
    opened = [clients.open(1, 0), clients.open(2, 1), clients.open(3, 1)]
    clients.refused(4, 0, value=2)
    for each in opened:
        clients.end(each)
    check = clients.judged(tmp_path)["refused_as_configured"]
    assert check.verdict == "not justified" and f"that version says {NAME}=3" in check.detail


class Booked(Clients):
    """The same; the processes journal how many brokers there are, and the home the moves of its tokens."""

    def __init__(self, brokers: int | None = 2) -> None:
        super().__init__()
        for event in self.events:
            if event["kind"] == "shard_up" and event["broker"] >= 0 and brokers is not None:
                event["detail"] = json.dumps({**json.loads(event["detail"]), "brokers": brokers})

    def granted(self, tokens: int, home: int = HOME) -> None:
        """Tokens were granted to the other shard."""
        self._moved("grant", {"pool": "cluster", "to": 1 - home, "tokens": tokens}, home)

    def returned(self, tokens: int) -> None:
        self._moved("reclaim", {"pool": "cluster", "from": 1 - HOME, "tokens": tokens}, HOME)

    def _moved(self, kind: str, detail: dict[str, Any], home: int) -> None:
        self.add(kind, broker=home, shard=0, epoch=home + 1, version=1, detail=json.dumps(detail))


def test_books_of_an_honest_cluster_hold(tmp_path: Path) -> None:
    clients = Booked()
    opened = [clients.open(1, HOME)]
    clients.granted(2)
    opened += [clients.open(2, 1 - HOME), clients.open(3, 1 - HOME)]
    clients.end(opened.pop())
    clients.returned(1)
    opened.append(clients.open(4, HOME))
    for each in opened:
        clients.end(each)
    checks = clients.judged(tmp_path)
    assert {check.verdict for check in checks.values()} == {"held"}, checks
    assert checks["used_within_grants"].detail == "no process had more open than it was handed"


def test_a_home_that_hands_out_more_than_the_cap_is_found(tmp_path: Path) -> None:
    clients = Booked()
    opened = [clients.open(1, HOME)]
    clients.granted(3)
    for each in opened:
        clients.end(each)
    check = clients.judged(tmp_path)["granted_within_cap"]
    assert check.verdict == "exceeded"
    assert f"first the cluster: its home {HOME} had 3 granted to others and 1 open, 3 allowed" in check.detail


def test_a_shard_of_another_broker_with_more_open_than_it_was_granted_is_found(tmp_path: Path) -> None:
    clients = Booked()
    clients.granted(1)
    opened = [clients.open(conn, 1 - HOME) for conn in (1, 2)]
    for each in opened:
        clients.end(each)
    check = clients.judged(tmp_path)["used_within_grants"]
    assert check.verdict == "exceeded"
    assert f"first the cluster: member {1 - HOME} had 2 open and 1 tokens" in check.detail


def test_tokens_that_come_back_when_the_cap_is_removed_were_not_used_without_a_grant(tmp_path: Path) -> None:
    """A home may note the return before it has the version that removes the cap."""
    clients = Booked()
    clients.granted(2)
    opened = [clients.open(conn, 1 - HOME) for conn in (1, 2)]
    removed = {"changes": [["setting", f"/{NAME}", None]], "full": False, "acknowledged": False}
    clients.add("config", shard=COORDINATOR, version=2, detail=json.dumps(removed))
    clients.returned(2)
    for broker in (0, 1):
        clients.add("config", broker=broker, shard=0, epoch=broker + 1, version=2, detail=json.dumps(removed))
    clients.add("config", shard=COORDINATOR, version=2, detail=json.dumps({**removed, "acknowledged": True}))
    for each in opened:
        clients.end(each)
    checks = clients.judged(tmp_path)
    assert {check.verdict for check in checks.values()} == {"held"}, checks


def test_a_token_that_comes_back_while_it_is_in_use_is_found(tmp_path: Path) -> None:
    clients = Booked()
    clients.granted(2)
    opened = [clients.open(conn, 1 - HOME) for conn in (1, 2)]
    clients.returned(1)
    for each in opened:
        clients.end(each)
    check = clients.judged(tmp_path)["used_within_grants"]
    assert check.verdict == "exceeded" and "had 2 open and 1 tokens" in check.detail


@pytest.mark.parametrize("slices", [2, 4, 9])
@pytest.mark.parametrize(("granted", "verdict"), [(1, "exceeded"), (2, "held"), (4, "exceeded")])
def test_books_of_slices_of_time_are_those_of_the_whole(
    tmp_path: Path, granted: int, verdict: str, slices: int
) -> None:
    clients = Booked()
    clients.granted(granted)
    opened = [clients.open(conn, 1 - HOME) for conn in (1, 2)]
    for each in opened:
        clients.end(each)
    rows = clients.written(tmp_path).rows
    whole = audit(Journal(rows, [], is_live=False)).as_json()
    assert whole["verdict"] == verdict
    instants = sorted(event["mono_ns"] for event in clients.events)
    cuts = sorted(random.Random(slices).sample(instants, slices - 1))
    assert audit(Journal(in_slices(rows.table(), cuts, seed=slices), [], is_live=False)).as_json() == whole


def test_books_with_a_grant_by_another_shard_than_the_home_are_unknown(tmp_path: Path) -> None:
    clients = Booked()
    clients.granted(1, home=1 - HOME)
    assert clients.judged(tmp_path)["granted_within_cap"].verdict == "unknown"


def test_books_without_the_number_of_brokers_are_not_judged(tmp_path: Path) -> None:
    clients = Booked(brokers=None)
    clients.granted(3)
    check = clients.judged(tmp_path)["granted_within_cap"]
    assert check.verdict == "not judged" and "events of the cluster are missing" in check.detail
