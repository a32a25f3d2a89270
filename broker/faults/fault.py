"""One fault: what it does, and to which requests. Pure: JSON in, matches out.

The vocabulary is that of Kafka's own fault proxy (apache/kafka#23438: injectError, disconnectOn, delayOn, blackholeClient,
and its triggers), and `throttle`, which is what this broker is about.
"""

from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any, NamedTuple

from broker.metrics.shard_counters import FAULTS as KINDS
from broker.wire import apis, codes
from shards.config.stored_records import FaultRecord
from shards.settings.addresses import normalise_ip
from shards.settings.errors import ConfigInvalid
from shards.settings.near_misses import near_misses
from shards.settings.ranges import INT_MAX

TRIGGERS = ("once", "on_call", "times", "every_ms", "probability")
_OF_KIND = {"error": "error", "delay": "delay_ms", "throttle": "throttle_ms"}
"""The fields that a kind of fault needs."""
_EXAMPLES = {"error": "such as REQUEST_TIMED_OUT", "delay": "in milliseconds", "throttle": "in milliseconds"}
_OPTIONS = {"reset": "disconnect", "mute": "throttle"}
"""Switches, and the kind that has each."""
_TARGETS = ("api", "client_id", "ip", "connection")
ERRORS = {name: code for code, name in codes.NAMES.items()}
_APIS = {apis.api_name(key): key for key in apis.APIS}


class Fault(NamedTuple):
    """`apis`: keys of the requests it is for; none: all. `client_id` may have * and ?. `connection`: the client's IP:PORT.

    `triggered`: it fires at some calls only, which the coordinator counts (triggers.py). `amount_ms`: of delay, throttle.
    """

    name: str
    kind: str
    apis: frozenset[int]
    client_id: str | None
    ip: str | None
    connection: str | None
    error: int
    amount_ms: int
    reset: bool
    mute: bool
    triggered: bool

    @property
    def ends_connections(self) -> bool:
        """A disconnect that names no API: of connections that are open, and of those that are opened."""
        return self.kind == "disconnect" and not self.apis

    def matches_connection(self, ip: str, port: int) -> bool:
        """True if it is for this client's address and port."""
        return self.ip in (None, ip) and (self.connection is None or self.connection == spelled(ip, port))

    def matches_client(self, client_id: str | None) -> bool:
        return self.client_id is None or fnmatchcase(client_id or "", self.client_id)

    def matches(self, api_key: int | None, client_id: str | None, ip: str, port: int) -> bool:
        """True if it is for such a request; `api_key` None: a SASL token without a Kafka header."""
        wanted = not self.apis or api_key in self.apis
        return wanted and self.matches_client(client_id) and self.matches_connection(ip, port)


def fault_of(name: str, record: FaultRecord) -> Fault:
    """The fault of a record that `checked` has made."""
    kind = record["kind"]
    return Fault(
        name=name,
        kind=kind,
        apis=frozenset(_APIS[api] for api in record.get("api", ())),
        client_id=record.get("client_id"),
        ip=record.get("ip"),
        connection=record.get("connection"),
        error=ERRORS[record.get("error", "NONE")],
        amount_ms=record.get("delay_ms") or record.get("throttle_ms") or 0,
        reset=record.get("reset", False),
        mute=record.get("mute", True),
        triggered=any(trigger in record for trigger in TRIGGERS),
    )


def checked(given: Mapping[str, object]) -> dict[str, object]:
    """The record of a fault as a caller gives it, without its name; spelled canonically. Raises ConfigInvalid."""
    found = {key: value for key, value in given.items() if value is not None and key != "name"}
    kind = found.get("kind")
    if not isinstance(kind, str) or kind not in KINDS:
        raise ConfigInvalid("kind", kind if kind is not None else "", f"it must be one of {', '.join(KINDS)}")
    allowed = {"kind", *_TARGETS, *TRIGGERS, "seed", *_OF_KIND.values(), *_OPTIONS}
    for key in found:
        if key not in allowed:
            near = near_misses(key, allowed)
            rather = f"did you mean {near[0]}?" if near else f"these are {', '.join(sorted(allowed))}."
            raise ConfigInvalid(key, None, f"is not a part of a fault; {rather}")
    for part, owner in [*((part, kind) for kind, part in _OF_KIND.items()), *_OPTIONS.items()]:
        if part in found and owner != kind:
            raise ConfigInvalid(part, None, f"is for faults of kind {owner}, and this is a {kind}")
    needed = _OF_KIND.get(kind)
    if needed is not None and needed not in found:
        raise ConfigInvalid(needed, None, f"is missing: a fault of kind {kind} needs it, {_EXAMPLES[kind]}")
    record = {"kind": kind, **_target(found), **_trigger(found)}
    if "error" in found:
        record["error"] = _error(found["error"])
    for part in ("delay_ms", "throttle_ms"):
        if part in found:
            record[part] = _whole(part, found[part], 1)
    for part in _OPTIONS:
        if part in found:
            record[part] = _flag(part, found[part])
    return record


