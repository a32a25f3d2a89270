"""Seeded scenarios for the oracle: long, with live changes, near enough to every limit to meet it often."""

import json
import random
from typing import Any

Scenario = list[str]

_PACES = ((0, 0, 1), (1, 20, 40), (0, 5, 200), (50, 400, 1500))  # ms between events: bursts, streams, trickles
_GAPS = (900, 999, 1000, 1001, 2000, 10_000, 10_999, 11_000, 11_001, 25_000)  # around the edges of windows


class _Writer:
    """Lines of a scenario, with time that advances by its pace and now and then by a gap."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.at = rng.choice((0, 0, 1, 1234))
        self.pace = rng.choice(_PACES)
        self.lines: Scenario = []

    def tick(self) -> None:
        if self.rng.random() < 0.02:
            self.pace = self.rng.choice(_PACES)
        if self.rng.random() < 0.008:
            self.at += self.rng.choice(_GAPS)
        low, mode, high = self.pace
        self.at += int(self.rng.triangular(low, high, mode))

    def add(self, do: str, **fields: Any) -> None:
        self.lines.append(json.dumps({"at": self.at, "do": do, **fields}, separators=(",", ":"), ensure_ascii=False))


def _windows(writer: _Writer, prefix: str = "") -> None:
    rng = writer.rng
    if rng.random() < 0.6:
        writer.add("set", name=f"{prefix}quota.window.num", value=str(rng.choice((1, 2, 3, 5, 11, 20))))
    if rng.random() < 0.3:
        writer.add("set", name=f"{prefix}quota.window.size.seconds", value=rng.choice(("1", "2", "5")))


def connection_scenario(seed: int, length: int = 400) -> Scenario:
    """Connects, closes and changes on one to three listeners, from few addresses."""
    rng = random.Random(seed)
    writer = _Writer(rng)
    listeners = ["EXTERNAL", "INTERNAL", "ADMIN"][: rng.choice((1, 2, 2, 3, 3))]
    inter_broker = rng.choice([None, *listeners, listeners[-1]])
    writer.add("setup", listeners=listeners, inter_broker=inter_broker)
    _windows(writer)
    ips = [f"10.0.0.{n}" for n in range(rng.randint(2, 8))] + rng.sample(
        ["2001:db8::1", "::ffff:10.0.0.1", "10.9.0.1"], 2
    )
    kinds = rng.sample(_CHANGES, rng.randint(2, len(_CHANGES)))
    for _ in range(rng.randint(1, 6)):
        rng.choice(kinds)(writer, listeners, ips)
    open_ids: list[str] = []
    serial = 0
    close_share = rng.choice((0.2, 0.4, 0.46))
    while len(writer.lines) < length:
        writer.tick()
        dice = rng.random()
        if dice < 0.06:
            rng.choice(kinds)(writer, listeners, ips)
        elif dice < 0.06 + close_share and open_ids:
            newest = rng.random() < 0.2
            writer.add("close", id=open_ids.pop(-1 if newest else rng.randrange(len(open_ids))))
        else:
            open_ids.append(f"c{serial}")
            writer.add("connect", id=f"c{serial}", ip=rng.choice(ips), listener=rng.choice(listeners))
            serial += 1
    return writer.lines


def _change(writer: _Writer, name: str, low: int, high: int) -> None:
    rng = writer.rng
    value: object = str(rng.randint(low, high))
    if rng.random() < 0.12:
        value = rng.choice((None, "0", "-1", "many", "2147483647", 1, "1"))
    writer.add("set", name=name, value=value)


def _set_cap(writer: _Writer, listeners: list[str], ips: list[str]) -> None:
    _change(writer, "max.connections", 4, 60)


def _set_listener_cap(writer: _Writer, listeners: list[str], ips: list[str]) -> None:
    _change(writer, f"listener.name.{writer.rng.choice(listeners).lower()}.max.connections", 3, 40)


def _set_rate(writer: _Writer, listeners: list[str], ips: list[str]) -> None:
    _change(writer, "max.connection.creation.rate", 1, 25)


def _set_listener_rate(writer: _Writer, listeners: list[str], ips: list[str]) -> None:
    _change(writer, f"listener.name.{writer.rng.choice(listeners).lower()}.max.connection.creation.rate", 1, 15)


def _set_ip_cap(writer: _Writer, listeners: list[str], ips: list[str]) -> None:
    _change(writer, "max.connections.per.ip", 2, 25)


def _set_ip_overrides(writer: _Writer, listeners: list[str], ips: list[str]) -> None:
    rng = writer.rng
    exact = [ip for ip in ips if "." in ip and ":" not in ip]
    chosen = rng.sample(exact, rng.randint(1, len(exact)))
    value = ",".join(f"{ip}:{rng.randint(0, 15)}" for ip in chosen)
    writer.add("set", name="max.connections.per.ip.overrides", value=rng.choice((value, value, value, None)))


def _set_ip_rate(writer: _Writer, listeners: list[str], ips: list[str]) -> None:
    rng = writer.rng
    value = rng.choice((None, 0, 1, 2, 3, 5, 8, 20, 2147483647))
    ip = rng.choice([None, *ips])
    writer.add("quota", entity={"ip": ip}, key="connection_creation_rate", value=value)


_CHANGES = (_set_cap, _set_listener_cap, _set_rate, _set_listener_rate, _set_ip_cap, _set_ip_overrides, _set_ip_rate)

_USERS = ("alice", "bob", "a:b", "Zoë/%", "<default>", "")
_CLIENTS = ("app", "app2", "x:y", "client@#$%", "<default>", "")
_QUOTAS = {
    "produce": ("producer_byte_rate", (1_000, 20_000, 1_000_000)),
    "fetch": ("consumer_byte_rate", (1_000, 20_000, 1_000_000)),
    "request": ("request_percentage", (0.5, 12.5, 200.0)),
    "mutation": ("controller_mutation_rate", (0.3, 5, 50.0)),
}


def record_scenario(seed: int, length: int = 400) -> Scenario:
    """Records of one to four quota types by few clients, with quotas set and removed at all eight levels."""
    rng = random.Random(seed)
    writer = _Writer(rng)
    _windows(writer)
    _windows(writer, "controller.")
    kinds = rng.sample(sorted(_QUOTAS), rng.choice((1, 1, 2, 4)))
    users = rng.sample(_USERS, rng.randint(1, 4))
    clients = rng.sample(_CLIENTS, rng.randint(1, 4))
    levels = rng.sample(("user", "client", "both"), rng.randint(1, 3))
    for _ in range(rng.randint(0, 5)):
        _set_quota(writer, kinds, users, clients, levels)
    while len(writer.lines) < length:
        writer.tick()
        if rng.random() < 0.06:
            _set_quota(writer, kinds, users, clients, levels)
        else:
            _record(writer, rng.choice(kinds), rng.choice(users), rng.choice(clients))
    return writer.lines


def _set_quota(writer: _Writer, kinds: list[str], users: list[str], clients: list[str], levels: list[str]) -> None:
    rng = writer.rng
    key, values = _QUOTAS[rng.choice(kinds)]
    level = rng.choice(levels)
    entity: dict[str, str | None] = {}
    if level != "client":
        entity["user"] = rng.choice((None, rng.choice([user for user in users if user] or ["nobody"])))
    if level != "user":
        entity["client-id"] = rng.choice((None, rng.choice([client for client in clients if client] or ["nothing"])))
    value = rng.choice((*values, *values, None, None, rng.choice((0, -5, 0.5))))
    writer.add("quota", entity=entity, key=key, value=value)


def _record(writer: _Writer, kind: str, user: str, client_id: str) -> None:
    rng = writer.rng
    scale = rng.choice(_QUOTAS[kind][1])
    fields: dict[str, Any] = {"quota": kind, "user": user, "client_id": client_id}
    if kind == "request":
        amount: float = round(rng.expovariate(1 / (scale * 3)), rng.choice((0, 3, 7)))
    elif kind == "mutation":
        amount = rng.randint(0, int(scale * 8) + 1)
        fields["strict"] = rng.random() < 0.6
    else:
        amount = rng.randint(0, int(scale * 6))
    writer.add("record", **fields, amount=amount)
