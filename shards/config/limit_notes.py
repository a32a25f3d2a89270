"""Notes on limits that are in force, or that a change brings: sentences for people. Pure.

A limit that lets no connection in (lockouts.py), how much of a rate passes at once (bursts.py), quotas of bytes that are smaller
than a batch (byte_rates.py), limits of users where no listener asks for a login, the cap of connections over TLS where no
listener has TLS, and values of single brokers, which a change for all of them leaves in force. Answers of the admin API,
`turnstile up` and the pytest plugin say them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from shards.config.config_state import ConfigState
from shards.config.host_overrides import names_in_state
from shards.config.messages import QuotaChange, SettingChange
from shards.config.setting_changes import listeners_of, settings_delta
from shards.limits.bursts import burst_notes
from shards.limits.byte_rates import byte_rate_notes
from shards.limits.connection_limits import ConnectionLimits
from shards.limits.lockouts import lockouts
from shards.limits.observed_limits import ObservedLimits
from shards.limits.quota_entities import CALLBACK, REDPANDAS, SEMANTICS, Entity, entity_of, entity_of_key
from shards.settings.broker_config import (
    EVERY_BROKER,
    SSL_CAP,
    USER_CAP,
    USER_OVERRIDES,
    USER_RATE,
    USER_RATE_OVERRIDES,
    given,
)
from shards.settings.config_def import broker_setting, canonical_name
from shards.settings.config_types import HIDDEN

LARGEST_BATCH = "message.max.bytes"
_ANONYMOUS = "ANONYMOUS"
_WITH_TLS = "give one the option tls"
_WITH_LOGIN = "start the cluster with --listener SASL=127.0.0.1:0,sasl"
MOST = 20
"""Notes that one answer has at most; a last one counts the others."""


def notes_of_settings(
    state: ConfigState, changes: Sequence[SettingChange], *, tried: bool = False, at: str = ""
) -> list[str]:
    """Notes on settings that are changed as for `settings_delta`; `tried`: they are not in `state`, and stay out of it.
    `at`: see lockouts."""
    settings = dict(state.settings)
    if tried:
        settings |= {key: text for _, key, text in settings_delta(state, changes) if text is not None}
    names = [canonical_name(name) for _, name, value in changes if value is not None]
    notes = [*_lockouts(state, settings, at), *_own_values(state.settings, changes)]
    for broker, limits in _limits(state, settings).items():
        notes += _of_broker(broker, burst_notes(limits, names=names))
    return _bounded([*notes, *_caps_without_clients(state, settings)])


def notes_of_observed(state: ConfigState, changes: Sequence[SettingChange] = (), *, tried: bool = False) -> list[str]:
    """Notes on observed limits, and on `changes` of them as for `observed_delta`; `tried` as in notes_of_settings. An observed
    limit that can refuse nothing, as the limits in force refuse it before, gets a note."""
    own = _bounded(_own_values({**state.settings, **state.observed}, changes))
    return own if tried else [*own, *_refusing_nothing(state)]


def _refusing_nothing(state: ConfigState) -> list[str]:
    if not state.observed:
        return []
    enforced, would_be = _limits(state, state.settings), _limits(state, {**state.settings, **state.observed})
    base = enforced[EVERY_BROKER]
    each = [ObservedLimits(enforced.get(broker, base), would_be[broker]) for broker in would_be]
    if any(one.has_other_caps or one.has_other_rates for one in each):
        return []
    return ["the observed limits are in force already: they would refuse no connection that is admitted now"]


def notes_of_quotas(state: ConfigState, changes: Sequence[QuotaChange]) -> list[str]:
    """Notes on quotas that are changed as for `quotas_delta`, and are valid."""
    quotas = [
        (entity_of(entity, REDPANDAS), {key: float(value) for key, value in values.items() if value is not None})
        for entity, values in changes
    ]
    limits = _limits(state, state.settings)[EVERY_BROKER]
    noted = _by_windows(state, quotas)
    users = _users_without_login(state, [entity for entity, values in quotas if values])
    return _bounded(
        [*users, *byte_rate_notes(limits, noted, _largest_batch(state)), *burst_notes(limits, noted, names=())]
    )


def notes_in_force(state: ConfigState, at: str = "") -> list[str]:
    """Notes on everything that is in force."""
    notes = _lockouts(state, state.settings, at)
    quotas = [(entity_of_key(key), values) for key, values in list(state.quotas.items())[:MOST]]
    for broker, limits in _limits(state, state.settings).items():
        of = _by_windows(state, quotas) if broker == EVERY_BROKER else []
        notes += _of_broker(broker, [*byte_rate_notes(limits, of, _largest_batch(state)), *burst_notes(limits, of)])
    users = _users_without_login(state, [entity for entity, _ in quotas])
    unknown = [*_hosts_without_address(state), *_unobserved(state)]
    queue = _request_queue(state)
    return _bounded([*notes, *queue, *_caps_without_clients(state, state.settings), *users, *unknown])


def _request_queue(state: ConfigState) -> list[str]:
    """The request queue, where it is on for all brokers: its waits look like those of a broker that hangs."""
    if state.value("turnstile.request.queue") is not True:
        return []
    handlers = state.value("num.io.threads")
    return [
        f"requests wait for the request handlers of their broker, num.io.threads={handlers}: turnstile.request.queue is on"
    ]


def lockouts_in_force(state: ConfigState) -> list[str]:
    """Notes on the limits in force that let no connection in."""
    return _lockouts(state, state.settings, "")


def _own_values(settings: Mapping[str, str], changes: Iterable[SettingChange]) -> list[str]:
    """Notes on values that single brokers have of their own, which hold there in spite of changes for all brokers. `settings`: by
    "broker/name"."""
    changed = {canonical_name(name) for broker, name, _ in changes if broker == ""}
    keys = ((*key.partition("/"), text) for key, text in settings.items())
    own = sorted((name, int(broker), text) for broker, _, name, text in keys if broker and name in changed)
    return [f"broker {broker} keeps its own value {_shown(name, text)} of {name}" for name, broker, text in own]


def _shown(name: str, text: str) -> str:
    return HIDDEN if broker_setting(name).is_password else text


def _by_windows(
    state: ConfigState, quotas: Sequence[tuple[Entity, Mapping[str, float]]]
) -> list[tuple[Entity, Mapping[str, float]]]:
    """The quotas that Kafka's windows meter: by Redpanda's semantics those of addresses alone."""
    all_of_them = state.text(SEMANTICS) != REDPANDAS
    return [(entity, values) for entity, values in quotas if all_of_them or entity[0][0] == "ip"]


def _users_without_login(state: ConfigState, entities: Iterable[Entity]) -> list[str]:
    """Quotas of users that no client can be: where no listener asks for a login, all are User:ANONYMOUS (KafkaPrincipal)."""
    if _asks_for_login(state):
        return []
    by_redpanda = state.text(SEMANTICS) == REDPANDAS
    who = "no client has a user" if by_redpanda else f"every client is user={_ANONYMOUS}"
    can_be = frozenset() if by_redpanda else {_ANONYMOUS}
    named = sorted({user for entity in entities if (user := dict(entity).get("user"))} - can_be)
    return [
        f"the quota of user={user} limits no client: no listener asks for a login, so {who}; {_WITH_LOGIN}"
        for user in named
    ]


def _caps_without_clients(state: ConfigState, settings: Mapping[str, str]) -> list[str]:
    """Limits of users' connections where no client is a user, and of connections over TLS where none is."""
    named = {key.partition("/")[2] for key in (*state.static, *settings)}
    notes = []
    if not _asks_for_login(state):
        of_users = sorted(named & {USER_CAP, USER_OVERRIDES, USER_RATE, USER_RATE_OVERRIDES})
        notes += [f"{name} limits no client: no listener asks for a login; {_WITH_LOGIN}" for name in of_users]
    if SSL_CAP in named and not any(protocol.endswith("SSL") for protocol in _protocols(state)):
        notes.append(f"{SSL_CAP} limits no client: no listener has TLS; {_WITH_TLS}")
    return notes