def _target(found: Mapping[str, Any]) -> dict[str, object]:
    target: dict[str, object] = {}
    if found.get("api"):
        target["api"] = _api_names(found["api"])
    for part in ("client_id", "ip", "connection"):
        if part in found and not isinstance(found[part], str):
            raise ConfigInvalid(part, found[part], "it must be text")
    if "client_id" in found:
        target["client_id"] = found["client_id"]
    if "ip" in found:
        target["ip"] = _ip("ip", found["ip"])
    if "connection" in found:
        host, colon, port = found["connection"].rpartition(":")
        if not colon or not (port.isascii() and port.isdigit() and len(port) <= 5 and int(port) < 1 << 16):
            raise ConfigInvalid("connection", found["connection"], "it must be the client's address and port, IP:PORT")
        target["connection"] = spelled(_ip("connection", host.strip("[]")), int(port))
    return target


def _api_names(given: object) -> list[str]:
    names = given.split(",") if isinstance(given, str) else given
    if not isinstance(names, Sequence) or not all(isinstance(name, str) for name in names):
        raise ConfigInvalid("api", given, "it must be the name of an API, or a list of names")
    found = []
    for name in names:
        known = {api.lower(): api for api in _APIS}.get(name.strip().lower())
        if known is None:
            near = near_misses(name, _APIS)
            raise ConfigInvalid(
                "api", name, "it is not an API of Kafka" + (f"; did you mean {near[0]}?" if near else "")
            )
        found.append(known)
    return found


def _trigger(found: Mapping[str, object]) -> dict[str, object]:
    given = [trigger for trigger in TRIGGERS if trigger in found and found[trigger] is not False]
    if len(given) > 1:
        raise ConfigInvalid(given[1], None, f"can't be together with {given[0]}: a fault has one trigger at most")
    if "seed" in found and given != ["probability"]:
        raise ConfigInvalid("seed", None, "is for probability")
    if not given:
        return {}
    trigger = given[0]
    if trigger == "once":
        return {"once": _flag("once", found["once"])}
    if trigger != "probability":
        return {trigger: _whole(trigger, found[trigger], 1)}
    chance = found["probability"]
    if isinstance(chance, bool) or not isinstance(chance, int | float) or not 0 <= chance <= 1:
        raise ConfigInvalid("probability", chance, "it must be a number from 0 to 1")
    return {"probability": float(chance), "seed": _whole("seed", found.get("seed", 0), 0)}


def _error(given: object) -> str:
    if not isinstance(given, str) or given not in ERRORS or given == "NONE":
        near = near_misses(str(given), [name for name in ERRORS if name != "NONE"])
        raise ConfigInvalid(
            "error", given, "it is not an error of Kafka" + (f"; did you mean {near[0]}?" if near else "")
        )
    return given


def _ip(part: str, text: str) -> str:
    try:
        return normalise_ip(text)
    except ValueError as fault:
        raise ConfigInvalid(part, text, str(fault)) from None


def _whole(part: str, given: object, least: int) -> int:
    if isinstance(given, bool) or not isinstance(given, int) or not least <= given <= INT_MAX:
        raise ConfigInvalid(part, given, f"it must be a whole number of at least {least}")
    return given


def _flag(part: str, given: object) -> bool:
    if not isinstance(given, bool):
        raise ConfigInvalid(part, given, "it must be true or false")
    return given


def spelled(ip: str, port: int) -> str:
    """IP:PORT, with brackets around IPv6."""
    return f"[{ip}]:{port}" if ":" in ip else f"{ip}:{port}"
