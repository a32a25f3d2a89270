"""Quota entities and their quotas: which key and value an entity may have, and the one spelling of an entity.

An entity maps types (`user`, `client-id`, `ip`) to names, None being the default of that type. `user` and `client-id`
combine; `ip` stands alone. The messages are those of ClientQuotaControlManager (Kafka 4.1).

By Redpanda's semantics of quotas (`turnstile.quota.semantics`) there is `client-id-prefix`, too, which stands in place of
`client-id` and has no default, and no `request_percentage`.
"""

import json
import math
from collections.abc import Iterable, Mapping
from typing import TypeAlias

from shards.settings.addresses import normalise_ip
from shards.settings.errors import ConfigInvalid
from shards.settings.ranges import INT_MAX, LONG_MAX

Entity: TypeAlias = tuple[tuple[str, str | None], ...]  # sorted by type

TYPES = ("user", "client-id", "ip")
PREFIX = "client-id-prefix"
SEMANTICS, KAFKAS, REDPANDAS = "turnstile.quota.semantics", "kafka", "redpanda"
CALLBACK = "client.quota.callback.class"
CONNECTION_RATE = "connection_creation_rate"
LARGEST: dict[str, int | None] = {  # of whole numbers; None: fractions are allowed
    CONNECTION_RATE: INT_MAX,
    "producer_byte_rate": LONG_MAX,
    "consumer_byte_rate": LONG_MAX,
    "request_percentage": None,
    "controller_mutation_rate": None,
}
IP_KEYS = (CONNECTION_RATE,)
CLIENT_KEYS = ("producer_byte_rate", "consumer_byte_rate", "request_percentage", "controller_mutation_rate")
_NOT_REDPANDAS = "request_percentage"


def types_of(semantics: str) -> tuple[str, ...]:
    """The types that an entity may have, by the semantics of quotas in force."""
    return (*TYPES, PREFIX) if semantics == REDPANDAS else TYPES


def is_of_kafka(entity: Entity) -> bool:
    """True if the entity is of a client, and one of Kafka's."""
    return not any(kind in ("ip", PREFIX) for kind, _ in entity)


def check_semantics(entity: Entity, quotas: Iterable[str], semantics: str) -> None:
    """Raises ConfigInvalid for a quota that the semantics in force don't have."""
    if semantics != REDPANDAS and any(kind == PREFIX for kind, _ in entity):
        raise _refused(PREFIX, f"Unhandled client quota entity type: {PREFIX}")
    if semantics == REDPANDAS and _NOT_REDPANDAS in quotas:
        raise _refused(_NOT_REDPANDAS, f"Invalid configuration key {_NOT_REDPANDAS}: Redpanda has no such quota")


def entity_of(types_to_names: object, semantics: str = KAFKAS) -> Entity:
    """The entity of `{type: name or None}`, checked. Raises ConfigInvalid with Kafka's message (INVALID_REQUEST)."""
    if not isinstance(types_to_names, Mapping):
        raise _refused(
            "quota entity", f"A quota entity must be an object of types and names, not {types_to_names!r:.200}"
        )
    if not types_to_names:
        raise _refused("quota entity", "Invalid empty client quota entity")
    found: dict[str, str | None] = {}
    for kind, name in types_to_names.items():
        if kind not in types_of(semantics):
            raise _refused(kind, f"Unhandled client quota entity type: {kind}")
        if name == "":
            raise _refused(kind, f"Empty {kind} not supported")
        if name is not None and not isinstance(name, str):
            raise _refused(kind, f"The name of a {kind} must be text, or null for the default, not {name!r:.200}")
        found[kind] = name
    if PREFIX in found:
        if found[PREFIX] is None:
            raise _refused(PREFIX, f"Invalid quota entity type, there is no default {PREFIX}")
        if "client-id" in found:
            raise _refused(
                "quota entity", f"Invalid quota entity combination, client-id and {PREFIX} exclude each other"
            )
    if "ip" in found:
        if len(found) > 1:
            raise _refused("quota entity", "Invalid quota entity combination, IP entity shouldnot be combined with "
                           "User or ClientId")  # fmt: skip
        name = found["ip"]
        if name is not None:
            try:
                found["ip"] = normalise_ip(name)
            except ValueError:
                raise _refused("ip", f"{name} is not a valid IP or resolvable host.") from None
    return tuple(sorted(found.items()))


def quota_of(entity: Entity, key: str, value: object) -> float:
    """The quota `key` of this entity as a number. Raises ConfigInvalid, with Kafka's message, for what it can't be."""
    keys = IP_KEYS if entity[0][0] == "ip" else CLIENT_KEYS
    if key not in keys:
        raise _refused(key, f"Invalid configuration key {key}")
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise ConfigInvalid(key, value, "it must be a number", error="INVALID_REQUEST")
    try:
        number = float(value)
    except ValueError:
        raise ConfigInvalid(key, value, "it must be a number", error="INVALID_REQUEST") from None
    except OverflowError:
        number = math.inf if isinstance(value, int) and value > 0 else -math.inf
    _check(key, number)
    return number


def _check(key: str, value: float) -> None:
    if not value > 0:  # also refuses NaN
        raise _refused(key, f"Quota {key} must be greater than 0")
    largest = LARGEST[key]
    if largest is None:
        if math.isinf(value):  # Kafka keeps it; JSON can't, and no quota at all says the same
            raise _refused(key, f"Quota {key} must be finite")
        return
    if value > largest:
        kind = "an INT" if largest == INT_MAX else "a LONG"
        raise _refused(key, f"Proposed value for {key} is too large for {kind}.")
    if abs(value % 1.0) > 1e-6:
        raise _refused(key, f"{key} cannot be a fractional value.")


def key_of_entity(entity: Entity) -> str:
    """The record key: canonical JSON, e.g. `{"ip":"10.0.0.1"}`, `{"user":null}`."""
    return json.dumps(dict(entity), sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def entity_of_key(key: str) -> Entity:
    """The entity of a record key; nothing is checked."""
    return tuple(sorted(json.loads(key).items()))


def _refused(name: str, message: str) -> ConfigInvalid:
    error = ConfigInvalid(name, None, message, error="INVALID_REQUEST")
    error.args = (message,)  # Kafka's own sentence, word for word
    return error
