"""Journals of simulated brokers: the real token protocol under delays, crashes and changes, and ways to break what it noted.

All brokers are given the same configurations, one after the other, each once the one before is acknowledged. An event of
phase p is at p seconds and some microseconds, in the order in which it happened; only their order matters.
"""

import json
import random
from collections.abc import Callable
from typing import Any

from crowd import COORDINATOR, numbered
from presence import begun_and_ended, seen_by_the_coordinator
from simulation.books import Event
from simulation.schedule import Schedule
from simulation.world import Rules

from shards.limits.caps import UNLIMITED, CapRule

SECOND_NS = 1_000_000_000
LISTENER = "listener:A"
IPS = ("ip:10.0.0.1", "ip:10.0.0.2", "ip:10.0.0.3")
PASSES = 25


def plan(seed: int, count: int = 5) -> list[Rules]:
    """Caps that come, change and go."""
    source = random.Random(seed)

    def rule(name: str, caps: tuple[int | None, ...]) -> CapRule:
        cap = source.choice(caps)
        return UNLIMITED if cap is None else CapRule(cap, name)

    return [
        {
            "broker": rule("kafka_connections_max", (8, 12, 20, None)),
            LISTENER: UNLIMITED,
            **{ip: rule("kafka_connections_max_per_ip", (2, 3, 6, 12, None)) for ip in IPS},
        }
        for _ in range(count)
    ]


class Planned(Schedule):
    """A schedule that follows a plan. `phases`: the version and the events of each, in order."""

    def __init__(self, seed: int, rules: list[Rules]) -> None:
        super().__init__(seed)
        self.kind = "planned"  # some kinds change the configuration by themselves
        self.world.has_general_rules = False  # as do some schedules of any kind
        self.changes = self.forced = self.races = 0.0
        self.logins.pools = []  # these journals are of addresses
        self.crashes = self.draw.choice([0.0, 0.04]) if self.world.shards > 1 else 0.0
        self.ips, self.listener = list(IPS), LISTENER
        self.rules = rules
        self.phases: list[list[Event]] = []

    def run(self) -> None:
        books = self.world.books
        for rules in self.rules:
            start = len(books.journal)
            self.world.push(rules)
            if not self.phases:
                self._settle_down()  # no connection is let in before there is a configuration
            for _ in range(PASSES * self.world.shards):
                self._something()
            for pair in self.world.broken():
                self.world.relink(*pair)
            for node in self.world.nodes:
                if not node.alive:
                    self.world.start(node.shard)
            self._settle_down()
            assert self.world.acked == len(self.world.versions) - 1
            self.phases.append(books.journal[start if self.phases else 0 :])
        assert not books.look_back()


