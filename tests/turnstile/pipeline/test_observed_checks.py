"""The audit of observed caps: honest journals hold, and what an enforced cap would not have decided is found."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from storms import COORDINATOR, Storm, write

from turnstile.pipeline.audit.audit import audit
from turnstile.pipeline.audit.audit_result import AuditResult
from turnstile.pipeline.events.config_states import ConfigEvent
from turnstile.pipeline.events.journal import here
from turnstile.pipeline.events.observed_timeline import ObservedTimeline
from turnstile.pipeline.events.timeline import Timeline
from turnstile.pipeline.report.report import build
from turnstile.pipeline.report.report_page import page

PER_IP, TOTAL = "kafka_connections_max_per_ip", "kafka_connections_max"


class ObservedStorm(Storm):
    """The caps are observed: every connection is admitted, and what they would have refused is journaled."""

    kills = True

    def __init__(self, seed: int, **size: int) -> None:
        self.inside: list[dict[str, Any]] = []
        super().__init__(seed, **size)

    def config(self, shard: int, *, full: bool = False, acknowledged: bool = False) -> None:
        super().config(shard, full=full, acknowledged=acknowledged)
        self.events[-1]["detail"] = self.events[-1]["detail"].replace('"setting"', '"observed"')

    def arrive(self, shard: int | None = None) -> None:
        shard = self.random.randrange(self.shards) if shard is None else shard
        self.conn += 1
        ip = self.random.choice(self.ips)
        same = {"conn": self.conn, "ip": ip, "port": 1000 + self.conn, "listener": "EXTERNAL"}
        event = self.add("admitted", shard, held_ms=0.1, version=self.version, **same)
        self.open.append(event)
        if sum(each["ip"] == ip for each in self.inside) >= self.caps[PER_IP]:
            self._would_refuse(shard, "ip_cap", PER_IP, same)
        elif len(self.inside) >= self.caps[TOTAL]:
            self._would_refuse(shard, "broker_cap", TOTAL, same)
        else:
            if self.random.random() < 0.3:
                self.add("observed", shard, held_ms=0.5, version=self.version, **same)
            self.inside.append(event)

    def _would_refuse(self, shard: int, reason: str, limit: str, same: dict[str, Any]) -> None:
        is_older = self.before is not None and self.before[limit] == self.caps[limit]
        version = self.version - is_older
        value = float(self.caps[limit])
        self.add("observed", shard, reason=reason, limit=limit, limit_value=value, version=version, held_ms=0.2, **same)

    def close(self, event: dict[str, Any]) -> None:
        super().close(event)
        self.inside = [each for each in self.inside if each is not event]

    def kill(self) -> None:
        if not self.kills:
            return
        before = set(map(id, self.open))
        super().kill()
        self.inside = [each for each in self.inside if id(each) not in before or each in self.open]


def storm(seed: int, steps: int = 300, *, kills: bool = True) -> list[dict[str, Any]]:
    made = ObservedStorm(seed, per_ip=2, total=5)
    made.kills = kills
    return made.run(steps).end().events


def audited(folder: Path, events: list[dict[str, Any]]) -> AuditResult:
    seq: dict[tuple[Any, ...], int] = {}
    for event in events:  # without a gap
        place = event["broker"], event["shard"], event["epoch"]
        event["seq"] = seq[place] = seq.get(place, -1) + 1
    write(folder, events, parts=2)
    journal = here([folder])
    assert journal is not None
    return audit(journal)


def verdicts(result: AuditResult) -> dict[str, str]:
    return {check.name: check.verdict for check in result.checks}


@pytest.mark.parametrize("seed", range(5))
def test_an_honest_storm_with_kills_and_changes_holds(tmp_path: Path, seed: int) -> None:
    result = audited(tmp_path, storm(seed))
    assert result.verdict == "held", result.checks
    assert {"observed_caps", "observed_with_cause"} <= verdicts(result).keys()
    assert "observed kafka_connections_max_per_ip" in result.limits
    assert not any(event["kind"] == "refused" for event in storm(seed))


def test_where_nothing_is_observed_nothing_is_said_of_it(tmp_path: Path) -> None:
    result = audited(tmp_path, Storm(1).run(50).end().events)
    assert not any(name.startswith("observed") for name in verdicts(result))


@pytest.mark.parametrize("seed", range(3))
def test_a_member_that_should_have_been_refused_is_found(tmp_path: Path, seed: int) -> None:
    """No shard is killed: what one admitted within seconds before its death is not judged."""
    events = storm(seed, kills=False)
    told = [event for event in events if event["kind"] == "observed" and event.get("reason") == "ip_cap"]
    settled = [event for event in told if _is_settled(events, event)]
    events.remove(settled[len(settled) // 2])
    assert verdicts(audited(tmp_path, events))["observed_caps"] == "exceeded"


@pytest.mark.parametrize("dies", [True, False])
def test_a_connection_that_closed_before_it_was_decided_is_not_judged_if_its_process_died_then(
    tmp_path: Path, dies: bool
) -> None:
    """Its decision is in no journal. Of a process that ends in order all are there, so it was in the observed world."""
    quiet = ObservedStorm(1, shards=1, ips=1, per_ip=2, total=9)
    quiet.arrive(0)
    quiet.arrive(0)
    quiet.now_ns += 10_000_000_000
    same = {name: quiet.open[0][name] for name in ("ip", "port", "listener")}
    quiet.close(quiet.add("admitted", 0, held_ms=0.1, version=1, **same, conn=99))
    if dies:
        quiet.kill()
    assert verdicts(audited(tmp_path, quiet.end().events))["observed_caps"] == ("held" if dies else "exceeded")


def _is_settled(events: list[dict[str, Any]], event: dict[str, Any]) -> bool:
    """Whether its version is the only one in force then, and it stays open for a while."""
    configs = [each for each in events if each["kind"] == "config" and each["shard"] == COORDINATOR]
    last = [each for each in configs if each["mono_ns"] < event["mono_ns"]][-1]
    return '"acknowledged": true' in last["detail"]


def test_one_that_names_another_value_is_found(tmp_path: Path) -> None:
    events = storm(1)
    next(event for event in events if event.get("reason") == "ip_cap")["limit_value"] = 99.0
    result = audited(tmp_path, events)
    assert verdicts(result)["observed_with_cause"] == "not justified"
    assert "that version observes kafka_connections_max_per_ip=" in str(result.checks)


def test_one_that_was_refused_with_room_is_found(tmp_path: Path) -> None:
    quiet = ObservedStorm(1, per_ip=2, total=5)
    quiet.arrive(0)
    event = quiet.open[0]
    quiet.now_ns += 10_000_000_000
    same = {name: event[name] for name in ("ip", "port", "listener")}
    other = {**same, "conn": 99}
    quiet.open.append(quiet.add("admitted", 0, held_ms=0.1, version=1, **other))
    quiet.add("observed", 0, reason="ip_cap", limit=PER_IP, limit_value=2.0, version=1, held_ms=0.1, **other)
    quiet.now_ns += 10_000_000_000
    result = audited(tmp_path, quiet.end().events)
    assert verdicts(result)["observed_with_cause"] == "not justified"
    assert "at most 1 could be in use" in str(result.checks)


def test_the_report_counts_observed_decisions_in_a_section_of_their_own(tmp_path: Path) -> None:
    events = storm(2)
    told = [event for event in events if event["kind"] == "observed" and event.get("reason")]
    write(tmp_path, events, parts=2)
    journal = here([tmp_path])
    assert journal is not None
    built = build(journal)
    assert sum(row["count"] for row in built.rows["observed"]) == len(told) > 10
    assert {row["limit"] for row in built.rows["observed"]} <= {PER_IP, TOTAL}
    assert sum(row["count"] for row in built.rows["observed_ips"]) == len(told)
    assert built.summary["refused"] == 0 and built.rows["refused_ips"] == []
    assert "Observed limits" in page(built, name="a")


def test_the_observed_world_begins_with_its_first_other_cap_and_not_with_a_rate() -> None:
    """A rate that goes on being observed keeps no cap's world: it ends with the last cap, and begins with the next one."""
    rate, cap = ["observed", "/max.connection.creation.rate", "9"], ["observed", f"/{PER_IP}", "2"]
    changes = [[rate], [cap], [[*cap[:2], None]], [cap], [["setting", f"/{PER_IP}", "2"]], [[*cap[:2], "3"]]]
    events = [
        ConfigEvent(version, version, 0, json.dumps({"changes": each, "full": version == 1}))
        for version, each in enumerate(changes, start=1)
    ]
    timeline = ObservedTimeline(Timeline(events, {}, ["PLAINTEXT"]))
    assert timeline.observes
    assert timeline.begins == [2, 4, 6], "with version 5 the cap in force is the observed one"
