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
_ADVICE = "Keep the latest of all deadlines of a connection, instead of the one that came last."


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
    waited = [_waited(timeline, pair) for pair in found]
    judged = [each for each in waited if each is not None]
    if not judged or kip219.judge(timeline).verdict == FAIL:
        return Finding(UNJUDGED, NEITHER, SOURCE)
    tried = f"{len(judged)} pairs of {found[0].first.value:.0f} and then {found[0].second.value:.0f} ms"
    apis = _by_api([pair.first.api for pair in found], waited)
    broken = judged.count(False)
    if broken:
        return Finding(FAIL, f"in {broken} of {tried}, it sent again after the shorter time", SOURCE, _ADVICE, apis)
    return Finding(PASS, f"in {tried}, it waited for the longer time", SOURCE, apis=apis)


def _by_api(apis: Sequence[str], waited: Sequence[bool | None]) -> tuple[ApiFinding, ...]:
    """`waited`: for each of `apis`, True if the client waited for the longer time of its pair; None: that can't be seen."""
    found = []
    for api in set(apis):
        seen = [waits for each, waits in zip(apis, waited, strict=True) if each == api and waits is not None]
        verdict = UNJUDGED if not seen else PASS if all(seen) else FAIL
        found.append(ApiFinding(api, verdict, len(seen), seen.count(False)))
    return worst_first(found)


def pairs(timeline: Timeline) -> list[_Pair]:
    """The pairs of throttle times that overlapped, at most one of each step, while the machine did not stall."""
    found = [pair for step in timeline.of_kind("overlap") if (pair := _overlap(timeline, step)) is not None]
    return [
        pair for pair in found
        if timeline.machine.longest_ms(pair.first.at_ns, pair.first.at_ns + pair.first.value * MS) <= _STALL_MS
    ]  # fmt: skip


def _overlap(timeline: Timeline, step: Step) -> _Pair | None:
    """The long and the short throttle time sent in a step, if they were sent to one connection and overlapped."""
    sent = [event for event in timeline.within(step, "fault") if event.reason == "throttle"]
    for first, second in pairwise(sent):
        is_within = second.at_ns + second.value * MS < first.at_ns + first.value * MS
        if first.conn == second.conn and second.value < first.value and is_within:
            return _Pair(first, second) if _was_followed(timeline, first) else None
    return None


def _was_followed(timeline: Timeline, long: Event) -> bool:
    """True if the next request had arrived when the long throttle time was sent: it does not ignore that time."""
    row = _Requests(timeline, long).answered(long)
    return row is not None and row.value > 0


def _waited(timeline: Timeline, pair: _Pair) -> bool | None:
    """True if the client waited for the longer time; None if not even for the shorter, or if that can't be seen.

    Bytes that arrived after an answer: those served since, plus those that wait now, less those that waited at that answer.
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
    """The requests of the connection that a throttle time was sent to, in order of time, and their sizes in bytes."""

    def __init__(self, timeline: Timeline, throttle: Event) -> None:
        self._rows = [event for event in timeline.events if event.kind == "request" and event.conn == throttle.conn]
        self._instants = [event.at_ns for event in self._rows]
        self._bytes = [0, *accumulate(event.size for event in self._rows)]

    def answered(self, throttle: Event) -> Event | None:
        """The request whose answer had this throttle time."""
        rows = self._rows[: bisect_right(self._instants, throttle.at_ns)]
        return next((each for each in rows if throttle.at_ns <= _answer_ns(each) + _SLACK_MS * MS), None)

    def after(self, request: Event) -> list[Event]:
        return self._rows[bisect_right(self._instants, request.at_ns) :]

    def served(self, since: Event, until: Event) -> int:
        """Bytes of the requests after one, up to another."""
        began, ended = (bisect_right(self._instants, each.at_ns) for each in (since, until))
        return self._bytes[max(began, ended)] - self._bytes[began]

    def arrived(self, since: Event, until: Event) -> float:
        """Bytes that arrived between the answers of two requests."""
        return self.served(since, until) + until.value - since.value
