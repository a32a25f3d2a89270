"""Ways to tamper with a journal; tampering_table.py says which verdict each must get.

Four journals, each of one broker: `caps` (a storm with kills and live changes), `tokens` (the real token protocol with
crashes and changes, then a restart with another number of shards), `rates` (the real windows of creation rates), `quotas`
(tampered_quotas.py).
"""

import json
import random
from collections.abc import Callable, Iterable
from functools import cache
from itertools import pairwise
from typing import Any, NamedTuple

import crowd
import moves
import rated
import tampered_quotas

Event = dict[str, Any]
Events = list[Event]
Place = tuple[int, int, int]
SECOND_NS = 1_000_000_000
COORDINATOR = -1
SEED = 33
"""A storm with four kills, and refusals under two versions."""
HELD, UNKNOWN, EXCEEDED, NOT_JUSTIFIED = "held", "unknown", "exceeded", "not justified"


class Tampering(NamedTuple):
    """What is done to which journal (`how` changes a list of events of its own), what the audit says then, and by which check."""

    name: str
    journal: str
    how: Callable[[Events], Events]
    verdict: str
    check: str = ""


@cache
def journal(name: str) -> tuple[Event, ...]:
    """An honest journal."""
    return tuple({"caps": _caps, "tokens": _tokens, "rates": _rates, "quotas": tampered_quotas.journal}[name]())


def copied(name: str) -> Events:
    """The same, to be changed."""
    return [dict(event) for event in journal(name)]


def _caps() -> Events:
    plan = crowd.versions(SEED)
    broker = crowd.Broker(0, SEED, plan).run()
    broker.quiet()
    broker.close_all()
    events = broker.numbered()
    return events + crowd.coordinator(plan, broker.lost, events)


def _tokens() -> Events:
    first, second = _run(shards=2, crashes=True), _run(shards=3, crashes=False)
    made = []
    for number, (rules, run) in enumerate((first, second)):
        shift = number * 100
        events = moves.Simulated(0, run).rows()
        events += moves.coordinator(rules, events)
        for event in events:
            event["mono_ns"] += shift * SECOND_NS
            event["ts"] += shift * 1_000_000
            event["epoch"] += shift
            if event.get("version"):
                event["version"] += number * len(rules)
            if event["kind"] in ("shard_up", "shard_lost"):
                told = json.loads(event["detail"])
                event["detail"] = json.dumps({**told, "epoch": told["epoch"] + shift})
        made += events
    return made


def _run(*, shards: int, crashes: bool) -> tuple[list[Any], moves.Planned]:
    rules = moves.plan(4)
    for seed in range(1000):
        run = moves.Planned(seed, rules)
        if run.world.shards != shards:
            continue
        run.crashes = 0.04 if crashes else 0.0
        run.run()
        broker = moves.Simulated(0, run)
        deaths = sum(event.kind == "lost" for _, event in broker.events)
        if bool(deaths) == crashes and all(moves.Simulated(0, run).plant(how) for how, _ in moves.PLANTS.values()):
            return rules, run
    raise AssertionError("no such run")


def _rates() -> Events:
    events = rated.RatedBroker(0, 3).run().numbered()
    return events + rated.coordinator(events)


# ---- what is done


def place_of(event: Event) -> Place:
    return event["broker"], event["shard"], event["epoch"]


def hidden_close(events: Events) -> Events:
    """Of a process that ended in order."""
    events.remove(next(event for event in mine(events, process(events)) if event["kind"] == "closed"))
    return renumbered(events)


def renumbered(events: Events) -> Events:
    """The same with numbers that follow each other, as one who hides something would write them."""
    return crowd.numbered(events)


