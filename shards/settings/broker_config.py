"""The configuration of one broker: what is set for it, and the rules that span several settings.

A value is looked for in four places, the first one wins: the broker's own live one, the cluster's live one, the broker's
of the command line, the cluster's of the command line (Kafka: DYNAMIC_BROKER, DYNAMIC_DEFAULT_BROKER, STATIC_BROKER).
Settings are kept as `BROKER/NAME` -> text, BROKER being "" for the cluster.

Source: KafkaConfig.validateValues, DynamicBrokerConfig, SocketServer.ListenerConnectionQuota (Apache Kafka).
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

from shards.settings.config_def import BROKER, LISTENER_PREFIX, broker_setting, listener_of, parse
from shards.settings.config_types import Value
from shards.settings.errors import ConfigInvalid

CAP = "max.connections"
RATE = "max.connection.creation.rate"
IP_CAP = "max.connections.per.ip"
IP_OVERRIDES = "max.connections.per.ip.overrides"
SSL_CAP = "turnstile.max.ssl.connections"
CLUSTER_CAP = "turnstile.cluster.max.connections"
CLUSTER_RATE = "turnstile.cluster.max.connection.creation.rate"
USER_CAP = "turnstile.max.connections.per.user"
USER_OVERRIDES = "turnstile.max.connections.per.user.overrides"
USER_RATE = "turnstile.max.connection.creation.rate.per.user"
USER_RATE_OVERRIDES = "turnstile.max.connection.creation.rate.per.user.overrides"


EVERY_BROKER = -1
"""A broker id: the settings of the whole cluster, not those that one broker has of its own."""


def given(
    broker: int,
    static: Mapping[str, str],
    dynamic: Mapping[str, str],
    unreadable: Callable[[ConfigInvalid], None] | None = None,
) -> dict[str, Value]:
    """Every value that is set for a broker, by name; broker -1 has none of its own.

    A name that no row has is left out: a later release wrote it. So is a value that can't be read, and `unreadable` is told
    of it; without `unreadable` that raises ConfigInvalid.
    """
    own = f"{broker}/"
    found: dict[str, Value] = {}
    for records, prefix in ((static, "/"), (static, own), (dynamic, "/"), (dynamic, own)):
        for key, text in records.items():
            if key.startswith(prefix):
                name = key[len(prefix) :]
                try:
                    setting = broker_setting(name)
                except ConfigInvalid:
                    continue
                try:
                    found[name] = setting.kind.parse(text)
                except ValueError as error:
                    fault = ConfigInvalid(name, text, str(error))
                    if unreadable is None:
                        raise fault from None
                    unreadable(fault)
    return found


def is_readable(name: str, text: str) -> bool:
    """True if a setting's name is known here; a later release may have written others. Raises ConfigInvalid when it is, and
    the text is no value of it."""
    try:
        setting = broker_setting(name)
    except ConfigInvalid:
        return False
    parse(setting, name, text)
    return True


class ListenerSetting(NamedTuple):
    """The setting that rules a listener, its own or the broker's, and its value."""

    name: str
    value: Any


def of_listener(given: Mapping[str, Value], listener: str, name: str) -> ListenerSetting:
    """See ListenerSetting."""
    own = f"{LISTENER_PREFIX}{listener.lower()}.{name}"
    if own in given:
        return ListenerSetting(own, given[own])
    return ListenerSetting(name, given.get(name, BROKER[name].default))


def check_listener(name: str, listeners: Iterable[str]) -> None:
    """Raises ConfigInvalid when `name` is of a listener that is none of `listeners`; no listeners: they are not known."""
    listener, known = listener_of(name), tuple(listeners)
    if listener is not None and known and listener not in [each.lower() for each in known]:
        raise ConfigInvalid(name, None, f"names no listener of this cluster, which has {', '.join(known)}")


