"""The audit: honest storms hold, and what is beyond is found. test_many_seeds.py has every kind, at many places."""

import json
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow
import pytest
from local_rdd import in_slices
from storms import COORDINATOR, Storm, write

from turnstile.pipeline.audit.audit import audit
from turnstile.pipeline.audit.audit_result import AuditResult
from turnstile.pipeline.audit.refusal_names import misnamed
from turnstile.pipeline.events import open_counts
from turnstile.pipeline.events.config_states import ConfigEvent
from turnstile.pipeline.events.journal import here
from turnstile.pipeline.events.rows import RowsHere
from turnstile.pipeline.events.timeline import Timeline

Events = list[dict[str, Any]]


def verdicts(result: AuditResult) -> dict[str, str]:
    return {check.name: check.verdict for check in result.checks}


def audited(folder: Path, events: Events) -> AuditResult:
    write(folder, events, parts=2)
    return audit(here([folder]))


@pytest.mark.parametrize("seed", [1, 2])
def test_an_honest_storm_with_kills_and_changes_holds(tmp_path: Path, seed: int) -> None:
    result = audit(here([Storm(seed).run(300).end().write(tmp_path)]))
    assert result.verdict == "held", result.checks
    assert result.as_json()["events"] == result.events > 300


@pytest.mark.parametrize("rechecked", [False, True])
def test_only_a_connection_held_and_checked_again_is_refused_where_others_wait(rechecked: bool) -> None:
    changes = [["setting", "/listener.name.a.max.connections", "3"], ["setting", "/max.connections", "5"]]
    changes += [["setting", "/turnstile.ip.rate.recheck", "true"]] if rechecked else []
    detail = json.dumps({"changes": changes, "full": True, "acknowledged": False})
    row = {"broker": 0, "shard": 0, "epoch": 1, "ip": "10.0.0.1", "version": 1, "mono_ns": 200, "held_ms": 0.0}
    said = [
        ("A", "listener_cap", "listener.name.a.max.connections", 3.0),
        ("B", "listener_cap", "listener.name.a.max.connections", 3.0),
        ("B", "broker_cap", "max.connections", 5.0),
        ("A", "broker_cap", "max.connections", 3.0),
    ]
    names = "listener", "reason", "limit", "limit_value"
    rows = [row | {"conn": number} | dict(zip(names, each, strict=True)) for number, each in enumerate(said)]
    found = misnamed(Timeline([ConfigEvent(1, 10, -1, detail)], {}, ["A", "B"]), pyarrow.Table.from_pylist(rows))
    assert sorted(found["conn"].to_pylist()) == ([1, 3] if rechecked else [0, 1, 2, 3])


# ---- planted violations


def one_too_many(storm: Storm) -> None:
    """At a random moment, one more connection of an address is let in than its cap allows."""
    ip = storm.random.choice(storm.ips)
    while sum(each["ip"] == ip for each in storm.open) < storm.caps["kafka_connections_max_per_ip"]:
        storm.caps["kafka_connections_max"] = 1000  # not what this is about
        storm.ips = [ip]
        storm.arrive()
    storm.conn += 1
    columns = {"conn": storm.conn, "ip": ip, "port": 1, "listener": "EXTERNAL", "version": storm.version}
    storm.open.append(storm.add("admitted", 0, **columns))


def test_rates_beyond_their_window_are_found(tmp_path: Path) -> None:
    storm = Storm(1, per_ip=1000, total=1000)
    quota = [["quota", json.dumps({"ip": None}), {"connection_creation_rate": 2.0}]]
    storm.version = 2
    for shard in (COORDINATOR, 0, 1):
        storm.add(
            "config", shard, version=2, detail=json.dumps({"changes": quota, "full": False, "acknowledged": False})
        )
    storm.config(COORDINATOR, acknowledged=True)
    storm.now_ns += 60_000_000_000  # before that, windows reach back to when there was no limit
    storm.ips = ["10.0.0.1"]
    for _ in range(24):
        storm.arrive()
    assert verdicts(audited(tmp_path / "a", storm.events))["ip_rate"] == "held"
    for _ in range(2):
        storm.arrive()
    assert verdicts(audited(tmp_path / "b", storm.events))["ip_rate"] == "exceeded"


