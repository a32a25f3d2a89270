"""That processes begin and end, as they and the coordinator journal it."""

import json
from collections.abc import Iterable
from typing import Any

COORDINATOR = -1
Event = dict[str, Any]


def begun_and_ended(events: list[Event], shards: int) -> list[Event]:
    """A broker's events with `shard_up` as the first of each incarnation, and `ended` as the last of each shard."""
    made: list[Event] = []
    of: dict[tuple[int, int, int], list[Event]] = {}
    for event in sorted(events, key=lambda event: event["mono_ns"]):
        of.setdefault((event["broker"], event["shard"], event["epoch"]), []).append(event)
    newest = {place[:2]: place for place in sorted(of)}
    end_ns = max((event["mono_ns"] for event in events), default=0)
    for place, mine in of.items():
        detail = {**dict(zip(("broker", "shard", "epoch"), place, strict=True)), "shards": shards}
        if mine[0]["kind"] != "shard_up":
            mine.insert(0, {**_place(mine[0]), "kind": "shard_up"})
        mine[0]["detail"] = json.dumps(detail)
        if newest[place[:2]] == place:
            mine += _closes(mine, end_ns)
            mine.append({**_place(mine[-1]), "kind": "ended", "mono_ns": end_ns})
        made += mine
    return made


def seen_by_the_coordinator(events: Iterable[Event], *, losses: bool = False) -> list[Event]:
    """What the coordinator writes of shards: each is up with its first event; `losses`: and lost when a successor is up."""
    made, before = [], {}
    for event in sorted((each for each in events if each["kind"] == "shard_up"), key=lambda each: each["mono_ns"]):
        place = event["broker"], event["shard"]
        same = {"mono_ns": event["mono_ns"], "ts": event["ts"], "broker": COORDINATOR, "shard": COORDINATOR, "epoch": 0}
        if losses and place in before:
            made.append({**same, "kind": "shard_lost", "detail": before[place]})
        told = json.loads(event["detail"])
        told.pop("shards")
        before[place] = json.dumps(told)
        made.append({**same, "kind": "shard_up", "detail": json.dumps({**told, "pid": 1})})
    return made


def _closes(mine: list[Event], end_ns: int) -> list[Event]:
    """A process that ends in order, with its broker, closes what it has."""
    closed = {event["conn"] for event in mine if event["kind"] == "closed"}
    same = ("conn", "ip", "port", "listener")
    return [
        {
            **_place(mine[-1]),
            "mono_ns": end_ns,
            "kind": "closed",
            "reason": "shutdown",
            **{name: event[name] for name in same},
        }
        for event in mine
        if event["kind"] == "admitted" and event["conn"] not in closed
    ]


def _place(event: Event) -> Event:
    return {name: event[name] for name in ("mono_ns", "broker", "shard", "epoch", "ts")}