NOT_ABOVE = (
    ("group.min.session.timeout.ms", "group.max.session.timeout.ms"),
    ("group.consumer.min.session.timeout.ms", "group.consumer.session.timeout.ms"),
    ("group.consumer.session.timeout.ms", "group.consumer.max.session.timeout.ms"),
    ("group.consumer.min.heartbeat.interval.ms", "group.consumer.heartbeat.interval.ms"),
    ("group.consumer.heartbeat.interval.ms", "group.consumer.max.heartbeat.interval.ms"),
    ("group.share.min.record.lock.duration.ms", "group.share.record.lock.duration.ms"),
    ("group.share.record.lock.duration.ms", "group.share.max.record.lock.duration.ms"),
    ("group.share.min.delivery.count.limit", "group.share.delivery.count.limit"),
    ("group.share.delivery.count.limit", "group.share.max.delivery.count.limit"),
    ("group.share.min.partition.max.record.locks", "group.share.partition.max.record.locks"),
    ("group.share.partition.max.record.locks", "group.share.max.partition.max.record.locks"),
    ("group.share.min.session.timeout.ms", "group.share.session.timeout.ms"),
    ("group.share.session.timeout.ms", "group.share.max.session.timeout.ms"),
    ("group.share.min.heartbeat.interval.ms", "group.share.heartbeat.interval.ms"),
    ("group.share.heartbeat.interval.ms", "group.share.max.heartbeat.interval.ms"),
    ("group.streams.min.session.timeout.ms", "group.streams.session.timeout.ms"),
    ("group.streams.session.timeout.ms", "group.streams.max.session.timeout.ms"),
    ("group.streams.min.heartbeat.interval.ms", "group.streams.heartbeat.interval.ms"),
    ("group.streams.heartbeat.interval.ms", "group.streams.max.heartbeat.interval.ms"),
    ("group.streams.num.standby.replicas", "group.streams.max.standby.replicas"),
    ("group.consumer.min.assignment.interval.ms", "group.consumer.assignment.interval.ms"),
    ("group.consumer.assignment.interval.ms", "group.consumer.max.assignment.interval.ms"),
    ("group.share.min.assignment.interval.ms", "group.share.assignment.interval.ms"),
    ("group.share.assignment.interval.ms", "group.share.max.assignment.interval.ms"),
    ("group.streams.min.assignment.interval.ms", "group.streams.assignment.interval.ms"),
    ("group.streams.assignment.interval.ms", "group.streams.max.assignment.interval.ms"),
)
"""The first of each pair must not exceed the second. Source: GroupCoordinatorConfig."""


def check_together(given: Mapping[str, Value]) -> None:
    """The rules between a broker's settings. Raises ConfigInvalid."""

    def value(name: str) -> Any:
        return given.get(name, BROKER[name].default)

    if value(IP_CAP) == 0 and not value(IP_OVERRIDES):
        raise ConfigInvalid(IP_CAP, "0", f"it can be zero only while {IP_OVERRIDES} is set")
    for low, high in NOT_ABOVE:
        if value(low) > value(high):
            raise ConfigInvalid(low, value(low), f"it must not exceed {high}, which is {value(high)}")
    if value("client.quota.callback.class") and value("turnstile.quota.semantics") == "redpanda":
        raise ConfigInvalid(
            "client.quota.callback.class",
            None,
            "it decides Kafka's quotas, and turnstile.quota.semantics is redpanda",
        )
    if not value("group.consumer.assignors"):
        raise ConfigInvalid("group.consumer.assignors", "", "it must name at least one assignor")
    if "classic" not in value("group.coordinator.rebalance.protocols"):
        raise ConfigInvalid(
            "group.coordinator.rebalance.protocols",
            ",".join(value("group.coordinator.rebalance.protocols")),
            "the classic protocol can't be switched off",
        )


def check_live(before: Callable[[], Mapping[str, Value]], after: Mapping[str, Value], listeners: Iterable[str]) -> None:
    """The rules for a broker that is running: no change may leave a listener without any connection or rate.

    A broker-wide zero is no matter where every listener has its own number. No `listeners`: they are not known, and every
    listener that a setting names may be one. `before()`, what was set until now, is asked for a zero only. Raises ConfigInvalid.
    """
    for listener in tuple(listeners) or ("", *(named for name in after if (named := listener_of(name)))):
        for name in (CAP, RATE):
            rules, value = of_listener(after, listener, name)
            if value < 1 and value != of_listener(before(), listener, name).value:
                raise ConfigInvalid(rules, value, "it must be at least 1 while the cluster runs")