def test_no_journal_and_half_a_journal(tmp_path: Path) -> None:
    from turnstile.pipeline.errors import PipelineError

    with pytest.raises(PipelineError, match="no journal in it"):
        here([tmp_path])
    Storm(1).run(50).write(tmp_path)
    part = tmp_path / "1.parquet"
    part.write_bytes(part.read_bytes()[:-100])
    result = audit(here([tmp_path]))
    assert result.verdict == "unknown"
    assert "1.parquet is not a whole Parquet file" in result.checks[0].detail


# ---- the counts of open connections by themselves


def counted(events: Events) -> tuple[pyarrow.Table, Timeline]:
    """A storm's opens and closes as open_counts sees them, and its timeline."""
    rows = []
    ends = {event["conn"]: event["mono_ns"] for event in events if event["kind"] == "closed"}
    lasts: dict[int, int] = {}
    for event in events:
        lasts[event["epoch"]] = event["mono_ns"]
    newest = {event["shard"]: event["epoch"] for event in events}
    for event in events:
        if event["kind"] != "admitted":
            continue
        gone = event["epoch"] < newest[event["shard"]]
        end = ends.get(event["conn"], lasts[event["epoch"]] if gone else None)
        same = {"broker": 0, "listener": "EXTERNAL", "ip": event["ip"], "version": event["version"]}
        if end is None or end > event["mono_ns"]:
            rows.append({**same, "conn": event["conn"], "at_ns": event["mono_ns"], "change": 1})
        if end is not None and end > event["mono_ns"]:
            rows.append({**same, "conn": event["conn"], "at_ns": end, "change": -1})
    configs = [
        ConfigEvent(event["version"], event["mono_ns"], event["broker"], event["detail"])
        for event in events
        if event["kind"] == "config"
    ]
    seen: dict[int, int] = {}
    for event in events:
        seen.setdefault(event.get("version") or 0, event["mono_ns"])
    seen.pop(0, None)
    return pyarrow.Table.from_pylist(rows, open_counts.STEPS), Timeline(configs, seen, ["EXTERNAL"])


def test_slices_count_as_the_whole() -> None:
    storm = Storm(5).run(200)
    one_too_many(storm)
    table, timeline = counted(storm.events)
    instants = sorted(table["at_ns"].to_pylist())
    rows = in_slices(table, instants[20::20])
    judge = partial(open_counts.over_the_cap, timeline)
    found = rows.swept(["ip", "broker"], judge, open_counts.EXCESS, closes_first=True)
    whole = RowsHere(table).swept(["ip", "broker"], judge, open_counts.EXCESS, closes_first=True)
    assert found.num_rows == whole.num_rows > 0
    assert sorted(found["conn"].to_pylist()) == sorted(whole["conn"].to_pylist())


@pytest.mark.parametrize(("set_s", "told"), [(-3600.0, True), (2.0, True), (0.0, False)])
def test_a_wall_clock_that_was_set_is_told_and_changes_no_verdict(tmp_path: Path, set_s: float, told: bool) -> None:
    events = Storm(1).run(200).end().events
    middle = sorted(event["mono_ns"] for event in events)[len(events) // 2]
    for event in events:
        event["ts"] = 1_600_000_000_000_000 + event["mono_ns"] // 1000
        event["ts"] += int(set_s * 1_000_000) if event["mono_ns"] > middle else 0
    result = audited(tmp_path, events)
    assert (result.verdict, result.as_json()["clock_set_s"]) == ("held", abs(set_s))
    assert ("The wall clock was set meanwhile" in result.facts) == told


def test_a_journal_of_at_most_so_many_events_is_read_here_and_one_beyond_is_not(tmp_path: Path) -> None:
    storm = Storm(1).run(50).end()
    folder, events = storm.write(tmp_path), len(storm.events)
    assert here([folder], at_most=events) is not None
    assert here([folder], at_most=events - 1) is None
