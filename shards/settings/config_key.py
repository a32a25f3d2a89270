"""One row of the definitions: what a setting is called, which values it takes, and whether anything obeys it."""

from typing import Any, NamedTuple

from shards.settings.config_types import ConfigType, Value, ValueType

KAFKA, REDPANDA, TURNSTILE = "kafka", "redpanda", "turnstile"
NOT_EMULATED = "Not emulated: stored and shown for tools that ask for it; nothing acts on it."


class ConfigKey(NamedTuple):
    """One row. `default` None: no value unless set. `dynamic`: it can change while the cluster runs. `per_listener`: it may
    also be given as `listener.name.<listener>.<name>`. `resizes`: a live change may at most halve or double it.
    `emulated`: something obeys it. `told`: the cluster says it of itself (its listeners, its ids); it can't be set.
    `of_cluster`: it holds for all brokers together, and none has one of its own.
    `broker_names` (topic configs): the broker's settings it falls back to, and their factor.

    Source: ConfigDef.ConfigKey (Apache Kafka).
    """

    name: str
    kind: ValueType
    default: Value
    doc: str
    vocabulary: str = KAFKA
    dynamic: bool = False
    per_listener: bool = False
    resizes: bool = False
    emulated: bool = True
    told: bool = False
    of_cluster: bool = False
    broker_names: tuple[tuple[str, int], ...] = ()

    @property
    def nullable(self) -> bool:
        return self.default is None

    @property
    def is_password(self) -> bool:
        """True if its value is not to be shown."""
        return self.kind.kafka is ConfigType.PASSWORD

    @property
    def documentation(self) -> str:
        """The effect of the setting, for people; says so where nothing obeys it."""
        return self.doc if self.emulated else f"{self.doc} {NOT_EMULATED}".lstrip()


def shown(name: str, kind: ValueType, default: Value, doc: str, **more: Any) -> ConfigKey:
    """A row that nothing obeys."""
    return ConfigKey(name, kind, default, doc, emulated=False, **more)


def told(name: str, kind: ValueType, default: Value, doc: str) -> ConfigKey:
    """A row that says how the cluster was started."""
    return ConfigKey(name, kind, default, doc, told=True)
