"""Many brokers under one configuration: each is the storm of one seed, honest or with one violation planted in it.

So one run of the audit judges them all. The caps that hold at an instant, and how far, are kept with plain counters. Steps are
about a second apart; changes are stored and, a second later, acknowledged.
"""

import json
import random
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, NamedTuple

from presence import begun_and_ended, seen_by_the_coordinator
from storms import COORDINATOR, write

SECOND_NS = 1_000_000_000
LISTENERS = "EXTERNAL", "INTERNAL"
PLAIN, OWN, NETWORK = "10.0.0.1", "10.0.0.2", "10.1.0.1"
IPS = (PLAIN, OWN, NETWORK, "10.1.0.2", "10.0.0.3", "10.0.0.4")
STATIC = [
    ["static", "/listeners", "EXTERNAL://:1,INTERNAL://:2"],
    ["static", "/inter.broker.listener.name", "INTERNAL"],
]

Event = dict[str, Any]


class Version(NamedTuple):
    """From `stored_ns` on some shards may have it, from `acknowledged_ns` on all do."""

    number: int
    stored_ns: int
    acknowledged_ns: int
    caps: dict[str, int]
    """Of the broker (`total` refuses, `slots` make wait), of each listener, and of addresses, by the kinds above."""

    def changes(self) -> list[list[str]]:
        caps = self.caps
        values = {
            "kafka_connections_max": caps["total"],
            "max.connections": caps["slots"],
            "listener.name.external.max.connections": caps["EXTERNAL"],
            "listener.name.internal.max.connections": caps["INTERNAL"],
            "kafka_connections_max_per_ip": caps["ip"],
            "kafka_connections_max_overrides": f"{OWN}:{caps[OWN]},10.1.0.0/16:{caps[NETWORK]}",
        }
        return [["setting", f"/{name}", str(value)] for name, value in values.items()]


def versions(seed: int, count: int = 4) -> list[Version]:
    """Every few seconds all caps change at once."""
    source = random.Random(seed)
    made = []
    for number in range(1, count + 1):
        caps = {"total": 11, "slots": source.randint(9, 10), "EXTERNAL": source.randint(7, 8)}
        caps |= {"INTERNAL": source.randint(5, 6), "ip": source.randint(3, 5)}
        caps |= {OWN: source.randint(2, 6), NETWORK: source.randint(2, 6)}
        at_ns = number * 12 * SECOND_NS
        made.append(Version(number, at_ns, at_ns + SECOND_NS, caps))
    return made