def pick(events: Events, kind: str, **same: Any) -> Event:
    """An event from the middle of its kind, of a shard unless told otherwise; not the last of a process that was killed."""
    same.setdefault("of", "shard")
    whose = same.pop("of")
    found = [
        event
        for event in sorted(events, key=lambda event: event["mono_ns"])
        if event["kind"] == kind
        and (event["broker"] < 0) == (whose == "coordinator")
        and all(_value(event, name) == value for name, value in same.items())
    ]
    last = {place_of(event): event for event in sorted(events, key=lambda event: event["seq"])}
    found = [event for event in found if kind == "ended" or last[place_of(event)] is not event]
    return found[len(found) // 2]


def _value(event: Event, name: str) -> Any:
    if name in event or name not in ("acknowledged", "full"):
        return event.get(name)
    return json.loads(event["detail"]).get(name)


def delete(kind: str, *, hide: bool = False, **same: Any) -> Callable[[Events], Events]:
    def how(events: Events) -> Events:
        events.remove(pick(events, kind, **same))
        return renumbered(events) if hide else events

    return how


def edit(
    kind: str, change: dict[str, Any] | Callable[[Event, Events], dict[str, Any]], **same: Any
) -> Callable[[Events], Events]:
    def how(events: Events) -> Events:
        event = pick(events, kind, **same)
        event.update(change(event, events) if callable(change) else change)
        return events

    return how


def told(**changes: Any) -> Callable[[Event, Events], dict[str, Any]]:
    """Changes of what an event's detail says."""

    def change(event: Event, events: Events) -> dict[str, Any]:
        return {"detail": json.dumps({**json.loads(event["detail"]), **changes})}

    return change


def again(kind: str, *, hide: bool = False, **changes: Any) -> Callable[[Events], Events]:
    """An event twice; `hide`: with a number of its own."""

    def how(events: Events) -> Events:
        event = pick(events, kind)
        events.insert(events.index(event) + 1, {**event, **changes})
        return renumbered(events) if hide else events

    return how


def mine(events: Events, place: Place) -> Events:
    return sorted((event for event in events if place_of(event) == place), key=lambda event: event["seq"])


def process(events: Events, *, killed: bool = False) -> Place:
    """A shard's process that served: the last of its shard, or one that was killed."""
    of: dict[Place, int] = {}
    for event in events:
        if event["broker"] >= 0 and event["kind"] in ("admitted", "refused"):
            of[place_of(event)] = of.get(place_of(event), 0) + 1
    newest = {place[:2]: place for place in sorted({place_of(event) for event in events})}
    return max((count, place) for place, count in of.items() if (newest[place[:2]] != place) == killed)[1]


def cut(
    *, last: int = 0, first: int = 0, killed: bool = False, coordinator: bool = False
) -> Callable[[Events], Events]:
    """The first or last events of a process are gone."""

    def how(events: Events) -> Events:
        place = (COORDINATOR, COORDINATOR, max(e["epoch"] for e in events if e["broker"] < 0)) if coordinator else None
        of = mine(events, place or process(events, killed=killed))
        gone = of[:first] + (of[-last:] if last else [])
        return [event for event in events if event not in gone]

    return how


def without(is_gone: Callable[[Event], bool], *, hide: bool = False) -> Callable[[Events], Events]:
    def how(events: Events) -> Events:
        left = [event for event in events if not is_gone(event)]
        return renumbered(left) if hide else left

    return how


def killed(events: Events) -> Place:
    return process(events, killed=True)


def gone(which: Callable[[Events], Place]) -> Callable[[Events], Events]:
    """All that a process wrote."""

    def how(events: Events) -> Events:
        place = which(events)
        return [event for event in events if place_of(event) != place]

    return how


def process_and_what_is_told_of_it(events: Events) -> Events:
    place = process(events)
    return renumbered([event for event in events if place_of(event) != place and said_of(event) != place])


def said_of(event: Event) -> Place | None:
    """The process that the coordinator tells of."""
    if event["broker"] >= 0 or event["kind"] not in ("shard_up", "shard_lost"):
        return None
    said = json.loads(event["detail"])
    return said["broker"], said["shard"], said["epoch"]


def is_of_shard_1(event: Event) -> bool:
    said = said_of(event)
    return event["shard"] == 1 or (said is not None and said[1] == 1)


def second_coordinator(event: Event) -> bool:
    return event["broker"] < 0 and bool(event["epoch"] >= 100)


def process_twice(events: Events) -> Events:
    return [*events, *(dict(event) for event in mine(events, process(events)))]


def whole_connection_hidden(events: Events) -> Events:
    conn = pick(events, "admitted")["conn"]
    return renumbered([event for event in events if event.get("conn") != conn])


def neighbours(events: Events) -> tuple[Event, Event]:
    """Two events of one process, one after the other, at different instants."""
    of = mine(events, process(events))
    return next((one, two) for one, two in pairwise(of[5:]) if one["mono_ns"] < two["mono_ns"])


def swapped(*columns: str) -> Callable[[Events], Events]:
    def how(events: Events) -> Events:
        one, two = neighbours(events)
        for name in columns:
            one[name], two[name] = two.get(name), one.get(name)
        return events

    return how


def both(kind: str, **changes: Any) -> Callable[[Events], Events]:
    """The admission and the close of a connection alike."""

    def how(events: Events) -> Events:
        one = pick(events, "admitted")
        for event in events:
            if event.get("conn") == one["conn"] and event["kind"] in ("admitted", "closed"):
                event.update(changes)
        return events

    return how


def to_the_other_shard(*kinds: str) -> Callable[[Events], Events]:
    """Events of one connection become those of a process of another shard that ran then."""

    def how(events: Events) -> Events:
        for one in (event for event in events if event["kind"] == "admitted"):
            its = [
                event
                for event in events
                if event.get("conn") == one["conn"] and event["kind"] in ("admitted", "closed")
            ]
            for place in sorted({place_of(event) for event in events if event["broker"] >= 0}):
                of = mine(events, place)
                runs = of[2]["mono_ns"] < its[0]["mono_ns"] and its[-1]["mono_ns"] < of[-2]["mono_ns"]
                if place[1] != one["shard"] and runs and len(its) == 2:
                    for event in its:
                        if event["kind"] in kinds:
                            event.update(shard=place[1], epoch=place[2])
                    return renumbered(events)
        raise AssertionError("no such connection")

    return how


def planted(name: str) -> Callable[[Events], Events]:
    """A violation of crowd.PLANTS."""

    def how(events: Events) -> Events:
        plan = crowd.versions(SEED)
        broker = crowd.Broker(0, SEED, plan).run(crowd.PLANTS[name][0])
        made = broker.numbered()
        return made + crowd.coordinator(plan, broker.lost, made)

    return how


def forged_process(events: Events) -> Events:
    """A process that nobody started, with events that fit each other."""
    of = [dict(event) for event in mine(events, process(events))]
    for event in of:
        event["shard"], event["epoch"] = 1 - event["shard"], event["epoch"] + 50
        event["mono_ns"] += 500 * SECOND_NS
        if event["kind"] == "shard_up":
            event.update(told(shard=event["shard"], epoch=event["epoch"])(event, of))
    return events + of


def lowered_everywhere(events: Events) -> Events:
    """A cap is lowered in every place that tells the version: then what was let in is beyond it."""
    for event in events:
        if event["kind"] == "config":
            detail = json.loads(event["detail"])
            for change in detail["changes"]:
                if change[1] == "/kafka_connections_max_per_ip":
                    change[2] = "1"
            event["detail"] = json.dumps(detail)
    return events


def deleted_and_doubled(events: Events) -> Events:
    """As many events as before: one is gone, another there twice."""
    of = mine(events, process(events))
    events.remove(of[6])
    return [*events, dict(of[8])]


def same_sums(events: Events) -> Events:
    """Numbers whose count and sum are as before."""
    of = mine(events, process(events))
    events.remove(of[5])
    events.remove(of[8])
    return [*events, dict(of[6]), dict(of[7])]


def epochs_swapped(events: Events) -> Events:
    old, new = process(events, killed=True), None
    new = max(place_of(event) for event in events if place_of(event)[:2] == old[:2])
    for event in events:
        place = place_of(event)
        if place in (old, new):
            event["epoch"] = new[2] if place == old else old[2]
    return events


def acknowledged_first(events: Events) -> Events:
    one = pick(events, "config", of="coordinator", acknowledged=True)
    stored = next(e for e in events if e["broker"] < 0 and e.get("version") == one["version"] and e is not one)
    one["mono_ns"], stored["mono_ns"] = stored["mono_ns"], one["mono_ns"]
    return renumbered(events)


def ended_in_the_middle(events: Events) -> Events:
    of = mine(events, process(events))
    return renumbered([*events, {**of[len(of) // 2], "kind": "ended", "conn": None}])


def after_the_end(events: Events) -> Events:
    last = mine(events, process(events))[-1]
    return [*events, {**last, "kind": "throttled", "seq": last["seq"] + 1}]


def foreign_move(events: Events) -> Events:
    """A shard grants tokens of a pool that is at home elsewhere."""
    one = pick(events, "grant")
    one["shard"] = 1 - one["shard"] if one["shard"] < 2 else 0
    one["epoch"] = max(e["epoch"] for e in events if e["shard"] == one["shard"] and e["mono_ns"] < one["mono_ns"])
    return renumbered(events)


def part(number: int) -> Callable[[Events], Events]:
    """A third of each process's events, in order of time."""

    def how(events: Events) -> Events:
        ordered = sorted(events, key=lambda event: event["mono_ns"])
        size = len(ordered) // 3
        return [event for index, event in enumerate(ordered) if index // size != number]

    return how


def shuffled(events: Events) -> Events:
    random.Random(1).shuffle(events)
    return events


def token_plant(name: str) -> Callable[[Events], Events]:
    """A violation of moves.PLANTS."""

    def how(events: Events) -> Events:
        rules, run = _run(shards=3, crashes=False)
        broker = moves.Simulated(0, run)
        assert broker.plant(moves.PLANTS[name][0])
        made = broker.rows()
        return made + moves.coordinator(rules, made)

    return how


def rate_plant(name: str) -> Callable[[Events], Events]:
    """A violation of rated.PLANTS."""

    def how(events: Events) -> Events:
        plant, phase, _ = rated.PLANTS[name]
        made = rated.RatedBroker(0, 3).run(plant, phase).numbered()
        return made + rated.coordinator(made)

    return how


def more_units(events: Events) -> Events:
    """A home recorded a hundred more units of an address."""
    one = next(
        event
        for event in events
        if event["kind"] == "grant"
        and event["detail"].startswith('{"pool": "rate:ip:')
        and "violated" not in event["detail"]
    )
    one.update(told(tokens=100)(one, events))
    return events


def twice_in_time(events: Events) -> Events:
    one = pick(events, "admitted")
    one["mono_ns"] -= 3 * SECOND_NS
    return events


def a_little_later(events: Events) -> Events:
    """A close is told a little later, in order."""
    of = mine(events, process(events))
    one = next(
        event for event, after in pairwise(of) if event["kind"] == "closed" and after["mono_ns"] > event["mono_ns"] + 1
    )
    one["mono_ns"] += 1
    return events


def older(event: Event, events: Events) -> dict[str, Any]:
    return {"version": event["version"] - 2}


def later(event: Event, events: Events) -> dict[str, Any]:
    return {"mono_ns": event["mono_ns"] + 20 * SECOND_NS}


def other_shard(event: Event, events: Events) -> dict[str, Any]:
    return {"shard": 1 - event["shard"]}


def other_reason(event: Event, events: Events) -> dict[str, Any]:
    return {"reason": "broker_cap" if event["reason"] == "ip_cap" else "ip_cap"}


def other_cap(event: Event, events: Events) -> dict[str, Any]:
    cap = '"/kafka_connections_max", "'
    return {"detail": event["detail"].replace(cap, cap + "9")}


NO_TOKENS = {"detail": '{"pool": "broker", "to": 1}'}
NEEDED = ("broker", "shard", "epoch", "seq", "mono_ns", "kind", "conn", "ip", "listener", "version")
UNJUDGED = {"held_ms": 9.0, "bytes": 1, "user": "x", "client_id": "x", "api": "x", "throttle_ms": 1}


def nulls(kind: str, *columns: str) -> Iterable[tuple[str, Callable[[Events], Events]]]:
    return [(f"{kind} without {name}", edit(kind, {name: None})) for name in columns]
