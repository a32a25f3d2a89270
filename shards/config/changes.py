"""From what somebody asks for to what is changed: validated whole, or refused whole. Pure: no clock, no I/O.

G1  A function here returns the complete delta or raises; it never changes the State.
G2  A delta holds only what really becomes different, in canonical spelling; an empty one needs no new version.
G3  After `State.put(delta)` every broker's settings satisfy every rule, so shards need not check again.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from shards.config.cluster_plan import ListenerEndpoint
from shards.config.image import given
from shards.limits.config_def import BROKER, LIMITS, broker_setting, canonical_name, listener_of, parse
from shards.limits.config_types import Value
from shards.limits.errors import ConfigInvalid
from shards.limits.quota_entities import Entity, check_quota, entity_of, key_of_entity

Change = tuple[str, str, Any]  # kind, key, value or None
MAX_CHANGES = 10_000
MAX_TEXT = 1 << 20


class ConfigState:
    """Everything the coordinator stores, at one version."""

    def __init__(
        self, brokers: int, static: Mapping[str, str], records: Iterable[Change] = (), version: int = 0
    ) -> None:
        self.brokers = brokers
        self.static = dict(static)
        self.version = version
        self.settings: dict[str, str] = {}
        self.quotas: dict[str, dict[str, float]] = {}
        self.topics: dict[str, dict[str, Any]] = {}
        self.users: dict[str, dict[str, Any]] = {}
        self.put(records)

    def put(self, delta: Iterable[Change]) -> None:
        """Apply a delta that was validated."""
        for kind, key, value in delta:
            table = self._table(kind)
            if value is None:
                table.pop(key, None)
            else:
                table[key] = value

    def find(self, kind: str, key: str) -> Any:
        """The record, or None."""
        return self._table(kind).get(key)

    def _table(self, kind: str) -> dict[str, Any]:
        tables: dict[str, dict[str, Any]] = {
            "setting": self.settings, "quota": self.quotas, "topic": self.topics, "user": self.users}  # fmt: skip
        return tables[kind]

    def dump(self) -> list[Change]:
        """All of it as one delta, the command line's settings included."""
        return [
            *(("static", key, text) for key, text in self.static.items()),
            *(("setting", key, text) for key, text in self.settings.items()),
            *(("quota", key, values) for key, values in self.quotas.items()),
            *(("user", name, value) for name, value in self.users.items()),
            *(("topic", name, value) for name, value in self.topics.items()),
        ]


def bounded(changes: Sequence[Any]) -> None:
    """Raises ConfigInvalid when one request asks for more than a push should carry."""
    if len(changes) > MAX_CHANGES:
        raise ConfigInvalid("the request", len(changes), f"it may hold at most {MAX_CHANGES} changes")


# ---- settings


def settings_delta(state: ConfigState, changes: Sequence[Sequence[Any]]) -> list[Change]:
    """`changes`: [broker id as text or "" for all, name, value or None]. Raises ConfigInvalid."""
    bounded(changes)
    wanted = dict(state.settings)
    for broker, name, value in changes:
        if broker != "" and not (broker.isdigit() and int(broker) < state.brokers):
            raise ConfigInvalid("broker", broker, f"this cluster has brokers 0 to {state.brokers - 1}",
                                error="INVALID_REQUEST")  # fmt: skip
        name = canonical_name(name)
        setting = broker_setting(name)
        if not setting.dynamic:
            raise ConfigInvalid(name, None, f"can't change while the cluster runs; start it with --set {name}=VALUE",
                                error="INVALID_REQUEST")  # fmt: skip
        key = f"{broker}/{name}"
        if value is None:
            wanted.pop(key, None)
            continue
        if len(value) > MAX_TEXT:
            raise ConfigInvalid(name, value, f"it may be at most {MAX_TEXT} characters long")
        _check_listener(state.static, name)
        parsed = parse(setting, name, value)
        _check_live(state, broker, name, parsed, value)
        wanted[key] = setting.kind.spell(parsed)
    check_together(state.brokers, state.static, wanted)
    return [
        ("setting", key, wanted.get(key))
        for key in dict.fromkeys([*state.settings, *wanted])
        if state.settings.get(key) != wanted.get(key)
    ]


def _check_live(state: ConfigState, broker: str, name: str, value: Value, text: str) -> None:
    """Kafka's reconfiguration rules, which are stricter than those at start."""
    setting = broker_setting(name)
    assert setting.live_low is None or isinstance(value, int)
    if setting.live_low is not None and isinstance(value, int) and value < setting.live_low:
        raise ConfigInvalid(name, text, f"it must be at least {setting.live_low} while the cluster runs")
    if setting.resizes and isinstance(value, int):
        now = given(int(broker or 0), state.static, state.settings).get(name, BROKER[name].default)
        assert isinstance(now, int)
        if not now / 2 <= value <= now * 2:
            raise ConfigInvalid(name, text, f"a live change may at most halve or double it, and it is {now} now")


def _check_listener(static: Mapping[str, str], name: str) -> None:
    listener = listener_of(name)
    listeners = static.get("0/listeners") or static.get("/listeners")
    if listener is None or not listeners:
        return
    known = [entry.partition("://")[0].strip() for entry in listeners.split(",")]
    if listener not in [one.lower() for one in known]:
        raise ConfigInvalid(name, None, f"names no listener of this cluster, which has {', '.join(known)}")