class Broker:
    """One broker's events, in order of time and without `seq` until `numbered`."""

    def __init__(self, number: int, seed: int, plan: list[Version], *, shards: int = 2) -> None:
        self.number = number
        self.random = random.Random(seed)
        self.plan = plan
        self.events: list[Event] = []
        self.lost: list[Event] = []  # for the coordinator to write
        self.open: list[Event] = []
        self.conn = 0
        self.epochs = dict.fromkeys(range(shards), 1)
        self.now_ns = plan[0].stored_ns
        self._applied = {
            shard: [self.random.randint(each.stored_ns + 1, each.acknowledged_ns - 1) for each in plan]
            for shard in self.epochs
        }
        for shard in self.epochs:
            self._start(shard)

    def run(self, plant: Callable[["Broker"], None] | None = None) -> "Broker":
        """To a little after the last change, with `plant` called at a random moment when there is a version before."""
        end_ns = self.plan[-1].acknowledged_ns + 10 * SECOND_NS
        planted_ns = self.random.randint(self.plan[1].acknowledged_ns, self.plan[-1].stored_ns - 4 * SECOND_NS)
        self._steps(planted_ns)
        if plant is not None:
            plant(self)
            self.close_all()  # which shows that no process had died before
        self._steps(end_ns)
        return self

    def widest(self, name: str) -> int:
        """The widest of a cap's values that may be in force now."""
        return max(version.caps[name] for version in self._possible())

    def add(self, kind: str, shard: int, **columns: Any) -> Event:
        self.now_ns += self.random.randint(1000, 2000)
        event = {"kind": kind, "mono_ns": self.now_ns, "broker": self.number, "shard": shard}
        event |= {"epoch": self.epochs[shard], "ts": 1_600_000_000_000_000 + self.now_ns // 1000, **columns}
        self.events.append(event)
        return event

    def admit(self, ip: str, listener: str = "EXTERNAL", *, shard: int | None = None) -> Event:
        """Let in beyond any cap."""
        shard = self.random.choice(list(self.epochs)) if shard is None else shard
        self.conn += 1
        columns = {"conn": self.conn, "ip": ip, "port": 1000, "listener": listener, "version": self.version(shard)}
        event = self.add("admitted", shard, held_ms=0.1, **columns)
        self.open.append(event)
        return event

    def refuse(self, why: str, ip: str, name: str, listener: str = "EXTERNAL", **columns: Any) -> Event:
        """Refused by one of the caps of Version, in the version that has the tightest of those that may be in force."""
        version = min(self._possible(), key=lambda each: each.caps[name])
        limit = {"total": "kafka_connections_max", "ip": "kafka_connections_max_per_ip"}
        self.conn += 1
        said = {"limit": limit.get(name, "kafka_connections_max_overrides"), "limit_value": float(version.caps[name])}
        said |= {
            "reason": why,
            "conn": self.conn,
            "ip": ip,
            "port": 1000,
            "listener": listener,
            "version": version.number,
        }
        return self.add("refused", self.random.choice(list(self.epochs)), held_ms=0.1, **{**said, **columns})

    def churn(self, count: int, ip: str | None = None) -> None:
        """So many come and go at once, one after the other."""
        for number in range(count):
            self.close(self.admit(ip or f"10.5.0.{number}"))

    def quiet(self) -> None:
        """Every shard shows that it is alive, with nothing before and after for so long that all that is in use is known."""
        self.close_all()
        self.now_ns += 7 * SECOND_NS
        for shard in self.epochs:
            self.close(self.admit("10.3.0.1", shard=shard))
        self.now_ns += 7 * SECOND_NS

    def close(self, event: Event, reason: str = "client") -> None:
        same = {name: event[name] for name in ("conn", "ip", "port", "listener")}
        self.add("closed", event["shard"], reason=reason, held_ms=1.0, bytes=100, **same)
        if event in self.open:
            self.open.remove(event)

    def close_all(self) -> None:
        for event in list(self.open):
            self.close(event)

    def version(self, shard: int) -> int:
        """What a shard has applied."""
        return max(each.number for each, at in zip(self.plan, self._applied[shard], strict=True) if at <= self.now_ns)

    def numbered(self) -> list[Event]:
        return numbered(begun_and_ended(self.events, len(self.epochs)))

    def _start(self, shard: int) -> None:
        """A process begins with everything, later versions come as they are applied."""
        self.now_ns = max(self.now_ns, self._applied[shard][0])
        first = self.version(shard)
        self.add("shard_up", shard)
        self._config(shard, first, full=True)

    def _config(self, shard: int, number: int, *, full: bool = False) -> None:
        changes = [*(STATIC if full else []), *self.plan[number - 1].changes()]
        detail = json.dumps({"changes": changes, "full": full, "acknowledged": False})
        self.add("config", shard, version=number, detail=detail)

    def _possible(self) -> list[Version]:
        newest = max(each.number for each in self.plan if each.stored_ns <= self.now_ns)
        sure = max((each.number for each in self.plan if each.acknowledged_ns <= self.now_ns), default=1)
        return self.plan[sure - 1 : newest]

    def _steps(self, end_ns: int) -> None:
        while self.now_ns < end_ns:
            before = {shard: self.version(shard) for shard in self.epochs}
            self.now_ns += self.random.randint(1, 2 * SECOND_NS)
            for shard, number in before.items():
                for newer in range(number + 1, self.version(shard) + 1):
                    self._config(shard, newer)
            doing = self.random.random()
            if doing < 0.6:
                self._arrive()
            elif doing < 0.95:
                if self.open:
                    self.close(self.random.choice(self.open))
            else:
                self._kill()

    def _arrive(self) -> None:
        ip, listener = self.random.choice(IPS), self.random.choices(LISTENERS, (4, 1))[0]
        caps = {name: min(each.caps[name] for each in self._possible()) for name in self.plan[0].caps}
        of_ip = OWN if ip == OWN else NETWORK if ip.startswith("10.1.") else "ip"
        in_listener = sum(event["listener"] == listener for event in self.open)
        if in_listener >= caps[listener] or (listener == "EXTERNAL" and len(self.open) >= caps["slots"]):
            return  # it waits
        if sum(event["ip"] == ip for event in self.open) >= caps[of_ip]:
            self.refuse("ip_cap", ip, of_ip, listener)
            return
        if len(self.open) >= caps["total"]:
            self.refuse("broker_cap", ip, "total", listener)
            return
        self.admit(ip, listener)
        elsewhere = [event for event in self.open if event["listener"] == "EXTERNAL"]
        if len(self.open) > caps["slots"] and elsewhere:
            self.close(elsewhere[0], "max_connections")

    def _kill(self) -> None:
        """A shard dies, and its tokens are free before the coordinator says so; its successor starts."""
        shard = self.random.choice(list(self.epochs))
        lost = {"broker": self.number, "shard": shard, "epoch": self.epochs[shard]}
        self.open = [event for event in self.open if event["shard"] != shard]
        self.lost.append({"kind": "shard_lost", "mono_ns": self.now_ns + 1, "detail": json.dumps(lost)})
        self.epochs[shard] += 1
        self._start(shard)


def coordinator(plan: list[Version], lost: Iterable[Event], events: Iterable[Event]) -> list[Event]:
    """What it writes: each version stored and acknowledged, which shards were up, and which died."""
    events = [*lost, *seen_by_the_coordinator(events)]
    for version in plan:
        for at_ns, acknowledged in ((version.stored_ns, False), (version.acknowledged_ns, True)):
            changes = [*(STATIC if version.number == 1 else []), *version.changes()]
            detail = json.dumps({"changes": changes, "full": version.number == 1, "acknowledged": acknowledged})
            events.append({"kind": "config", "mono_ns": at_ns, "version": version.number, "detail": detail})
    place = {"broker": COORDINATOR, "shard": COORDINATOR, "epoch": 0, "ts": 1_600_000_000_000_000}
    last_ns = max(event["mono_ns"] for event in events) + 100 * SECOND_NS
    return numbered([{**place, **event} for event in (*events, {"kind": "ended", "mono_ns": last_ns})])


def numbered(events: list[Event]) -> list[Event]:
    """The same in order of time, each with its number in its incarnation."""
    count: dict[tuple[int, int, int], int] = {}
    made = []
    for event in sorted(events, key=lambda event: event["mono_ns"]):
        place = event["broker"], event["shard"], event["epoch"]
        made.append({**event, "seq": count.get(place, 0)})
        count[place] = count.get(place, 0) + 1
    return made


# ---- violations of caps and tokens; each begins with nothing open


def over_an_address(ip: str, cap: str) -> Callable[[Broker], None]:
    def plant(broker: Broker) -> None:
        broker.close_all()
        for _ in range(broker.widest(cap) + 1):
            broker.admit(ip)

    return plant


def over_a_listener(listener: str) -> Callable[[Broker], None]:
    def plant(broker: Broker) -> None:
        broker.close_all()
        for number in range(broker.widest(listener) + 1):
            broker.admit(f"10.3.0.{number}", listener)

    return plant


def over_the_broker(broker: Broker) -> None:
    """The inter-broker listener, which does not wait for slots, passes kafka_connections_max."""
    broker.close_all()
    for number in range(7):
        broker.admit(f"10.3.0.{number}", "EXTERNAL")
    for number in range(5):
        broker.admit(f"10.4.0.{number}", "INTERNAL")


def over_the_slots(broker: Broker) -> None:
    """A client is let in although connections of the inter-broker listener fill the slots, for long."""
    broker.close_all()
    for number in range(4):
        broker.admit(f"10.4.0.{number}", "INTERNAL")
    broker.now_ns += 11 * SECOND_NS
    for number in range(7):
        broker.admit(f"10.3.0.{number}", "EXTERNAL")


def under_an_old_version(broker: Broker) -> None:
    broker.close_all()
    sure = max(each.number for each in broker.plan if each.acknowledged_ns < broker.now_ns)
    broker.admit("10.3.0.1")["version"] = broker.random.randint(1, sure - 1)


def taken_twice(broker: Broker) -> None:
    broker.close_all()
    event = broker.admit("10.3.0.1")
    broker.add(
        "admitted", event["shard"], **{name: event[name] for name in ("conn", "ip", "port", "listener", "version")}
    )


def closed_twice(broker: Broker) -> None:
    broker.close_all()
    event = broker.admit("10.3.0.1")
    broker.close(event)
    broker.close(event)


def closed_before_admitted(broker: Broker) -> None:
    broker.close_all()
    event = broker.admit("10.3.0.1")
    broker.close(event)
    broker.events[-1]["mono_ns"], event["mono_ns"] = event["mono_ns"], broker.events[-1]["mono_ns"]


def never_admitted(broker: Broker) -> None:
    broker.close_all()
    event = broker.admit("10.3.0.1")
    broker.close(event)
    broker.events.remove(event)


def closed_from_elsewhere(broker: Broker) -> None:
    """A second close of it names another address."""
    broker.close_all()
    event = broker.admit("10.3.0.1")
    broker.close(event)
    broker.close({**event, "ip": "10.3.0.2"})


def refused_with_room(reason: str, ip: str, cap: str, fewer: int) -> Callable[[Broker], None]:
    """A connection is refused while so many fewer than the cap are, or may be, open."""

    def plant(broker: Broker) -> None:
        broker.quiet()
        least = min(version.caps[cap] for version in broker.plan)
        broker.churn(least - fewer, ip if reason == "ip_cap" else None)
        broker.refuse(reason, ip, cap)
        broker.quiet()

    return plant


def refused_beside_headerless(broker: Broker) -> None:
    """A connection is refused with room for one more; proxies that sent no PROXY header explain it no more than nobody does."""
    broker.quiet()
    broker.churn(min(version.caps["total"] for version in broker.plan) - 1)
    for _ in range(20):
        broker.refuse("proxy_header", "10.3.0.9", "total", limit="PRX_NOT_HDR", limit_value=0.0, version=None)
    broker.refuse("broker_cap", "10.3.0.1", "total")
    broker.quiet()


def refused_naming(**columns: Any) -> Callable[[Broker], None]:
    """The broker is full, but the refusal names something else."""

    def plant(broker: Broker) -> None:
        broker.close_all()
        broker.churn(12)
        broker.refuse("broker_cap", "10.3.0.1", "total", **columns)

    return plant


def refused_under_an_old_version(broker: Broker) -> None:
    sure = max(each.number for each in broker.plan if each.acknowledged_ns < broker.now_ns)
    refused_naming(version=broker.random.randint(1, sure - 1))(broker)


PLANTS: dict[str, tuple[Callable[[Broker], None], str]] = {
    "address": (over_an_address(PLAIN, "ip"), "ip_cap"),
    "address with its own": (over_an_address(OWN, OWN), "ip_cap"),
    "address of a network": (over_an_address(NETWORK, NETWORK), "ip_cap"),
    "external": (over_a_listener("EXTERNAL"), "listener_cap"),
    "internal": (over_a_listener("INTERNAL"), "listener_cap"),
    "broker": (over_the_broker, "broker_cap"),
    "slots": (over_the_slots, "broker_cap"),
    "old version": (under_an_old_version, "enforced_on_return"),
    "taken twice": (taken_twice, "conservation"),
    "closed twice": (closed_twice, "conservation"),
    "closed before admitted": (closed_before_admitted, "conservation"),
    "never admitted": (never_admitted, "conservation"),
    "closed from elsewhere": (closed_from_elsewhere, "conservation"),
    "refused by the broker, with room": (refused_with_room("broker_cap", "10.3.0.1", "total", 1), "refused_with_cause"),
    "refused by an empty broker": (refused_with_room("broker_cap", "10.3.0.1", "total", 9), "refused_with_cause"),
    "refused beside proxies without a header": (refused_beside_headerless, "refused_with_cause"),
    "refused an address with room": (refused_with_room("ip_cap", PLAIN, "ip", 1), "refused_with_cause"),
    "refused an address with its own": (refused_with_room("ip_cap", OWN, OWN, 1), "refused_with_cause"),
    "refused under an old version": (refused_under_an_old_version, "refused_as_configured"),
    "refused under a version to come": (refused_naming(version=4), "refused_as_configured"),
    "refused under no version": (refused_naming(version=None), "refused_as_configured"),
    "refused by another setting": (refused_naming(limit="kafka_connections_max_per_ip"), "refused_as_configured"),
    "refused by another value": (refused_naming(limit_value=10.0), "refused_as_configured"),
    "refused by a listener's cap": (refused_naming(reason="listener_cap"), "refused_as_configured"),
}

# ---- events that are missing, of a broker's numbered ones


def first_missing(events: list[Event], source: random.Random) -> list[Event]:
    """The first ones of one incarnation."""
    place = _place(source.choice(events))
    mine = [event for event in events if _place(event) == place]
    kept = source.randint(1, len(mine) - 1)
    return [event for event in events if _place(event) != place or event["seq"] >= kept]


def middle_missing(events: list[Event], source: random.Random, gaps: int = 1) -> list[Event]:
    """One or several runs of them, with something after."""
    left = list(events)
    for _ in range(gaps):
        last: dict[tuple[int, int, int], int] = {_place(event): event["seq"] for event in left}
        start = source.choice([event for event in left if 0 < event["seq"] < last[_place(event)]])
        gone = range(start["seq"], min(start["seq"] + source.randint(1, 4), last[_place(start)]))
        left = [event for event in left if _place(event) != _place(start) or event["seq"] not in gone]
    return left


def several_missing(events: list[Event], source: random.Random) -> list[Event]:
    return middle_missing(events, source, gaps=3)


MISSING: dict[str, Callable[[list[Event], random.Random], list[Event]]] = {
    "first": first_missing,
    "middle": middle_missing,
    "several": several_missing,
}


def write_unreadable(folder: Path, events: list[Event], source: random.Random) -> list[Event]:
    """Writes what an incarnation had from some moment on as a part that is cut off; returns the other events."""
    place = _place(source.choice(events))
    mine = [event for event in events if _place(event) == place]
    start = source.randint(0, len(mine) - 1)
    write(folder / "cut", mine[start:])
    part = folder / "cut" / "0.parquet"
    name = "b{}-s{}-e{:06}-{:012}.parquet".format(*place, mine[start]["seq"])
    (folder / name).write_bytes(part.read_bytes()[: -source.randint(1, 500)])
    part.unlink()
    part.parent.rmdir()
    return [event for event in events if _place(event) != place or event["seq"] < start]


def _place(event: Event) -> tuple[int, int, int]:
    return event["broker"], event["shard"], event["epoch"]
