"""The versions that may be in force at an instant: nothing else decides what the audit allows then."""

import json
from typing import Any

from turnstile.pipeline.events.config_states import ConfigEvent
from turnstile.pipeline.events.timeline import Timeline
from turnstile.pipeline.events.version_limits import UNLIMITED

CAP = "kafka_connections_max_per_ip"


def config(
    version: int, at_ns: int, cap: int | None, *, broker: int = 0, full: bool = False, acknowledged: bool = False
) -> Any:
    changes = [["setting", f"/{CAP}", None if cap is None else str(cap)]]
    detail = json.dumps({"changes": changes, "full": full, "acknowledged": acknowledged})
    return ConfigEvent(version, at_ns, broker, detail)


def stored(version: int, at_ns: int, cap: int | None) -> Any:
    return config(version, at_ns, cap, broker=-1)


def acknowledged(version: int, at_ns: int, cap: int | None) -> Any:
    return config(version, at_ns, cap, broker=-1, acknowledged=True)


def caps(timeline: Timeline, *instants: int, ip: str = "10.0.0.1") -> list[int]:
    return [timeline.allowed(timeline.period(at_ns), 0, "ip", ip) for at_ns in instants]


def test_between_storing_and_acknowledging_the_wider_cap_is_allowed() -> None:
    events = [config(1, 10, 5, full=True), stored(2, 100, 3), config(2, 120, 3), acknowledged(2, 150, 3)]
    assert caps(Timeline(events, {}, ["L"]), 50, 110, 149, 150, 1000) == [5, 5, 5, 3, 3]
    events = [config(1, 10, 5, full=True), stored(2, 100, 9), config(2, 120, 9), acknowledged(2, 150, 9)]
    assert caps(Timeline(events, {}, ["L"]), 50, 99, 100, 149, 150) == [5, 5, 9, 9, 9]


def test_a_later_raise_does_not_excuse_an_earlier_excess() -> None:
    events = [config(1, 10, 5, full=True), acknowledged(1, 20, 5), config(2, 120, 3), acknowledged(2, 150, 3)]
    events += [config(3, 220, 9), acknowledged(3, 250, 9)]
    assert caps(Timeline(events, {}, ["L"]), 149, 151, 250) == [5, 9, 9]  # nothing says when 3 was stored
    assert caps(Timeline([*events, stored(3, 200, 9)], {}, ["L"]), 149, 151, 199, 201) == [5, 3, 3, 9]


def test_removing_a_setting_removes_its_cap() -> None:
    events = [config(1, 10, 5, full=True), stored(2, 100, None), acknowledged(2, 150, None)]
    assert caps(Timeline(events, {}, ["L"]), 50, 200) == [5, UNLIMITED]


def test_a_brokers_own_setting_wins_and_command_line_settings_come_last() -> None:
    changes = [["static", f"/{CAP}", "2"], ["setting", f"/{CAP}", "3"], ["setting", f"1/{CAP}", "4"]]
    event = ConfigEvent(1, 10, 0, json.dumps({"changes": changes, "full": True}))
    timeline = Timeline([event], {}, ["L"])
    assert [timeline.allowed(0, broker, "ip", "10.0.0.1") for broker in (0, 1)] == [3, 4]


def test_a_change_says_what_was_in_force_before_it() -> None:
    changes = [["static", f"/{CAP}", "50"]]
    event = ConfigEvent(1, 10, 0, json.dumps({"changes": changes, "full": True}))
    timeline = Timeline([event, stored(2, 100, 20), stored(3, 200, None)], {}, ["L"])
    assert [timeline.changed(version) for version in (1, 2, 3)] == [[], [f"{CAP} 50 -> 20"], [f"{CAP} 20 -> 50"]]


def test_what_is_not_known_is_said() -> None:
    assert "no configuration" in Timeline([], {}, []).unknown[0]
    assert "before version 5" in Timeline([config(5, 10, 3)], {}, []).unknown[0]
    assert "what version 7 says" in Timeline([config(5, 10, 3, full=True)], {7: 50}, []).unknown[0]
