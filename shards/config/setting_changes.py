"""Requested changes of settings, enforced or observed, -> the delta to store; and the settings that a cluster starts with. Pure.

Invariants as of config_state.py, and:
stored_settings_satisfy_every_rule  After `ConfigState.put(delta)` every broker's settings satisfy every rule, so shards
    need not check again.
"""

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import NamedTuple

from shards.config.advertised import advertised_text, listeners_as_advertised
from shards.config.cluster_plan import ListenerEndpoint
from shards.config.config_state import Change, ConfigState, bounded, storable
from shards.config.messages import SettingChange
from shards.limits.observed_limits import check_observable
from shards.settings.broker_config import EVERY_BROKER, check_listener, check_live, check_together, given
from shards.settings.config_def import BROKER, LIMITS, broker_setting, canonical_name, listener_of, parse
from shards.settings.config_key import ConfigKey
from shards.settings.config_types import Value
from shards.settings.errors import ConfigInvalid


def settings_delta(state: ConfigState, changes: Sequence[SettingChange]) -> list[Change]:
    """The delta of changed settings. `changes`: [broker id as text or "" for all, name, value or None to unset it]. Raises
    ConfigInvalid."""
    wanted = _with_changes(state, state.settings, changes)
    _check_live_settings(state, state.settings, wanted)
    return _differences("setting", state.settings, wanted)


def observed_delta(state: ConfigState, changes: Sequence[SettingChange]) -> list[Change]:
    """The delta of observed limits. `changes`: as of settings_delta. They are valid if the cluster could enforce them now,
    together with all other observed values. Raises ConfigInvalid."""
    for _, name, _ in changes:
        check_observable(canonical_name(name))
    wanted = _with_changes(state, state.observed, changes)
    _check_live_settings(state, {**state.settings, **state.observed}, {**state.settings, **wanted})
    return _differences("observed", state.observed, wanted)


def _with_changes(state: ConfigState, records: Mapping[str, str], changes: Sequence[SettingChange]) -> dict[str, str]:
    """`records`, keyed "broker/name", with the changes applied. Each change is checked by itself. Raises ConfigInvalid."""
    bounded(changes)
    wanted = dict(records)
    listeners = listeners_of(state.static)
    for broker, name, value in changes:
        if broker != "" and not (broker.isascii() and broker.isdigit() and int(broker) < state.brokers):
            raise ConfigInvalid("broker", broker, f"this cluster has brokers 0 to {state.brokers - 1}",
                                error="INVALID_REQUEST")  # fmt: skip
        name = canonical_name(name)
        setting = broker_setting(name)
        if not setting.dynamic:
            raise ConfigInvalid(name, None, _why_static(setting, name, value), error="INVALID_REQUEST")
        if broker != "" and setting.of_cluster:
            raise ConfigInvalid(name, None, "holds for all brokers together, and can't be set for one",
                                error="INVALID_REQUEST")  # fmt: skip
        key = f"{broker}/{name}"
        if value is None:
            before = wanted.pop(key, None)
            if setting.resizes and before is not None:
                back = given(int(broker or 0), state.static, wanted).get(name, setting.default)
                _check_size(state, broker, name, back)
            continue
        check_listener(name, listeners)
        parsed = parse(setting, name, value)
        if setting.resizes:
            _check_size(state, broker, name, parsed)
        wanted[key] = setting.kind.spell(parsed)
    return wanted


def _check_live_settings(state: ConfigState, before: Mapping[str, str], after: Mapping[str, str]) -> None:
    """Checks the rules that span settings, for every broker, before a live change. Raises ConfigInvalid."""
    listeners = listeners_of(state.static)
    for broker_id in range(state.brokers):
        found = given(broker_id, state.static, after)
        check_together(found)
        check_live(partial(given, broker_id, state.static, before), found, listeners)


def _differences(kind: str, before: Mapping[str, str], after: Mapping[str, str]) -> list[Change]:
    return storable(
        [(kind, key, after.get(key)) for key in dict.fromkeys([*before, *after]) if before.get(key) != after.get(key)]
    )


def _why_static(setting: ConfigKey, name: str, value: str | None) -> str:
    if setting.told:
        return "describes how the cluster was started, and can't be set"
    start = f"with --set {name}=VALUE" if value is not None else f"without --set {name}"
    return f"can't change while the cluster runs; start it {start}"


def _check_size(state: ConfigState, broker: str, name: str, value: Value) -> None:
    """Source: DynamicThreadPool.validateReconfiguration (Apache Kafka)."""
    now = given(int(broker or 0), state.static, state.settings).get(name, BROKER[name].default)
    assert isinstance(now, int) and isinstance(value, int)
    if not now / 2 <= value <= now * 2:
        raise ConfigInvalid(name, value, f"a live change may at most halve or double it, and it is {now} now")