def _unobserved(state: ConfigState) -> list[str]:
    of_clients = [key for key in state.observed_quotas if entity_of_key(key)[0][0] != "ip"]
    if not of_clients or not state.value(CALLBACK):
        return []
    return [f"the observed quotas of clients are not observed: {CALLBACK} decides about quotas"]


def _hosts_without_address(state: ConfigState) -> list[str]:
    names = sorted(name for name in names_in_state(state) if not state.hosts.get(name))
    return [f"the override of host {name} holds for no address: DNS has none for it" for name in names]


def _asks_for_login(state: ConfigState) -> bool:
    return any(protocol.startswith("SASL_") for protocol in _protocols(state))


def _protocols(state: ConfigState) -> list[str]:
    """The security protocols of the listeners, such as SASL_SSL."""
    maps = [text for key, text in state.static.items() if key.endswith("/listener.security.protocol.map")]
    return [each.partition(":")[2] for text in maps for each in text.split(",")]


def _lockouts(state: ConfigState, settings: Mapping[str, str], at: str) -> list[str]:
    listeners = listeners_of(state.static)
    found = _limits(state, settings)
    return [note for broker, limits in found.items() for note in _of_broker(broker, lockouts(limits, listeners, at=at))]


def _limits(state: ConfigState, settings: Mapping[str, str]) -> dict[int, ConnectionLimits]:
    """The limits of the whole cluster, and of each broker that has a live setting of its own."""
    own = {int(key.partition("/")[0]) for key in settings if not key.startswith("/")}
    return {
        broker: ConnectionLimits(given(broker, state.static, settings, unreadable=lambda fault: None), state.hosts)
        for broker in (EVERY_BROKER, *sorted(own))
    }


def _largest_batch(state: ConfigState) -> int:
    """Bytes; topics may have another `max.message.bytes`."""
    row = broker_setting(LARGEST_BATCH)
    size = given(EVERY_BROKER, state.static, state.settings, unreadable=lambda fault: None).get(
        LARGEST_BATCH, row.default
    )
    assert isinstance(size, int)
    return size


def _of_broker(broker: int, notes: Sequence[str]) -> list[str]:
    return [note if broker == EVERY_BROKER else f"broker {broker}: {note}" for note in notes]


def _bounded(notes: Sequence[str]) -> list[str]:
    once = list(dict.fromkeys(notes))
    return once if len(once) <= MOST else [*once[:MOST], f"and {len(once) - MOST} more like these."]
