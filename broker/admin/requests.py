"""Requests of the admin API: body, query and caller. A request that can't be read is answered with a 4xx.

bodies_are_bounded  A body has at most MAX_BODY bytes and arrives within BODY_WITHIN_S, so that an unfinished one holds
    nothing for long.
"""

import itertools
import json
from collections.abc import Collection, Mapping
from typing import Any, NamedTuple

import trio
from starlette.exceptions import HTTPException
from starlette.requests import Request

from broker.faults.fault import checked
from shards.config.advertised_changes import AddressChange
from shards.config.cluster_plan import DEFAULT_ADMIN
from shards.config.messages import FaultChange, QuotaChange
from shards.limits.quota_entities import CLIENT_KEYS, IP_KEYS
from shards.settings.errors import ConfigInvalid
from shards.settings.near_misses import near_misses

MAX_BODY = 4 << 20
BODY_WITHIN_S = 30.0
_KEYS = (*IP_KEYS, *CLIENT_KEYS)
WHO = "x-turnstile-who"
_FOUND = tuple(f"http://{host}:{DEFAULT_ADMIN[1]}" for host in (DEFAULT_ADMIN[0], "localhost"))


async def read_bytes(request: Request) -> bytes:
    """The body. Raises HTTPException: 408 when it does not arrive, 413."""
    too_long = HTTPException(413, f"a body may have at most {MAX_BODY} bytes.")
    if int(request.headers.get("content-length", 0)) > MAX_BODY:
        raise too_long
    received = bytearray()
    with trio.move_on_after(BODY_WITHIN_S) as arriving:
        async for chunk in request.stream():
            received += chunk
            if len(received) > MAX_BODY:
                raise too_long
    if arriving.cancelled_caught:
        raise HTTPException(408, f"the body did not arrive within {BODY_WITHIN_S:g} s.", {"connection": "close"})
    return bytes(received)


async def read_body(request: Request) -> object:
    """The JSON of the body. Raises HTTPException: 400 for what is not JSON, and as read_bytes."""
    received = await read_bytes(request)
    try:
        body = json.loads(received, parse_constant=_refuse_constant)
        json.dumps(body, ensure_ascii=False).encode()  # half of a surrogate pair is JSON, but no text
    except (ValueError, RecursionError):
        raise HTTPException(400, "the body is not JSON.") from None
    return body


def _refuse_constant(name: str) -> None:
    """NaN and Infinity, which Python would read, are not JSON."""
    raise ValueError(name)


def quota_changes(body: Any) -> list[QuotaChange]:
    """`{"alter": [{"entity", "set", "remove"}]}` as changes for the coordinator. Raises ConfigInvalid."""
    shape = 'must be {"alter": [{"entity": {type: name}, "set": {key: number}, "remove": [key]}]}'
    try:
        alter: list[dict[str, Any]] = body["alter"]
        if not isinstance(alter, list):
            raise TypeError
        changes = [(dict(a["entity"]), dict.fromkeys(a.get("remove", ())), dict(a.get("set", {}))) for a in alter]
    except (KeyError, TypeError, ValueError, AttributeError):
        raise ConfigInvalid("the body", None, shape) from None
    for entity, removed, values in changes:
        for key in (*removed, *values):
            _check_key(entity, str(key))
        for key, value in values.items():
            if isinstance(value, bool) or not isinstance(value, int | float):
                # JSON's null would be read as a removal further on, and "remove" is how to ask for one.
                raise ConfigInvalid(str(key), json.dumps(value), "a quota is a number")
    return [(entity, {**removed, **values}) for entity, removed, values in changes]


def _check_key(entity: Mapping[str, object], key: str) -> None:
    """Raises ConfigInvalid if there is no such quota, or if entities of this type do not have it; the message names those that
    they have."""
    if key not in _KEYS:
        near = near_misses(key, _KEYS)
        rather = f"did you mean {near[0]}?" if near else f"quotas are {', '.join(_KEYS)}."
        raise ConfigInvalid(key, None, f"is not a quota; {rather}")
    if "ip" in entity and key in CLIENT_KEYS:
        raise ConfigInvalid(key, None, f"is a quota of users and client ids; an ip has {', '.join(IP_KEYS)}")
    if entity and "ip" not in entity and key in IP_KEYS:
        raise ConfigInvalid(key, None, f"is a quota of an ip; users and client ids have {', '.join(CLIENT_KEYS)}")


