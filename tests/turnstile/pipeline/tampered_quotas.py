"""Ways to tamper with what is journaled of client quotas; tampering_table.py says which verdict each must get.

The journal is that of a simulated broker of three shards (metered.py), with a home that was stopped, one that was killed, and
quotas that changed meanwhile.
"""

import json
from collections.abc import Callable
from functools import cache
from typing import Any

import metered

from shards.limits.client_quota_managers import FETCH, MUTATION, PRODUCE, REQUEST

Event = dict[str, Any]
Events = list[Event]
How = Callable[[Events], Events]
SEED = 234
MS = 1_000_000
BYTES = (PRODUCE, FETCH)


@cache
def journal() -> tuple[Event, ...]:
    """The honest journal."""
    rows = metered.run(SEED)
    assert rows is not None
    return tuple(rows)


def renumbered(events: Events) -> Events:
    """The same in their order, with numbers that follow each other."""
    counts: dict[tuple[int, int, int], int] = {}
    for event in events:
        place = event["broker"], event["shard"], event["epoch"]
        event["seq"] = counts.get(place, 0)
        counts[place] = event["seq"] + 1
    return events


def detail(event: Event) -> dict[str, Any]:
    of = json.loads(event["detail"])
    assert isinstance(of, dict)
    return of


def is_charge(event: Event, **same: Any) -> bool:
    return event["kind"] == "charge" and all(event.get(name) == value for name, value in same.items())


def busy(events: Events, kinds: tuple[str, ...] = BYTES) -> Events:
    """The charges that one home decided of the meter that throttled most often, in order."""
    counts: dict[tuple[Any, ...], Events] = {}
    for event in events:
        if is_charge(event, reason=None) and event["limit"] in kinds:
            key = event["shard"], event["epoch"], event["client_id"], event["limit"]
            counts.setdefault(key, []).append(event)
    return max(counts.values(), key=lambda each: (sum(one["throttle_ms"] > 0 for one in each), len(each)))