def listeners_of(static: Mapping[str, str]) -> list[str]:
    """The names of the cluster's listeners; none if the command line's settings name none."""
    listeners = static.get("0/listeners", "")
    return [entry.partition("://")[0].strip() for entry in listeners.split(",") if entry]


def check_brokers(brokers: int, static: Mapping[str, str], dynamic: Mapping[str, str]) -> None:
    """Checks the rules that span settings, for every broker. Raises ConfigInvalid."""
    for broker in range(brokers):
        check_together(given(broker, static, dynamic))


def static_settings(pairs: Iterable[tuple[str, str]], endpoints: Iterable[ListenerEndpoint] = ()) -> dict[str, str]:
    """The settings that a cluster starts with, like Kafka's server.properties: the `--set` pairs, and the settings that follow
    from the endpoints.

    Raises ConfigInvalid, whose text is one sentence for the command line.
    """
    found: dict[str, str] = {}
    by_broker: dict[int, list[ListenerEndpoint]] = {}
    for endpoint in endpoints:
        by_broker.setdefault(endpoint.broker, []).append(endpoint)
    for broker, own in by_broker.items():
        addresses = ",".join(f"{endpoint.listener}://{endpoint}" for endpoint in own)
        advertised = ",".join(
            advertised_text(endpoint.listener, str(endpoint), _advertise(endpoint), broker) for endpoint in own
        )
        protocols = ",".join(f"{endpoint.listener}:{_protocol(endpoint)}" for endpoint in own)
        found |= {f"{broker}/{name}": str(broker) for name in ("broker.id", "node.id")}
        found |= {f"{broker}/listeners": addresses, f"{broker}/advertised.listeners": advertised}
        found[f"{broker}/listener.security.protocol.map"] = protocols
    for name, text in pairs:
        name = canonical_name(name.strip())
        setting = broker_setting(name)
        if setting.told:
            raise ConfigInvalid(name, None, _why_static(setting, name, text))
        check_listener(name, listeners_of(found))
        if name == "advertised.listeners":
            text = listeners_as_advertised(text, listeners_of(found), max(len(by_broker), 1))
        found[f"/{name}"] = setting.kind.spell(parse(setting, name, text))
    check_brokers(max(len(by_broker), 1), found, {})
    return found


def _advertise(endpoint: ListenerEndpoint) -> str | None:
    """The value of a listener's option `advertise=...`; None: it has none."""
    given = (option.partition("=") for option in endpoint.options)
    return next((text for name, _, text in given if name == "advertise"), None)


def _protocol(endpoint: ListenerEndpoint) -> str:
    return ("SASL_" if "sasl" in endpoint.options else "") + ("SSL" if "tls" in endpoint.options else "PLAINTEXT")


class Overruled(NamedTuple):
    """A stored live change of an earlier run that overrules a setting of the command line. `broker`: the id, as text, of the
    broker that the change is for; "": all brokers."""

    broker: str
    name: str
    asked: str
    stored: str

    @property
    def key(self) -> str:
        return f"{self.broker}/{self.name}"


def contradiction(fault: ConfigInvalid, settings: Mapping[str, str]) -> ConfigInvalid:
    """The fault of a command line; its text also gives the stored values of the settings that it names. `settings`: as in
    ConfigState."""
    stored = {key[1:]: text for key, text in settings.items() if key[:1] == "/" and key[1:] in str(fault)}
    if not stored:
        return fault
    values = ", ".join(f"{name} = {text}" for name, text in stored.items())
    other = " ".join(f"--set {name}=VALUE" for name in stored)
    rule = f"{fault.rule}; stored by an earlier run: {values}. To replace that: --override-stored {other}"
    return ConfigInvalid(fault.name, fault.value, rule)


def overruled(state: ConfigState) -> list[Overruled]:
    """The settings of the command line that a stored change overrules, on all brokers or on one."""
    found = []
    for key, stored in state.settings.items():
        broker, _, name = key.partition("/")
        asked = state.static.get(f"/{name}")
        if asked is not None and asked != stored:
            found.append(Overruled(broker, name, asked, stored))
    return found


def limits_in_force(state: ConfigState) -> dict[str, str]:
    """The limits of the whole cluster that differ from their defaults: their values as text, by name."""
    found = given(EVERY_BROKER, state.static, state.settings)
    names = [*LIMITS, *(name for name in found if listener_of(name))]
    rows = {name: (broker_setting(name), found[name]) for name in names if name in found}
    return {name: row.kind.spell(value) for name, (row, value) in rows.items() if value != row.default}
