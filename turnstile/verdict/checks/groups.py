"""A member of a group that is throttled stays a member: empty fetches are tolerated, heartbeats go on, no member joins again.

Groups of the classic protocol, and those of KIP-848 (consumer), KIP-932 (share) and KIP-1071 (streams), which join by a heartbeat.
"""

from __future__ import annotations

from itertools import pairwise

from turnstile.verdict.finding import FAIL, PASS, UNJUDGED, Finding
from turnstile.verdict.timeline import SECOND, Event, Timeline

SOURCE = "KIP-219, KIP-62: a throttled Fetch is answered empty, and heartbeats do not depend on it"
HEARTBEATS = ("Heartbeat", "ConsumerGroupHeartbeat", "ShareGroupHeartbeat", "StreamsGroupHeartbeat")
FETCHES = ("Fetch", "ShareFetch")
_LONGEST_S = 10.0
"""Between two heartbeats, less the throttle time of the first: the session timeout of Kafka's first consumers, and less than that
of any since."""
_ADVICE = "Take an empty Fetch for what it is, and heartbeat on a connection of its own."


def judge(timeline: Timeline) -> Finding:
    if not {"JoinGroup", "SyncGroup", *HEARTBEATS} & {e.api for e in timeline.events if e.kind == "request"}:
        return Finding(UNJUDGED, "the client is in no group", SOURCE)
    steps = timeline.of_kind("throttle")
    requests = timeline.in_steps(steps, "request")
    throttled = [event for event in requests if event.api in FETCHES and event.throttle_ms]
    if not throttled:
        return Finding(UNJUDGED, timeline.skipped.get("throttle", "no Fetch was throttled"), SOURCE)
    beaten = [event for event in requests if event.api in HEARTBEATS and event.throttle_ms]
    joined = [event for event in requests if event.api == "JoinGroup"]
    later = [e for e in timeline.events if e.kind == "request" and e.api in FETCHES and e.at_ns > throttled[-1].at_ns]
    heartbeats = [event for event in requests if event.api in HEARTBEATS]
    longest_s = _longest_gap_s(heartbeats)
    beats = f"heartbeats at most {longest_s:.1f} s apart" if len(heartbeats) > 1 else "fewer than two heartbeats"
    seen = f"{len(throttled)} Fetches and {len(beaten)} heartbeats throttled; {len(joined)} JoinGroup; {beats}"
    if joined:
        return Finding(FAIL, f"it joined its group again while it was throttled: {seen}", SOURCE, _ADVICE)
    if not later and timeline.is_the_end(throttled[-1].at_ns):
        return Finding(UNJUDGED, f"it was gone after a throttled Fetch: {seen}", SOURCE)
    if not later:
        return Finding(FAIL, f"it fetched no more after a throttled Fetch: {seen}", SOURCE, _ADVICE)
    if longest_s > _LONGEST_S:
        return Finding(FAIL, seen, SOURCE, _ADVICE)
    return Finding(PASS, seen, SOURCE)


def _longest_gap_s(heartbeats: list[Event]) -> float:
    """Seconds between two heartbeats, less the throttle time of the first, during which none may be sent."""
    return max(((b.at_ns - a.at_ns) / SECOND - a.throttle_ms / 1000 for a, b in pairwise(heartbeats)), default=0.0)