def check_together(brokers: int, static: Mapping[str, str], dynamic: Mapping[str, str]) -> None:
    """The rules that span settings, for every broker. Raises ConfigInvalid."""
    for broker in range(brokers):
        found = given(broker, static, dynamic)

        def value(name: str, found: Mapping[str, Value] = found) -> Any:
            return found.get(name, BROKER[name].default)

        if value("max.connections.per.ip") == 0 and not value("max.connections.per.ip.overrides"):
            raise ConfigInvalid("max.connections.per.ip", "0",
                                "it can be zero only while max.connections.per.ip.overrides is set")  # fmt: skip
        if value("group.min.session.timeout.ms") > value("group.max.session.timeout.ms"):
            raise ConfigInvalid("group.min.session.timeout.ms", value("group.min.session.timeout.ms"),
                                "it must not exceed group.max.session.timeout.ms")  # fmt: skip


def static_settings(pairs: Iterable[tuple[str, str]], endpoints: Iterable[ListenerEndpoint] = ()) -> dict[str, str]:
    """The settings a cluster starts with, as Kafka's server.properties: `--set` pairs and what the endpoints say.

    Raises ConfigInvalid, as one sentence for the command line.
    """
    found: dict[str, str] = {}
    by_broker: dict[int, list[ListenerEndpoint]] = {}
    for endpoint in endpoints:
        by_broker.setdefault(endpoint.broker, []).append(endpoint)
    for broker, own in by_broker.items():
        addresses = ",".join(f"{endpoint.listener}://{endpoint}" for endpoint in own)
        protocols = ",".join(f"{endpoint.listener}:{_protocol(endpoint)}" for endpoint in own)
        found |= {f"{broker}/{name}": str(broker) for name in ("broker.id", "node.id")}
        found |= {f"{broker}/{name}": addresses for name in ("listeners", "advertised.listeners")}
        found[f"{broker}/listener.security.protocol.map"] = protocols
    for name, text in pairs:
        name = canonical_name(name.strip())
        setting = broker_setting(name)
        _check_listener(found, name)
        found[f"/{name}"] = setting.kind.spell(parse(setting, name, text))
    check_together(max(len(by_broker), 1), found, {})
    return found


def _protocol(endpoint: ListenerEndpoint) -> str:
    return ("SASL_" if "sasl" in endpoint.options else "") + ("SSL" if "tls" in endpoint.options else "PLAINTEXT")


def shadowed(state: ConfigState) -> list[tuple[str, str, str]]:
    """(name, started with, in force) where a live change that is still stored overrules the command line."""
    return [
        (key[1:], text, state.settings[key])
        for key, text in state.static.items()
        if key.startswith("/") and state.settings.get(key, text) != text
    ]


def limits_in_force(state: ConfigState) -> dict[str, str]:
    """The limits that are set for the whole cluster, by name, as people read them."""
    found = given(-1, state.static, state.settings)
    names = [*LIMITS, *(name for name in found if listener_of(name))]
    rows = {name: (broker_setting(name), found[name]) for name in names if name in found}
    return {name: row.kind.spell(value) for name, (row, value) in rows.items() if value != row.default}


# ---- quotas and users


def quotas_delta(state: ConfigState, changes: Sequence[Sequence[Any]]) -> list[Change]:
    """`changes`: [{type: name or None}, {key: value or None}]. Raises ConfigInvalid with Kafka's messages."""
    bounded(changes)
    wanted: dict[str, dict[str, float]] = {}
    for types_to_names, quotas in changes:
        entity: Entity = entity_of(types_to_names)
        key = key_of_entity(entity)
        values = wanted.setdefault(key, dict(state.quotas.get(key, {})))
        for name, value in quotas.items():
            if value is None:
                values.pop(name, None)
                continue
            try:
                number = float(value)
            except (TypeError, ValueError):
                raise ConfigInvalid(name, value, "it must be a number", error="INVALID_REQUEST") from None
            check_quota(entity, name, number)
            values[name] = number
    return [("quota", key, values or None) for key, values in wanted.items() if values != state.quotas.get(key, {})]


def users_delta(state: ConfigState, changes: Sequence[Sequence[Any]]) -> list[Change]:
    """`changes`: [user, mechanism, credential as a dict, or None to remove it]. What a credential holds is for those
    who check it; here it is stored. Raises ConfigInvalid."""
    bounded(changes)
    wanted: dict[str, dict[str, Any]] = {}
    for name, mechanism, credential in changes:
        if not name:
            raise ConfigInvalid("user", "", "it must have a name", error="UNACCEPTABLE_CREDENTIAL")
        known = wanted.setdefault(name, dict(state.users.get(name, {})))
        if credential is not None:
            known[mechanism] = credential
        elif known.pop(mechanism, None) is None:
            raise ConfigInvalid("user", name, f"it has no {mechanism} credential", error="RESOURCE_NOT_FOUND")
    return [("user", name, known or None) for name, known in wanted.items() if known != state.users.get(name, {})]
