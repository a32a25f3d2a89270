"""The check that the records of a throttled producer arrive once: nothing is lost, nothing is doubled."""

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
    doubled, lost = _doubled(records), _lost(records, _before_copies(timeline))
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


def _before_copies(timeline: Timeline) -> list[Record]:
    """The records that the client itself produced: copies of it number their records alike."""
    began_ns = min((step.began_ns for step in timeline.of_kind("herd")), default=None)
    if began_ns is None:
        return list(timeline.records or ())
    began_ms = (began_ns + timeline.wall_offset_ns) // MS
    return [record for record in timeline.records or () if record.at_ms < began_ms]


def _lost(records: Sequence[Record], own: Sequence[Record]) -> int | None:
    """The number of missing values where values are numbered one by one; None where they are not.

    One that is in `own` at another time was not lost: some clients, as kafkajs, stamp a record again when they send it again.
    """
    arrived: dict[str, set[int]] = {}
    for record in own:
        if found := _NUMBER.findall(record.value or b""):
            arrived.setdefault(record.topic, set()).add(int(found[-1]))
    numbers: dict[str, set[int]] = {}
    for record in records:
        found = _NUMBER.findall(record.value or b"")
        if not found:
            return None
        numbers.setdefault(record.topic, set()).add(int(found[-1]))
    missing = 0
    for topic, seen in numbers.items():
        span = range(min(seen), max(seen) + 1)
        if len(seen) < 0.5 * len(span) or len(seen) < 3:
            return None
        missing += sum(number not in arrived.get(topic, seen) for number in span)
    return missing
