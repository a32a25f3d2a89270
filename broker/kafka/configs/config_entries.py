"""Config entries as DescribeConfigs and CreateTopics show them: value, source, and the values that the source overrules.

A broker setting: a live change of this broker, then of all brokers, then the value the cluster was started with (Kafka's
server.properties), then the default. A topic config: the topic's own, then the broker settings it falls back to.
Source: ConfigHelper of Kafka 4.1, whose source numbers these are.
"""

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from shards.config.advertised import spelled
from shards.config.image import ClusterImage
from shards.settings.config_def import BROKER, TOPIC, broker_setting
from shards.settings.config_key import ConfigKey
from shards.settings.errors import ConfigInvalid
from shards.settings.resource_settings import CLIENT_METRICS, GROUP

TOPIC_CONFIG, DYNAMIC_BROKER, DYNAMIC_DEFAULT, STATIC_BROKER, DEFAULT = 1, 2, 3, 4, 5
CLIENT_METRICS_CONFIG, GROUP_CONFIG = 7, 8


class Synonym(NamedTuple):
    name: str
    value: str | None
    source: int


class Entry(NamedTuple):
    """`synonyms`: every value that is set, the one in force first."""

    name: str
    value: str | None
    source: int
    read_only: bool
    type: int
    synonyms: tuple[Synonym, ...]
    doc: str


def broker_entries(image: ClusterImage) -> Iterator[Entry]:
    """Every setting of this broker, and every setting of a single listener (listener.name.<listener>.<setting>)."""
    prefixed = {key.partition("/")[2] for records in (image.static, image.dynamic) for key in records}
    for name in [*BROKER, *sorted(prefixed - BROKER.keys())]:
        entry = broker_entry(image, name)
        if entry is not None:
            yield entry


def broker_entry(image: ClusterImage, name: str) -> Entry | None:
    try:
        setting = broker_setting(name)
    except ConfigInvalid:
        return None  # stored by another release
    synonyms = [*_given(image, name)]
    if name != setting.name:  # listener.name.<listener>.<setting> falls back to the setting
        if not synonyms:
            return None
        synonyms += _given(image, setting.name)
    synonyms += _default(setting)
    return _entry(name, setting, synonyms, not setting.dynamic, None)


def default_entries(image: ClusterImage) -> Iterator[Entry]:
    """The configs that were changed live for all brokers: the cluster default, resource name ""."""
    for key, text in image.dynamic.items():
        broker, _, name = key.partition("/")
        if broker:
            continue
        try:
            setting = broker_setting(name)
        except ConfigInvalid:
            continue
        yield _entry(name, setting, [Synonym(name, text, DYNAMIC_DEFAULT)], not setting.dynamic, None)


def topic_entries(image: ClusterImage, own: Mapping[str, str]) -> Iterator[Entry]:
    """Every config of a topic; `own`: the configs that are set for it."""
    for name, setting in TOPIC.items():
        synonyms = [Synonym(name, own[name], TOPIC_CONFIG)] if name in own else []
        for broker_name, _ in setting.broker_names:
            synonyms += _given(image, broker_name)
        for broker_name, _ in setting.broker_names[:1]:
            synonyms += _default(BROKER[broker_name])
        yield _entry(name, setting, synonyms, False, _spelled_in_force(image, name, setting, own))


def client_metrics_entries(image: ClusterImage, name: str) -> Iterator[Entry]:
    """Every config of a client metrics resource."""
    own = image.client_metrics.get(name, {})
    for key, setting in CLIENT_METRICS.items():
        synonyms = [Synonym(key, own[key], CLIENT_METRICS_CONFIG)] if key in own else []
        yield _entry(key, setting, synonyms, False, own.get(key, setting.kind.spell(setting.default)))


def group_entries(image: ClusterImage, group: str) -> Iterator[Entry]:
    """Every config of a group, with the broker's settings that it falls back to (KIP-1240)."""
    own = image.group_configs.get(group, {})
    for key, setting in GROUP.items():
        synonyms = [Synonym(key, own[key], GROUP_CONFIG)] if key in own else []
        for broker_name, _ in setting.broker_names:
            synonyms += [*_given(image, broker_name), *_default(BROKER[broker_name])]
        if not setting.broker_names:
            synonyms += _default(setting)
        yield _entry(key, setting, synonyms, False, setting.kind.spell(image.group_get(group, key)))


def _spelled_in_force(image: ClusterImage, name: str, setting: ConfigKey, own: Mapping[str, str]) -> str | None:
    if name in own:
        return own[name]
    value = image.topic_get("", name)  # of a topic without configs: the broker's value
    return None if value is None else setting.kind.spell(value)


def _given(image: ClusterImage, name: str) -> Iterator[Synonym]:
    """Each place where a broker setting was given, the one in force first."""
    own, shared = f"{image.broker}/{name}", f"/{name}"
    layers = ((image.dynamic, own, DYNAMIC_BROKER), (image.dynamic, shared, DYNAMIC_DEFAULT),
              (image.static, own, STATIC_BROKER), (image.static, shared, STATIC_BROKER))  # fmt: skip
    if name == "advertised.listeners":
        set_live = spelled(image.static, image.advertised, image.broker)
        if set_live is not None:
            yield Synonym(name, set_live, DYNAMIC_BROKER)
    for records, key, source in layers:
        if key in records:
            yield Synonym(name, records[key], source)


def _default(setting: ConfigKey) -> list[Synonym]:
    if setting.default is None:
        return []
    return [Synonym(setting.name, setting.kind.spell(setting.default), DEFAULT)]


def _entry(name: str, setting: ConfigKey, synonyms: list[Synonym], read_only: bool, value: str | None) -> Entry:
    source = synonyms[0].source if synonyms else DEFAULT
    if setting.is_password:  # its source shows that it is set
        synonyms = [each._replace(value=None) for each in synonyms]
    shown = value if value is not None else synonyms[0].value if synonyms else None
    return Entry(name, shown, source, read_only, int(setting.kind.kafka), tuple(synonyms), setting.documentation)