class Simulated:
    """One run as a broker's journal. `events`: (phase, event), to which a plant may be done before `rows`."""

    def __init__(self, number: int, run: Planned) -> None:
        self.number = number
        self.world = run.world
        self.random = random.Random(number)
        self.events = [(phase, event) for phase, events in enumerate(run.phases) for event in events]

    def plant(self, how: "Plant") -> bool:
        """Breaks something at one random place; False where there is none."""
        places = list(range(len(self.events)))
        self.random.shuffle(places)
        return any(how(self, place) for place in places)

    def cap(self, version: int, pool: str) -> int | None:
        return self.world.versions[version].get(pool, UNLIMITED).cap

    def slack(self, place: int) -> dict[str, int]:
        """How many tokens an admission leaves of each pool that had a cap since the phase before, which was acknowledged.

        Nothing of the last event of a process: it is not certain that what it let in was open for any time.
        """
        phase, event = self.events[place]
        later = (each for _, each in self.events[place + 1 :])
        is_last = not any(each[1:3] == event[1:3] and each.kind != "lost" for each in later)
        if event.kind != "admitted" or not phase or is_last:
            return {}
        versions = range(phase, event.version + 1)
        return {
            pool: left
            for pool, left in event.slack.items()
            if all(self.cap(version, pool) is not None for version in versions)
        }

    def insert(self, place: int, *events: Event) -> bool:
        """Events after the one at `place`."""
        phase = self.events[place][0]
        self.events[place + 1 : place + 1] = [(phase, event) for event in events]
        return True

    def rows(self) -> list[dict[str, Any]]:
        """Rows of a journal; deaths are among them as the coordinator's, numbered together with those of all brokers."""
        made = []
        for index, (phase, event) in enumerate(self.events):
            at_ns = (phase + 1) * SECOND_NS + (index + 1) * 1000
            same = {
                "kind": event.kind,
                "broker": self.number,
                "shard": event.shard,
                "epoch": event.epoch,
                "mono_ns": at_ns,
            }
            row = {**same, "ts": 1_600_000_000_000_000 + at_ns // 1000, "version": event.version}
            if event.kind in ("admitted", "closed"):
                ip = next(pool for pool in event.what["pools"] if pool.startswith("ip:"))
                row |= {"conn": event.what["conn"], "ip": ip[3:], "port": 1, "listener": LISTENER.partition(":")[2]}
                row["version"] *= event.kind == "admitted"  # nothing is decided by a close
            elif event.kind in ("grant", "reclaim"):
                row["detail"] = json.dumps(event.what)
            if event.kind != "lost":
                made.append(row)
        return numbered(begun_and_ended(made, self.world.shards))


def coordinator(rules: list[Rules], events: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Each version stored when its phase begins, and acknowledged when it is over; and which shards were up, and died."""
    made = seen_by_the_coordinator(events, losses=True)
    for phase, each in enumerate(rules):
        caps = {pool: rule.cap for pool, rule in each.items() if rule.cap is not None}
        overrides = ",".join(f"{ip[3:]}:{caps[ip]}" for ip in IPS if ip in caps)
        values = {"kafka_connections_max": caps.get("broker"), "kafka_connections_max_overrides": overrides or None}
        changes = [["setting", f"/{name}", str(value)] for name, value in values.items() if value is not None]
        for at_ns, acknowledged in ((1, False), (SECOND_NS - 1, True)):
            detail = json.dumps({"changes": changes, "full": True, "acknowledged": acknowledged})
            event = {
                "kind": "config",
                "mono_ns": (phase + 1) * SECOND_NS + at_ns,
                "version": phase + 1,
                "detail": detail,
            }
            place = {"broker": COORDINATOR, "shard": COORDINATOR, "epoch": 0, "ts": 1_600_000_000_000_000}
            made.append({**place, **event})
    made.append({**place, "kind": "ended", "mono_ns": (len(rules) + 1) * SECOND_NS})
    return numbered(made)


# ---- violations

Plant = Callable[[Simulated, int], bool]


def granted_beyond_the_cap(broker: Simulated, place: int) -> bool:
    """A home grants one more than the cap is, and has it back at once."""
    event = broker.events[place][1]
    if event.kind != "grant" or event.what["to"] == event.shard:
        return False
    cap = broker.cap(event.version, event.what["pool"])
    if cap is None:
        return False
    pool, to = event.what["pool"], event.what["to"]
    grant = event._replace(what={"pool": pool, "to": to, "tokens": cap + 1})
    back = event._replace(kind="reclaim", what={"pool": pool, "from": to, "tokens": cap + 1})
    return broker.insert(place, grant, back)


def used_twice(broker: Simulated, place: int) -> bool:
    """A shard lets in more than it has tokens for."""
    event = broker.events[place][1]
    slack = broker.slack(place)
    if not slack:
        return False
    pools = event.what["pools"]
    more = [event._replace(what={"conn": 1_000_000 + n, "pools": pools}) for n in range(min(slack.values()) + 1)]
    return broker.insert(place, *more, *(each._replace(kind="closed") for each in more))


def never_given_back(broker: Simulated, place: int) -> bool:
    """A home notes as returned what a shard still uses; then it grants that again."""
    event = broker.events[place][1]
    every = broker.slack(place)
    if not every:
        return False
    pool, slack = broker.random.choice(sorted(every.items()))
    grants = [each for _, each in broker.events[:place] if _is_of(each, pool, event.shard)]
    home = grants[-1][1:3]
    if not any(each[1:3] == home and each.kind != "lost" for _, each in broker.events[place + 1 :]):
        return False  # the home may have died before
    back = grants[-1]._replace(kind="reclaim", what={"pool": pool, "from": event.shard, "tokens": slack + 1})
    again = back._replace(kind="grant", what={"pool": pool, "to": event.shard, "tokens": slack + 1, "reported": True})
    return broker.insert(place, back, again)


def never_granted(broker: Simulated, place: int) -> bool:
    """A grant that a shard made use of is not there."""
    event = broker.events[place][1]
    for pool, slack in broker.slack(place).items():
        grants = [index for index in range(place) if _is_of(broker.events[index][1], pool, event.shard)]
        last = broker.events[grants[-1]][1]
        if "reported" in last.what or last.what["tokens"] <= slack:
            continue
        if len(grants) > 1:
            since = [each for _, each in broker.events[grants[-2] : place]]
            if since[0].epoch != last.epoch or any(
                "lost" in each.what and each.what["from"] == event.shard for each in since
            ):
                continue  # this grant is the one from which on earlier ones don't count
        del broker.events[grants[-1]]
        return True
    return False


def _is_of(event: Event, pool: str, shard: int) -> bool:
    return event.kind == "grant" and event.what["pool"] == pool and event.what["to"] == shard


PLANTS: dict[str, tuple[Plant, str]] = {
    "granted beyond the cap": (granted_beyond_the_cap, "granted_within_cap"),
    "used twice": (used_twice, "used_within_grants"),
    "never given back": (never_given_back, "used_within_grants"),
    "never granted": (never_granted, "used_within_grants"),
}
