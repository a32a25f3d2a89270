"""What a throttled producer sends arrives once: nothing is lost, nothing is doubled."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

from turnstile.verdict.finding import FAIL, PASS, UNJUDGED, Finding
from turnstile.verdict.timeline import MS, SECOND, Record, Timeline

SOURCE = "KIP-219 (a throttled Produce was done), KIP-98 (idempotence)"
_NUMBER = re.compile(rb"\d+")
_ADVICE = "Do not send again what was only throttled, or switch idempotence on; keep records while throttling lasts."


def judge(timeline: Timeline) -> Finding:
    if timeline.records is None:
        return Finding(UNJUDGED, timeline.skipped.get("delivery", "the log was not read"), SOURCE)
    throttled = timeline.of_kind("throttle", "overlap")
    if not throttled:
        return Finding(UNJUDGED, "nothing was throttled", SOURCE)
    began_ms, ended_ms = (
        (at_ns + timeline.wall_offset_ns) // MS
        for at_ns in (timeline.baseline.began_ns, throttled[-1].ended_ns - SECOND)
    )
    # Those of the last second may be on their way when the next step cuts connections: a retry of these is right.
    records = [record for record in timeline.records if began_ms <= record.at_ms <= ended_ms]
    if not records:
        return Finding(UNJUDGED, "the client produced nothing", SOURCE)
    usual_ms = (timeline.baseline.ended_ns + timeline.wall_offset_ns) // MS
    if _doubled([record for record in records if record.at_ms < usual_ms]):
        return Finding(UNJUDGED, "its records are alike, so that a doubled one can't be told", SOURCE)
    doubled, lost = _doubled(records), _lost(records)
    counted = "" if lost is not None else "; whether one was lost can't be told, as their values are not numbered"
    seen = f"{len(records)} records up to the end of throttling, {doubled} of them twice{counted}"
    if lost:
        return Finding(FAIL, f"{seen}, and {lost} numbers missing between the first and the last", SOURCE, _ADVICE)
    if doubled:
        return Finding(FAIL, seen, SOURCE, _ADVICE)
    return Finding(PASS, seen if lost is None else f"{seen}, none missing", SOURCE)


def _doubled(records: Sequence[Record]) -> int:
    counted = Counter((each.topic, each.partition, each.key, each.value, each.at_ms) for each in records)
    return sum(count - 1 for count in counted.values())


def _lost(records: Sequence[Record]) -> int | None:
    """How many numbers are missing where values are numbered one by one; None where they are not."""
    numbers: dict[str, set[int]] = {}
    for record in records:
        found = _NUMBER.findall(record.value or b"")
        if not found:
            return None
        numbers.setdefault(record.topic, set()).add(int(found[-1]))
    missing = 0
    for found_numbers in numbers.values():
        span = max(found_numbers) - min(found_numbers) + 1
        if len(found_numbers) < 0.5 * span or len(found_numbers) < 3:
            return None
        missing += span - len(found_numbers)
    return missing
