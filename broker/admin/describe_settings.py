"""The admin API's answers about the configuration: limits, quotas, users. Read from the coordinator's state."""

from __future__ import annotations

from broker.admin.answers import EntityQuotas, UserRow
from broker.admin.live_answers import LimitRow
from broker.admin.redpanda import as_json
from broker.serve.sasl import SCRAM, Credential
from shards.config.coordinator import Coordinator
from shards.config.messages import UserChange
from shards.limits.observed_limits import is_observable
from shards.limits.quota_entities import entity_of_key
from shards.settings.broker_config import EVERY_BROKER, given
from shards.settings.config_def import LIMITS, broker_setting, listener_of
from shards.settings.config_types import Value
from shards.settings.errors import ConfigInvalid

_NAMED = 20
"""Users that a refusal names."""


class SettingsView:
    """Answers questions about the configuration as JSON-able values."""

    def __init__(self, coordinator: Coordinator) -> None:
        self._coordinator = coordinator

    def limits(self) -> list[LimitRow]:
        """Every setting that limits clients, in force or not; then those that single brokers have of their own.

        `broker`: the id of the broker, null for the whole cluster.
        """
        state = self._coordinator.state
        found = given(EVERY_BROKER, state.static, state.settings)
        names = (*LIMITS, *sorted(name for name in found if listener_of(name)))
        rows = [_limit(name, found.get(name, broker_setting(name).default), name in found, None) for name in names]
        for broker, values in self.broker_overrides().items():
            rows += [
                _limit(name, value, True, broker)
                for name, value in values.items()
                if name in LIMITS or listener_of(name)
            ]
        return rows

    def broker_overrides(self) -> dict[int, dict[str, Value]]:
        """The live values that single brokers have of their own, by broker id."""
        settings = self._coordinator.state.settings
        found: dict[int, dict[str, Value]] = {}
        for broker in sorted({int(key.partition("/")[0]) for key in settings if not key.startswith("/")}):
            own = {key: text for key, text in settings.items() if key.startswith(f"{broker}/")}
            found[broker] = given(broker, {}, own, unreadable=lambda fault: None)
        return found

    def quotas(self, *, observed: bool = False) -> list[EntityQuotas]:
        """Every entity that has a quota, and its values."""
        state = self._coordinator.state
        quotas = sorted((state.observed_quotas if observed else state.quotas).items())
        return [{"entity": dict(entity_of_key(key)), "values": values} for key, values in quotas]

    def users(self) -> list[UserRow]:
        """Every user, and the mechanisms it can log in with besides PLAIN."""
        return [
            {"name": name, "mechanisms": sorted(kept)} for name, kept in sorted(self._coordinator.state.users.items())
        ]

    def user_changes(self, name: str, password: str | None) -> list[UserChange]:
        """The changes that give the user `name` this password; None: those that remove the user."""
        if password is None:
            known = self._coordinator.state.users.get(name)
            if known is None:
                known_users = ", ".join(sorted(self._coordinator.state.users)[:_NAMED]) or "there is none"
                sentence = f"there is no user {name!r:.200}; users: {known_users}."
                raise ConfigInvalid.saying(sentence, name="user", error="RESOURCE_NOT_FOUND")
            return [(name, mechanism, None) for mechanism in known]
        if not password:
            raise ConfigInvalid("password", "", "it must not be empty", error="UNACCEPTABLE_CREDENTIAL")
        return [(name, mechanism, Credential.of_password(mechanism, password).stored()) for mechanism in SCRAM]


def _limit(name: str, value: Value, is_set: bool, broker: int | None) -> LimitRow:
    setting = broker_setting(name)
    return {
        "name": name,
        "broker": broker,
        "value": as_json(setting, value),
        "text": "" if value is None else setting.kind.spell(value),
        "set": is_set and (broker is not None or value != setting.default),
        "vocabulary": setting.vocabulary,
        "observable": is_observable(name),
        "doc": setting.doc,
    }
