"""Timelines of clients that were never there: what the broker would have seen, written down event by event, in seconds."""

from __future__ import annotations

from typing import Any

from turnstile.verdict.machine import Beat, Machine
from turnstile.verdict.timeline import MS, SECOND, Busy, Event, Record, Step, Timeline


def ns(at_s: float) -> int:
    return round(at_s * SECOND)


class Seen:
    """Collects steps and events; a good client by default."""

    def __init__(self, connections: int = 2) -> None:
        self.steps: list[Step] = []
        self.events: list[Event] = []
        self.records: list[Record] = []
        self.busy: list[Busy] = []
        self.skipped: dict[str, str] = {}
        self.machine = Machine()
        self.step("baseline", 0, 4)
        for number in range(1, connections + 1):
            self.event("admitted", 0, number)
        for tenth in range(40):
            self.request(tenth / 10, 1)

    def step(self, kind: str, began_s: float, ended_s: float, name: str = "", **detail: Any) -> None:
        told = {key: ns(value) if key.endswith("_ns") and value is not None else value for key, value in detail.items()}
        self.steps.append(Step(kind, name or kind, ns(began_s), ns(ended_s), told))

    def event(self, kind: str, at_s: float, number: int = 1, **columns: Any) -> None:
        self.events.append(Event(kind, ns(at_s), (0, 0, 1, number), "127.0.0.1", 1000 + number, "app", **columns))

    def request(self, at_s: float, number: int = 1, api: str = "Produce", **columns: Any) -> None:
        self.event("request", at_s, number, api=api, **columns)

    def record(self, at_s: float, value: bytes) -> None:
        self.records.append(Record("orders", 0, ns(at_s) // MS, None, value))

    def stalled(self, *spans_s: tuple[float, float]) -> None:
        """The machine woke nobody from the first to the second of each."""
        self.machine.beats += [Beat(ns(began_s), ns(ended_s - began_s)) for began_s, ended_s in spans_s]
        self.machine.beats.sort()

    def timeline(self) -> Timeline:
        return Timeline(
            self.steps,
            sorted(self.events, key=lambda event: event.at_ns),
            self.busy,
            self.records,
            skipped=self.skipped,
            machine=self.machine,
        )


def throttled(count: int = 10, **columns: Any) -> Seen:
    """Half a second of throttle each, and the next request when that is over."""
    seen = Seen()
    seen.step("throttle", 4, 4 + count / 2)
    for number in range(count):
        seen.request(4 + number / 2, throttle_ms=499, **columns)
    return seen


def refused(*attempts_s: float, until_s: float = 6.0, recovered_s: float | None = 0.2, connections: int = 1) -> Seen:
    """Attempts after a cut at 4 s, which is lifted `until_s` later."""
    seen = Seen(connections)
    lifted_s = 4 + until_s
    recovered = None if recovered_s is None else lifted_s + recovered_s
    seen.step("refuse", 4, lifted_s + 2, "closed at accept", lifted_ns=lifted_s, recovered_ns=recovered)
    for at_s in attempts_s:
        seen.event("refused", 4 + at_s, 0)
    return seen
