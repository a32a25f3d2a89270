"""Of two throttle times of one connection, the one that ends later holds."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate, pairwise
from typing import NamedTuple

from turnstile.verdict.checks import kip219
from turnstile.verdict.finding import FAIL, PASS, UNJUDGED, ApiFinding, Finding, worst_first
from turnstile.verdict.timeline import MS, Event, Step, Timeline

SOURCE = "KIP-219, and IBM/sarama#2536: a later, shorter throttle time does not end a longer one"
NEITHER = "it waits for neither of two throttle times (see kip219)"
_MARGIN_MS = 40
_SLACK_MS = 2  # between a throttle time and the answer that has it
_STALL_MS = 60
"""A machine that stalled for longer may have kept the client from reading the long throttle time before it sent."""
_ADVICE = "Keep the latest of all deadlines of a connection, instead of the one that was told last."


class _Pair(NamedTuple):
    first: Event
    second: Event


def judge(timeline: Timeline) -> Finding:
    steps = timeline.of_kind("overlap")
    if not steps:
        return Finding(UNJUDGED, timeline.skipped.get("overlap", "no throttle times overlapped"), SOURCE)
    found = pairs(timeline)
    if not found:
        stalled = any(_overlap(timeline, step) is not None for step in steps)
        why = (
            "this machine stalled in each of its pairs"
            if stalled
            else "the client never had two requests on the way on one connection"
        )
        return Finding(UNJUDGED, why, SOURCE)
    seen = [_kept(timeline, pair) for pair in found]
    judged = [each for each in seen if each is not None]
    if not judged or kip219.judge(timeline).verdict == FAIL:
        return Finding(UNJUDGED, NEITHER, SOURCE)
    told = f"{len(judged)} pairs of {found[0].first.value:.0f} and then {found[0].second.value:.0f} ms"
    apis = _by_api([pair.first.api for pair in found], seen)
    broken = judged.count(False)
    if broken:
        return Finding(FAIL, f"in {broken} of {told}, it sent again after the shorter time", SOURCE, _ADVICE, apis)
    return Finding(PASS, f"in {told}, it waited for the longer time", SOURCE, apis=apis)


def _by_api(apis: Sequence[str], kept: Sequence[bool | None]) -> tuple[ApiFinding, ...]:
    """`kept`: of the pair of each of `apis`, whether the longer time was waited for; None where that can't be told."""
    found = []
    for api in set(apis):
        told = [is_kept for each, is_kept in zip(apis, kept, strict=True) if each == api and is_kept is not None]
        verdict = UNJUDGED if not told else PASS if all(told) else FAIL
        found.append(ApiFinding(api, verdict, len(told), told.count(False)))
    return worst_first(found)


def pairs(timeline: Timeline) -> list[_Pair]:
    """The pairs of throttle times that overlapped, at most one of each step, while the machine did not stall."""
    found = [pair for step in timeline.of_kind("overlap") if (pair := _overlap(timeline, step)) is not None]
    return [
        pair for pair in found
        if timeline.machine.longest_ms(pair.first.at_ns, pair.first.at_ns + pair.first.value * MS) <= _STALL_MS
    ]  # fmt: skip


def _overlap(timeline: Timeline, step: Step) -> _Pair | None:
    """The long and the short throttle time told in a step, if they were told to one connection and overlapped."""
    told = [event for event in timeline.within(step, "fault") if event.reason == "throttle"]
    for first, second in pairwise(told):
        is_within = second.at_ns + second.value * MS < first.at_ns + first.value * MS
        if first.conn == second.conn and second.value < first.value and is_within:
            return _Pair(first, second) if _was_followed(timeline, first) else None
    return None


def _was_followed(timeline: Timeline, told: Event) -> bool:
    """True if the next request was there when the long throttle time was told: it was not sent in spite of that."""
    row = _Requests(timeline, told).answered(told)
    return row is not None and row.value > 0


def _kept(timeline: Timeline, pair: _Pair) -> bool | None:
    """True if the longer time was kept; None if not even the shorter was, or it can't be told.

    What was served after an answer, and what waits then, is more than what waited at that answer by what has arrived since.
    """
    requests = _Requests(timeline, pair.first)
    first, second = requests.answered(pair.first), requests.answered(pair.second)
    if first is None or second is None:
        return None
    if requests.arrived(first, second) > 0:
        return None
    long_ns = pair.first.at_ns + (pair.first.value - _MARGIN_MS) * MS
    short_ns = pair.second.at_ns + (pair.second.value - _MARGIN_MS) * MS
    later = [each for each in requests.after(second) if _answer_ns(each) < long_ns]
    sent = [each for each in later if requests.arrived(second, each) > 0]
    if any(each.at_ns < short_ns and requests.served(second, each) > second.value for each in sent):
        return None
    return not sent


def _answer_ns(request: Event) -> float:
    return request.at_ns + request.took_ms * MS


class _Requests:
    """The requests of the connection that was told a throttle time, by time, and how many bytes they had."""

    def __init__(self, timeline: Timeline, told: Event) -> None:
        self._rows = [event for event in timeline.events if event.kind == "request" and event.conn == told.conn]
        self._instants = [event.at_ns for event in self._rows]
        self._bytes = [0, *accumulate(event.size for event in self._rows)]

    def answered(self, told: Event) -> Event | None:
        """The request whose answer had this throttle time."""
        rows = self._rows[: bisect_right(self._instants, told.at_ns)]
        return next((each for each in rows if told.at_ns <= _answer_ns(each) + _SLACK_MS * MS), None)

    def after(self, request: Event) -> list[Event]:
        return self._rows[bisect_right(self._instants, request.at_ns) :]

    def served(self, since: Event, until: Event) -> int:
        """Bytes of the requests after one, up to another."""
        began, ended = (bisect_right(self._instants, each.at_ns) for each in (since, until))
        return self._bytes[max(began, ended)] - self._bytes[began]

    def arrived(self, since: Event, until: Event) -> float:
        """Bytes that arrived between the answers of two requests."""
        return self.served(since, until) + until.value - since.value