def fault_changes(body: object, now: Collection[str]) -> list[FaultChange]:
    """`{"add": [fault], "remove": [name]}` as changes for the coordinator; a fault without a name gets one that is
    not in `now`. Raises ConfigInvalid."""
    shape = 'must be {"add": [{"kind": ...}], "remove": [name]}'
    if not isinstance(body, dict) or not body.keys() <= {"add", "remove"}:
        raise ConfigInvalid("the body", None, shape)
    added, removed = body.get("add", []), body.get("remove", [])
    if not isinstance(added, list) or not isinstance(removed, list) or not all(isinstance(a, dict) for a in added):
        raise ConfigInvalid("the body", None, shape)
    for name in (*removed, *(fault["name"] for fault in added if fault.get("name") is not None)):
        if not isinstance(name, str):
            raise ConfigInvalid("name", json.dumps(name), "it must be text")
    changes: list[FaultChange] = [(name, None) for name in removed]
    taken = {*now, *(fault.get("name") for fault in added)}
    for fault in added:
        name = fault.get("name") or next(n for n in map("fault-{}".format, itertools.count(1)) if n not in taken)
        taken.add(name)
        changes.append((name, checked(fault)))
    return changes


def address_change(body: object) -> AddressChange:
    """`{"listener": L, "broker": N, "addresses": text or [text]}`; without a listener the only one. Raises ConfigInvalid."""
    shape = 'must be {"listener": name, "addresses": ["host:port" for each broker] or "auto"}, with "broker": id for one alone'
    if not isinstance(body, dict) or not {"addresses"} <= body.keys() <= {"listener", "broker", "addresses"}:
        raise ConfigInvalid("the body", None, shape)
    listener, broker, given = body.get("listener"), body.get("broker"), body["addresses"]
    addresses = [given] if isinstance(given, str) else given
    if (
        not isinstance(listener, str | None)
        or (broker is not None and type(broker) is not int)
        or not isinstance(addresses, list)
        or not addresses
        or not all(isinstance(each, str) for each in addresses)
    ):
        raise ConfigInvalid("the body", None, shape)
    return AddressChange(listener, broker, addresses)


class SubscriptionChange(NamedTuple):
    """The client metrics resource `name`, and its configs that change; None: back to the default."""

    name: str
    configs: dict[str, str | None]


def subscription_change(body: object) -> SubscriptionChange:
    """`{"name": N, "configs": {name: text or null}}`. Raises ConfigInvalid."""
    shape = 'must be {"name": text, "configs": {name: text or null}}'
    if not isinstance(body, dict) or body.keys() != {"name", "configs"} or not isinstance(body["configs"], dict):
        raise ConfigInvalid("the body", None, shape)
    if not isinstance(body["name"], str) or not all(isinstance(text, str | None) for text in body["configs"].values()):
        raise ConfigInvalid("the body", None, shape)
    return SubscriptionChange(body["name"], body["configs"])


def is_number(text: str) -> bool:
    """True if it is digits alone, and not so many that Python refuses to read them."""
    return text.isascii() and text.isdigit() and len(text) < 20


def require_caller(request: Request) -> None:
    """Refuses a plain POST, which a page of another site could send from a browser; it can't send a header of its own."""
    if WHO not in request.headers:
        raise HTTPException(403, f"name the caller in the header {WHO}.")


def caller(request: Request) -> str:
    """The caller as the history names it: the name that it gives itself, and the address it calls from."""
    named = "".join(c for c in request.headers.get(WHO, "HTTP") if c.isprintable())[:64]
    return f"{named} from {request.client.host}" if request.client else named


def at_admin(request: Request) -> str:
    """The option by which a command finds this admin API as the caller did, with a space before it; "" where none is needed."""
    url = str(request.base_url).rstrip("/")
    return "" if url in _FOUND else f" --admin {url}"
