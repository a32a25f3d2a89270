"""The audit of the rate of a whole cluster, over the journals of two brokers: honest ones hold; a unit too many, more admissions
than any window allows, and a refusal without a violation are found. Its window stands beside those of the home's own broker."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from one_shard import OneShard
from test_cluster_checks import Clients

NAME = "turnstile.cluster.max.connection.creation.rate"
BURST = 10  # of a rate of 1


class Rated(Clients):
    """Two brokers with a shard each, which together may have 1 connection a second. The home of the rate is on broker 1."""

    setting = NAME, "1"

    def unit(self, to: int = 0, units: int = 1, **more: Any) -> None:
        self.at_home("grant", {"pool": "rate:cluster", "to": to, "tokens": units, "at_ms": self.now_ms, **more})

    def starts(self, pool: str, *remembered: tuple[int, str, int]) -> None:
        self.at_home("grant", {"pool": f"rate:{pool}", "started": True, "remembered": remembered})

    def at_home(self, kind: str, detail: dict[str, Any]) -> None:
        self.add(kind, broker=1, epoch=2, version=1, detail=json.dumps(detail))

    def beyond(self, conn: int, broker: int) -> None:
        self.refused(conn, broker, 1.0, reason="cluster_rate", limit=NAME)


def test_connections_within_the_rate_and_refusals_of_violations_hold(tmp_path: Path) -> None:
    clients = Rated()
    clients.starts("cluster")
    clients.starts("")
    clients.unit(units=6)
    clients.unit(to=1, units=4)
    opened = [clients.open(conn, conn % 2) for conn in range(1, 5)]
    clients.unit(units=0, violated=True)
    clients.beyond(5, 0)
    clients.starts("")  # another window of that shard begins anew: that of the cluster does not
    clients.unit(units=0, violated=True)
    clients.beyond(6, 1)
    for each in opened:
        clients.end(each)
    checks = clients.judged(tmp_path)
    assert {check.verdict for check in checks.values()} == {"held"}, checks
    assert {"cluster_rate", "cluster_rate_units", "refused_with_cause"} <= set(checks)


def test_a_unit_beyond_the_rate_is_found_also_after_what_is_remembered(tmp_path: Path) -> None:
    clients = Rated()
    clients.starts("cluster", (clients.now_ms, "cluster", 8))
    with clients.at_once():
        clients.unit(units=3)
    clients.end(clients.open(1, 0))
    check = clients.judged(tmp_path)["cluster_rate_units"]
    assert check.verdict == "exceeded" and "first cluster of broker 1: 1 of 3" in check.detail


def test_more_admissions_by_both_brokers_than_any_window_allows_are_found(tmp_path: Path) -> None:
    clients = Rated()
    with clients.at_once():
        opened = [clients.open(conn, conn % 2) for conn in range(1, 80)]
    for each in opened:
        clients.end(each)
    check = clients.judged(tmp_path)["cluster_rate"]
    assert check.verdict == "exceeded" and check.detail.startswith("the cluster: 79 admitted in 9 s"), check


def test_a_refusal_without_a_violation_at_the_home_is_found(tmp_path: Path) -> None:
    clients = Rated()
    clients.unit(units=2)
    opened = [clients.open(1, 0), clients.open(2, 1)]
    clients.pause()
    clients.beyond(3, 0)
    clients.pause()
    for each in opened:
        clients.end(each)
    check = clients.judged(tmp_path)["refused_with_cause"]
    assert check.verdict == "not justified" and "its home found no violation of that rate" in check.detail, check


def test_without_the_events_of_the_homes_broker_no_refusal_is_found_wrong(tmp_path: Path) -> None:
    clients = Rated()
    clients.unit(units=0, violated=True)
    clients.beyond(3, 0)
    clients.pause()
    clients.events = [event for event in clients.events if event["broker"] != 1]
    check = clients.judged(tmp_path)["refused_with_cause"]
    assert check.verdict == "unknown" and check.detail.startswith(
        f"1 refusals; first by {NAME}=1 of version 1 on the cluster"
    )
    assert check.detail.endswith("but events of the cluster are missing")


def test_a_refusal_that_names_another_value_is_found(tmp_path: Path) -> None:
    clients = Rated()
    clients.unit(units=0, violated=True)
    clients.refused(3, 0, 7.0, reason="cluster_rate", limit=NAME)
    checks = clients.judged(tmp_path)
    assert f"that version says {NAME}=1" in checks["refused_as_configured"].detail


def test_a_journal_without_that_rate_is_not_judged_by_it(tmp_path: Path) -> None:
    assert not {"cluster_rate", "cluster_rate_units"} & set(OneShard().judged(tmp_path))
