"""The audit of an observed rate of a whole cluster, over the journals of two brokers: an honest cluster holds; a unit too many,
and a decision without a violation or by another value, are found. Its window stands beside that of an enforced rate."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from test_observed_cluster_checks import OTHER, Clients

NAME = "turnstile.cluster.max.connection.creation.rate"


class Rated(Clients):
    """Two brokers with a shard each, and an observed rate of 1 new connection a second for both. The home is on broker 1."""

    setting, reason = (NAME, "1"), "cluster_rate"

    def unit(self, to: int = 0, units: int = 1, **more: Any) -> None:
        self.at_home({"pool": "rate:observed/cluster", "to": to, "tokens": units, "at_ms": self.now_ms, **more})

    def violated(self) -> None:
        self.unit(units=0, violated=True)

    def starts(self, pool: str, *remembered: tuple[int, str, int]) -> None:
        self.at_home({"pool": f"rate:{pool}", "started": True, "remembered": remembered})

    def at_home(self, detail: dict[str, Any]) -> None:
        self.add("grant", **OTHER, version=1, detail=json.dumps(detail))


def test_connections_within_the_rate_and_decisions_when_it_was_violated_hold(tmp_path: Path) -> None:
    clients = Rated()
    clients.starts("cluster")
    clients.starts("observed/cluster")
    clients.unit(units=6)
    clients.unit(to=1, units=4)
    for conn, other in enumerate(("", "cluster", "")):  # windows of that shard that begin anew: this one does not
        clients.open(conn, 0)
        clients.violated()
        clients.would_refuse(conn, 0, value=1.0)
        clients.starts(other)
    checks = clients.judged(tmp_path)
    assert {check.verdict for check in checks.values()} == {"held"}, checks
    told = "3 connections would have been refused by the rate of the whole cluster, each when it was violated"
    assert checks["observed_cluster_rate"].detail == told
    assert {"observed_cluster_rate_units", "observed_with_cause"} <= set(checks)
    assert not {"cluster_rate", "cluster_rate_units", "observed_rates"} & set(checks)


def test_a_unit_beyond_the_rate_is_found_also_after_what_is_remembered(tmp_path: Path) -> None:
    clients = Rated()
    clients.starts("observed/cluster", (clients.now_ms, "observed/cluster", 8))
    with clients.at_once():
        clients.unit(units=3)
    check = clients.judged(tmp_path)["observed_cluster_rate_units"]
    assert check.verdict == "exceeded" and "first observed/cluster of broker 1: 1 of 3" in check.detail


def test_a_decision_without_a_violation_at_the_home_is_found(tmp_path: Path) -> None:
    clients = Rated()
    clients.unit(units=2)
    clients.at_home({"pool": "rate:cluster", "to": 0, "tokens": 0, "at_ms": clients.now_ms, "violated": True})
    clients.open(1, 0)
    clients.pause()
    clients.would_refuse(1, 0, value=1.0)
    check = clients.judged(tmp_path)["observed_cluster_rate"]
    assert check.verdict == "not justified" and "its home found no violation of that rate" in check.detail, check


def test_a_decision_that_names_another_value_is_found(tmp_path: Path) -> None:
    clients = Rated()
    clients.open(1, 0)
    clients.violated()
    clients.would_refuse(1, 0, value=7.0)
    check = clients.judged(tmp_path)["observed_cluster_rate"]
    assert check.verdict == "not justified" and f"that version observes {NAME}=1" in check.detail, check


def test_a_journal_in_which_that_rate_is_not_observed_is_not_judged_by_it(tmp_path: Path) -> None:
    clients = Clients()
    clients.open(1, 0)
    assert not {"observed_cluster_rate", "observed_cluster_rate_units"} & set(clients.judged(tmp_path))
