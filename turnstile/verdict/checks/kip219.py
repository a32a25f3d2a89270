"""Nothing is sent on a connection while it is muted: KIP-219.

Of each API, and of each length of throttle time, by itself: a client may wait for some and not for others.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import NamedTuple

from turnstile.verdict.finding import FAIL, PASS, UNJUDGED, WARN, ApiFinding, Finding, worst_first
from turnstile.verdict.known_defects import known_defect
from turnstile.verdict.pauses import usual_pauses_ms
from turnstile.verdict.timeline import MS, Event, Timeline

SOURCE = "KIP-219: a client sends nothing on a connection until its throttle time is over"
AT_ONCE_MS = 25
"""A request that arrives so soon may have been under way already; but not after every other response."""
OFTEN = 0.2
"""The share of throttled responses: a smaller one may come of a client that reads a response late."""
_EDGE_MS = 5
"""The end of a throttle time in which it is over for a client that counts whole milliseconds."""
ENOUGH = 3
"""Throttled responses: that nothing follows fewer may be chance."""
LEAST = 2
"""The least throttled responses of one API and one length, if bytes follow each of them."""
_ADVICE = (
    "Wait for throttle_time_ms of each response before the next request on that connection, or take a client that does."
)


@dataclass
class _Mute:
    """A throttled response, and how many milliseconds after it bytes arrived: so late that they were sent in spite of it; so soon
    that they may have been under way; and later, but while the machine stalled."""

    told: Event
    early: list[float] = field(default_factory=list)
    at_once: list[float] = field(default_factory=list)
    excused: list[float] = field(default_factory=list)


class _Early(NamedTuple):
    """`mutes`: the throttled responses after which the client sent too early. `rules`: (API, ms) after which that is the rule, of
    `groups` in all. `is_rule`: whether it is the rule of these, or of all responses."""

    mutes: list[_Mute]
    rules: list[tuple[str, int]]
    groups: int
    is_rule: bool


def judge(timeline: Timeline) -> Finding:
    steps = timeline.of_kind("throttle")
    if not steps:
        return Finding(UNJUDGED, timeline.skipped.get("throttle", "nothing was throttled"), SOURCE)
    mutes = _mutes(timeline)
    if not mutes:
        return Finding(UNJUDGED, "no request was made while requests were throttled", SOURCE)
    return _judge_all(timeline, mutes)._replace(apis=_by_api(timeline, mutes))


def _judge_all(timeline: Timeline, mutes: Sequence[_Mute]) -> Finding:
    lengths = [mute.told.throttle_ms for mute in mutes]
    sample = f"{len(mutes)} throttled responses, of {min(lengths)} to {max(lengths)} ms"
    found = _early(mutes)
    if early := found.mutes:
        after_ms = median(at_ms for mute in early for at_ms in (mute.early or mute.excused or mute.at_once))
        seen = f"bytes arrived on the muted connection after {len(early)} of {sample}, mostly {after_ms:.0f} ms after the response"
        if found.rules and len(found.rules) < found.groups:
            seen += f"; as a rule after {', '.join(f'{api} throttled by {ms} ms' for api, ms in sorted(found.rules))}"
        verdict = _verdict(found, mutes)
        if verdict != PASS:
            return Finding(verdict, seen, SOURCE, _ADVICE)
        return Finding(PASS, f"{seen}: it may have been on its way, from a client that got no CPU", SOURCE)
    excused = [mute for mute in mutes if mute.excused]
    if _is_rule(excused, mutes):
        return Finding(
            UNJUDGED, f"this machine stalled whenever bytes arrived early, after {len(excused)} of {sample}", SOURCE
        )
    if len(mutes) < ENOUGH:
        return Finding(UNJUDGED, f"too few to tell: {sample}", SOURCE)
    if len(idle := [mute for mute in mutes if _had_no_cpu(timeline, mute)]) > len(mutes) - ENOUGH:
        return Finding(UNJUDGED, f"this machine stalled after {len(idle)} of {sample}", SOURCE)
    return Finding(PASS, f"nothing arrived on a muted connection, in {sample}", SOURCE)


def _by_api(timeline: Timeline, mutes: Sequence[_Mute]) -> tuple[ApiFinding, ...]:
    """The finding for each API, the worst first."""
    pauses_ms = usual_pauses_ms(timeline.events)
    groups: dict[str, list[_Mute]] = {}
    for mute in mutes:
        groups.setdefault(mute.told.api, []).append(mute)
    return worst_first(_of_api(timeline, api, group, pauses_ms.get(api, 0.0)) for api, group in groups.items())


def _of_api(timeline: Timeline, api: str, group: Sequence[_Mute], pause_ms: float) -> ApiFinding:
    """Unjudged where nothing came early, and fewer than LEAST throttle times were longer than the client usually pauses."""
    found = _early(group)
    verdict = _verdict(found, group)
    telling = [mute for mute in group if mute.told.throttle_ms > pause_ms and not _had_no_cpu(timeline, mute)]
    if verdict == PASS and (len(telling) < LEAST or _is_rule([mute for mute in group if mute.excused], group)):
        verdict = UNJUDGED
    known = known_defect(api) if verdict in (WARN, FAIL) else ""
    return ApiFinding(api, verdict, len(group), len(found.mutes), known)


def _early(mutes: Sequence[_Mute]) -> _Early:
    groups: dict[tuple[str, int], list[_Mute]] = {}
    for mute in mutes:
        groups.setdefault((mute.told.api, mute.told.throttle_ms), []).append(mute)
    broken = {key: found for key, group in groups.items() if (found := _broken(group))}
    early = [mute for found in broken.values() for mute in found]
    early = max(early, _broken(mutes), key=len)  # too few of each API may be enough of all together
    rules = [key for key, found in broken.items() if _is_rule(found, groups[key])]
    return _Early(early, rules, len(groups), bool(rules) or _is_rule(early, mutes))


def _verdict(found: _Early, mutes: Sequence[_Mute]) -> str:
    if not found.mutes:
        return PASS
    if found.is_rule:
        return FAIL
    return WARN if len(found.mutes) >= ENOUGH or len(found.mutes) >= OFTEN * len(mutes) else PASS


def _mutes(timeline: Timeline) -> list[_Mute]:
    """All throttled responses, with what arrived before their time was over."""
    found: list[_Mute] = []
    last: dict[tuple[int, int, int, int], _Mute] = {}
    for event in timeline.in_steps(timeline.of_kind("throttle"), "request", "early"):
        if event.kind == "request" and event.throttle_ms:
            last[event.conn] = _Mute(event)
            found.append(last[event.conn])
        elif event.kind == "early" and event.conn in last:
            mute, after_ms = last[event.conn], event.took_ms
            if after_ms > mute.told.throttle_ms - _EDGE_MS:
                continue
            stalled_ms = timeline.machine.stalled_ms(event.at_ns - after_ms * MS, event.at_ns)
            is_excused = after_ms > AT_ONCE_MS and after_ms <= AT_ONCE_MS + 2 * stalled_ms
            (mute.excused if is_excused else mute.early if after_ms > AT_ONCE_MS else mute.at_once).append(after_ms)
    return found


def _had_no_cpu(timeline: Timeline, mute: _Mute) -> bool:
    """True if the machine stalled for most of a throttle time: a client that would have sent something could not."""
    told_ns = mute.told.at_ns + int(mute.told.took_ms * MS)
    return 2 * timeline.machine.stalled_ms(told_ns, told_ns + mute.told.throttle_ms * MS) > mute.told.throttle_ms


def _broken(group: Sequence[_Mute]) -> list[_Mute]:
    """The mutes in which the client sent too early. What came at once, or while the machine stalled, counts where it is the rule: a
    client that waits for an answer, or for a throttle time, sends nothing, however slow it is."""
    excused = [mute for mute in group if mute.early or mute.excused]
    if len(excused) >= ENOUGH and 2 * len(excused) >= len(group):
        return excused
    late, at_once = [mute for mute in group if mute.early], [mute for mute in group if mute.at_once]
    alone = [mute for mute in group if not mute.told.value] or group  # behind which nothing waited
    if len(at_once) >= ENOUGH and 2 * len(at_once) >= len(alone):
        return [mute for mute in group if mute.early or mute.at_once]
    return late


def _is_rule(broken: Sequence[_Mute], all_: Sequence[_Mute]) -> bool:
    return len(broken) >= (LEAST if len(broken) == len(all_) else ENOUGH) and len(broken) >= OFTEN * len(all_)
