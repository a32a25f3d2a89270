"""Every setting by name: of a broker, of a listener, of a topic; and the value that a text is.

The rows are data: broker_settings.py and topic_settings.py. Source: ConfigDef, DynamicBrokerConfig (Apache Kafka).
"""

from collections.abc import Iterable

from shards.settings import kafka_configs
from shards.settings.broker_settings import COORDINATING, METERING, SERVING
from shards.settings.config_key import NOT_EMULATED, ConfigKey
from shards.settings.config_types import Value
from shards.settings.errors import ConfigInvalid
from shards.settings.limiting_settings import LIMITING, THROUGHPUT
from shards.settings.near_misses import near_misses
from shards.settings.redpanda_controller import CONTROLLER
from shards.settings.redpanda_topics import TOPIC_ROOM
from shards.settings.topic_settings import TOPIC_SETTINGS

LISTENER_PREFIX = "listener.name."
BROKER: dict[str, ConfigKey] = {
    row.name: row for row in [*LIMITING, *THROUGHPUT, *CONTROLLER, *METERING, *SERVING, *TOPIC_ROOM, *COORDINATING]
}
BROKER |= {row.name: row for row in kafka_configs.rows("broker") if row.name not in BROKER}
TOPIC: dict[str, ConfigKey] = {row.name: row for row in TOPIC_SETTINGS}
TOPIC |= {row.name: row for row in kafka_configs.rows("topic") if row.name not in TOPIC}
LIMITS: tuple[str, ...] = tuple(
    row.name for row in (*LIMITING, *THROUGHPUT)
)  # the settings that limit clients, for displays
MAX_TEXT = 1 << 20


def canonical_name(name: str) -> str:
    """The one spelling of a setting's name: a listener in a prefix is lower case, as Kafka looks it up."""
    if not name.startswith(LISTENER_PREFIX):
        return name
    listener, dot, rest = name[len(LISTENER_PREFIX) :].partition(".")
    return f"{LISTENER_PREFIX}{listener.lower()}{dot}{rest}"


def listener_of(name: str) -> str | None:
    """`external` for `listener.name.external.max.connections`, None for a name without that prefix."""
    return name[len(LISTENER_PREFIX) :].partition(".")[0] if name.startswith(LISTENER_PREFIX) else None


def broker_setting(name: str) -> ConfigKey:
    """The row for a broker setting, with or without a listener prefix. Raises ConfigInvalid, naming near misses."""
    setting = BROKER.get(name)
    if setting is not None:
        return setting
    if name.startswith(LISTENER_PREFIX):
        listener, _, rest = name[len(LISTENER_PREFIX) :].partition(".")
        setting = BROKER.get(rest)
        if setting is not None and setting.per_listener and listener:
            return setting
        each = ", ".join(s.name for s in BROKER.values() if s.per_listener)
        raise ConfigInvalid(name, None, f"is not a setting; a listener can have its own {each}")
    raise _unknown(name, BROKER)


def topic_setting(name: str) -> ConfigKey:
    """The row for a topic config. Raises ConfigInvalid, naming near misses."""
    setting = TOPIC.get(name)
    if setting is None:
        raise _unknown(name, TOPIC)
    return setting


def not_emulated(names: Iterable[str]) -> list[str]:
    """A sentence for each of these broker settings that nothing obeys; names that are no settings are left out."""
    rows = ((name, BROKER.get(name)) for name in names)
    return [f"{name}: {NOT_EMULATED}" for name, row in rows if row is not None and not row.emulated]


def _unknown(name: str, table: dict[str, ConfigKey]) -> ConfigInvalid:
    near = near_misses(name, table, cutoff=0.7)
    near = near or near_misses(name.replace("_", ".").lower(), table, cutoff=0.7)
    part = name.replace(".", "_").lower()
    near = near or [each for each in table if part.count("_") and part in each.replace(".", "_")]  # such as per_ip
    return ConfigInvalid(name, None, f"is not a setting; did you mean {near[0]}?" if near else "is not a setting")


def parse(setting: ConfigKey, name: str, text: str) -> Value:
    """The value of `name` (a row's own name or a prefixed one) from its text: one that, spelled, reads back equal, so that
    every stored setting can be read. Raises ConfigInvalid."""
    if len(text) > MAX_TEXT:
        raise ConfigInvalid(name, text, f"it may be at most {MAX_TEXT} characters long")
    try:
        value = setting.kind.parse(text)
    except ValueError as error:
        raise ConfigInvalid(name, text, str(error)) from None
    if not _survives(setting, value):
        raise ConfigInvalid(name, text, "it would not read back as it was written")
    return value


def _survives(setting: ConfigKey, value: Value) -> bool:
    try:
        spelled = setting.kind.spell(value)
        spelled.encode()  # half of a surrogate pair is no text
        return setting.kind.parse(spelled) == value
    except (ValueError, OverflowError):
        return False