def throttling(events: Events, kinds: tuple[str, ...] = BYTES) -> Event:
    """A charge that throttled, with others of its meter after it."""
    found = [event for event in busy(events, kinds) if event["throttle_ms"] > 100]
    return found[len(found) // 2]


def certain(events: Events) -> Event:
    """A charge that throttled, with no change of quotas and no stand-in near it: so that its client must have been told."""
    changes = [event["mono_ns"] for event in events if event["kind"] == "config" and event["broker"] < 0]
    alone = [event for event in events if is_charge(event, reason="stand_in")]
    end_ns = max(event["mono_ns"] for event in events if event["kind"] == "charge")
    return next(
        event
        for event in events
        if is_charge(event, reason=None)
        and event["limit"] in BYTES
        and event["throttle_ms"] > 100
        and event["mono_ns"] < end_ns - 3000 * MS
        and all(abs(each - event["mono_ns"]) > 2100 * MS for each in changes)
        and not any(
            one["client_id"] == event["client_id"] and one["limit"] == event["limit"]
            and abs(one["mono_ns"] - event["mono_ns"]) <= 2100 * MS for one in alone
        )
    )  # fmt: skip


def within(events: Events, kinds: tuple[str, ...] = (PRODUCE,)) -> Event:
    """A charge within its quota, after which its meter throttles while it counts."""
    of = busy(events, kinds)
    return next(
        one
        for place, one in enumerate(of)
        if not one["throttle_ms"]
        and one["bytes"] > 20
        and any(0 < two["mono_ns"] - one["mono_ns"] < 1500 * MS and two["throttle_ms"] and two["limit_value"] == one["limit_value"]
                for two in of[place + 1 : place + 4])
    )  # fmt: skip


def told_of(charge: Event, events: Events) -> Event:
    """The `throttled` event of a charge."""
    names = ("mono_ns", "limit", "client_id", "throttle_ms", "bytes")
    return next(
        event
        for event in events
        if event["kind"] == "throttled"
        and event["shard"] == detail(charge)["asker"]
        and all(event[name] == charge[name] for name in names)
    )


Pick = Callable[[Events], Event]


def remove(*which: Pick, hide: bool = True) -> How:
    def how(events: Events) -> Events:
        gone = [pick(events) for pick in which]
        left = [event for event in events if not any(event is one for one in gone)]
        return renumbered(left) if hide else left

    return how


def edit(which: Pick, change: Callable[[Event], dict[str, Any]] | dict[str, Any]) -> How:
    def how(events: Events) -> Events:
        event = which(events)
        event.update(change(event) if callable(change) else change)
        return events

    return how


def doubled(which: Pick, *, hide: bool, **changes: Any) -> How:
    def how(events: Events) -> Events:
        event = which(events)
        events.insert(events.index(event) + 1, {**event, **changes})
        return renumbered(events) if hide else events

    return how


def said(**changes: Any) -> Callable[[Event], dict[str, Any]]:
    """Changes of what an event's detail says."""
    return lambda event: {"detail": json.dumps({**detail(event), **changes})}


def add(**changes: float) -> Callable[[Event], dict[str, Any]]:
    return lambda event: {name: event[name] + change for name, change in changes.items()}


def throttle(events: Events) -> Event:
    """The `throttled` event of `certain`."""
    return told_of(certain(events), events)


def last_within(events: Events) -> Event:
    """The last charge of a meter, of an incarnation that charged, when it throttled nothing."""
    last: dict[tuple[Any, ...], Event] = {}
    for event in events:
        if event["kind"] == "charge":
            last[event["shard"], event["epoch"], event["client_id"], event["limit"]] = event
    return next(event for event in last.values() if not event["throttle_ms"] and event["reason"] is None)


def stand_in(events: Events) -> Event:
    """A charge that a stand-in decided."""
    return next(event for event in events if is_charge(event, reason="stand_in") and event["limit"] in BYTES)


def state(events: Events) -> Event:
    """What a meter went on from, that still counted for a throttle of its first charges."""
    for place, event in enumerate(events):
        if (
            event["kind"] == "meter"
            and "samples" in event["detail"]
            and sum(each[0] for each in detail(event)["samples"])
        ):
            mine = [
                one
                for one in events[place + 1 : place + 200]
                if is_charge(
                    one, shard=event["shard"], epoch=event["epoch"], client_id=event["client_id"], limit=event["limit"]
                )
            ]
            if event["limit"] in BYTES and any(one["throttle_ms"] for one in mine[:3]):
                return event
    raise AssertionError("no such note")


def told(events: Events) -> Event:
    """What another shard told of a meter, which throttled soon after."""
    for place, event in enumerate(events):
        if event["kind"] == "meter" and event["limit"] == PRODUCE and detail(event).get("amount", 0) > 10:
            mine = [
                one
                for one in events[place + 1 :]
                if is_charge(
                    one, shard=event["shard"], epoch=event["epoch"], client_id=event["client_id"], limit=PRODUCE
                )
            ]
            soon = [one for one in mine[:4] if one["mono_ns"] - event["mono_ns"] < 1000 * MS and one["throttle_ms"]]
            if soon and soon[0]["limit_value"] <= 20 * detail(event)["amount"]:
                return event
    raise AssertionError("no such note")


def a_charge(events: Events) -> Event:
    found = [event for event in events if is_charge(event, reason=None)]
    return found[len(found) // 2]


def mutation(strict: bool) -> Pick:
    """A charge of mutations that its bucket throttled: refused if strict, done if not."""

    def pick(events: Events) -> Event:
        return next(
            event
            for event in events
            if is_charge(event, limit=MUTATION)
            and bool(detail(event).get("strict")) == strict
            and event["throttle_ms"] > 300
        )

    return pick


def charged_after_a_change(events: Events) -> Event:
    """A charge under a version that another one was acknowledged before."""
    acknowledged = min(
        event["mono_ns"] for event in events if event["broker"] < 0 and event["kind"] == "config"
        and event["version"] == 3 and detail(event)["acknowledged"]
    )  # fmt: skip
    return next(event for event in events if is_charge(event, reason=None) and event["mono_ns"] > acknowledged + 5 * MS)


def before_a_change(events: Events) -> Event:
    """A charge of a client whose quotas the next version leaves as they were."""
    change = next(event for event in events if event["kind"] == "config" and event["version"] == 2)
    changed = {json.loads(key)["client-id"] for _, key, _ in detail(change)["changes"]}
    return next(
        event
        for event in events
        if is_charge(event, reason=None) and event["version"] == 1 and event["client_id"] not in changed
    )


def emptied(events: Events) -> Events:
    """A note that a meter holds nothing is put before a charge that throttled."""
    one = throttling(events, (PRODUCE,))
    note = {
        **one,
        "kind": "meter",
        "bytes": None,
        "throttle_ms": None,
        "limit_value": None,
        "reason": None,
        "detail": "{}",
    }
    events.insert(events.index(one), note)
    return renumbered(events)


def reset(events: Events) -> Events:
    """A note that all meters begin anew is put before a charge that throttled."""
    one = throttling(events, (PRODUCE,))
    note = {**one, "kind": "meter", "limit": None, "client_id": None, "detail": '{"reset":true}'}
    events.insert(events.index(one), note)
    return renumbered(events)


def moved(events: Events) -> Events:
    """Charges of a client are decided by a shard that is not its home."""
    one = throttling(events)
    other = next(
        event
        for event in events
        if event["broker"] == 0 and event["shard"] != one["shard"] and event["mono_ns"] > one["mono_ns"]
    )
    events.remove(one)
    one.update(shard=other["shard"], epoch=other["epoch"])
    events.insert(events.index(other), one)
    return renumbered(events)


def second_meter(events: Events) -> Events:
    """A client's charges at a shard that is not its home, each within its quota."""
    one = within(events)
    place = next(
        place
        for place, event in enumerate(events)
        if is_charge(event) and event["shard"] != one["shard"] and event["mono_ns"] > one["mono_ns"]
    )
    other = events[place]
    forged = {**one, **{name: other[name] for name in ("shard", "epoch", "mono_ns", "version")}, "bytes": 1}
    asker = {"detail": json.dumps({"asker": other["shard"]})}
    events.insert(place, {**forged, **asker, "limit_value": in_force(events, forged)})
    return renumbered(events)


def in_force(events: Events, charge: Event) -> float:
    """The quota that other charges of that version had."""
    same = {name: charge[name] for name in ("limit", "client_id", "version")}
    return next((event["limit_value"] for event in events if is_charge(event, **same)), charge["limit_value"])


def throttled_by_none(events: Events) -> Events:
    """A throttle that no meter decided."""
    one = throttle(events)
    events.insert(events.index(one), {**one, "mono_ns": one["mono_ns"] - MS})
    return renumbered(events)


def requota(factor: float) -> How:
    """All configs alike say another quota than that which charges were decided by."""

    def how(events: Events) -> Events:
        for event in events:
            if event["kind"] == "config":
                of = detail(event)
                for kind, _, values in of["changes"]:
                    if kind == "quota" and values:
                        values.update({name: value * factor for name, value in values.items()})
                event["detail"] = json.dumps(of)
        return events

    return how


def another_client(event: Event) -> dict[str, Any]:
    return {"client_id": "a" if event["client_id"] != "a" else "b"}


def time(events: Events) -> Event:
    return throttling(events, (REQUEST,))


def nulls(kind: str, which: Pick, *columns: str) -> list[tuple[str, How]]:
    return [(f"{kind} without {name}", edit(which, {name: None})) for name in columns]


def another_asker(event: Event) -> dict[str, Any]:
    return said(asker=1 - detail(event)["asker"] if detail(event)["asker"] < 2 else 0)(event)


def fuller(events: Events) -> Events:
    """Long after all others a charge of 1 byte, before which its meter is said to hold what no shard recorded: a second of its
    quota, more than shards may keep untold."""
    place = max(place for place, event in enumerate(events) if is_charge(event, limit=PRODUCE, reason=None))
    one = events[place]
    ended = next(
        event
        for event in events
        if event["kind"] == "ended" and (event["shard"], event["epoch"]) == (one["shard"], one["epoch"])
    )
    at_ns = ended["mono_ns"] // MS * MS
    state = {"current": 0, "samples": [[one["limit_value"], at_ns // MS, at_ns // MS]]}
    same = {**one, "mono_ns": at_ns, "bytes": None, "throttle_ms": None, "limit_value": None}
    charge = {**one, "mono_ns": at_ns, "bytes": 1, "throttle_ms": 0}
    index = events.index(ended)
    events[index:index] = [{**same, "kind": "meter", "detail": json.dumps(state)}, charge]
    return renumbered(events)


def more_told(event: Event) -> dict[str, Any]:
    return said(amount=detail(event)["amount"] * 100)(event)
