"""Every setting: name, kind of value, default, vocabulary, whether it changes live, what it does. Data, in one place.

Names, types, ranges and defaults of the Kafka rows are those of Kafka 4.1's own ConfigDefs; where a default differs,
its documentation says why. A row marked SHOWN is there because tools look for it: it is stored and described, and
nothing acts on it. What may follow from several settings together is checked in changes.py.
"""

import difflib
from dataclasses import dataclass

from shards.limits.config_types import (
    BOOLEAN,
    COST,
    INT_MAX,
    LONG_MAX,
    SHORT_MAX,
    TEXT,
    UINT32_MAX,
    ConfigType,
    Value,
    ValueType,
    long,
    number,
    one_of,
    overrides,
    whole,
    words,
)
from shards.limits.errors import ConfigInvalid
from shards.limits.overrides import NO_OVERRIDES

LISTENER_PREFIX = "listener.name."
KAFKA, REDPANDA, TURNSTILE = "kafka", "redpanda", "turnstile"


@dataclass(frozen=True, slots=True)
class ConfigKey:
    """One row. `default` None: no value unless set. `live_low`: the least a change while running may set (Kafka's
    reconfiguration checks are stricter than its start-up checks). `per_listener`: may also be given as
    `listener.name.<listener>.<name>`. `resizes`: a live change may at most halve or double it."""

    name: str
    kind: ValueType
    default: Value
    doc: str
    vocabulary: str = KAFKA
    dynamic: bool = False
    per_listener: bool = False
    live_low: int | None = None
    resizes: bool = False
    broker_names: tuple[tuple[str, int], ...] = ()  # topic rows: broker settings it falls back to, and their factor

    @property
    def nullable(self) -> bool:
        return self.default is None


_OPTIONAL = whole(0, UINT32_MAX)
_RATE = long(1)
_LIMITING = [
    ConfigKey("kafka_connections_max", _OPTIONAL, None,
            "Connections open at once on a broker; over it a connection is refused at once.", REDPANDA, True),
    ConfigKey("kafka_connections_max_per_ip", _OPTIONAL, None,
            "Connections open at once from one IP address; 0 with overrides lets only the listed addresses in.",
            REDPANDA, True),
    ConfigKey("kafka_connections_max_overrides", overrides(0, UINT32_MAX), NO_OVERRIDES,
            "Own numbers for some addresses or networks instead of kafka_connections_max_per_ip, as ip:count, "
            "network/length:count or [v6]:count.", REDPANDA, True),
    ConfigKey("kafka_connection_rate_limit", _RATE, None,
            "Connections a second that each core (shard) takes from all clients; a connection waits at most "
            "100 ms for its turn, then it is refused.", REDPANDA, True),
    ConfigKey("kafka_connection_rate_limit_overrides", overrides(1, LONG_MAX), NO_OVERRIDES,
            "Own rates for some addresses instead of kafka_connection_rate_limit, as ip:rate.", REDPANDA, True),
    ConfigKey("max.connections", whole(0), INT_MAX,
            "Connections open at once on a broker, and on each listener without its own number; at it, accepting "
            "waits for a slot (KIP-402).", KAFKA, True, per_listener=True, live_low=1),
    ConfigKey("max.connections.per.ip", whole(0), INT_MAX,
            "Connections open at once from one IP address; 0 needs overrides. Over it a connection is refused.",
            KAFKA, True),
    ConfigKey("max.connections.per.ip.overrides", overrides(0, INT_MAX, ConfigType.STRING), NO_OVERRIDES,
            "Own numbers for some addresses instead of max.connections.per.ip, as ip:count.", KAFKA, True),
    ConfigKey("max.connection.creation.rate", whole(0), INT_MAX,
            "New connections a second on a broker, and on each listener without its own rate; over it accepting "
            "is delayed by at most one quota window (KIP-612).", KAFKA, True, per_listener=True, live_low=1),
    ConfigKey("turnstile.ip.rate.recheck", BOOLEAN, False,
            "Whether a connection held for its IP's connection_creation_rate is checked again after the delay and "
            "may then get in (KIP-612's text); false closes it, as the shipped broker does.", TURNSTILE, True),
    ConfigKey("turnstile.request.cost", COST, (),
            "What a request costs on top of the time it took, for request_percentage: "
            "Produce=2ms+1us/KiB,*=100us.", TURNSTILE, True),
    ConfigKey("quota.window.num", whole(1), 11, "Samples kept for client quotas and connection rates."),
    ConfigKey("quota.window.size.seconds", whole(1), 1, "Seconds a sample of a client quota or rate spans."),
    ConfigKey("controller.quota.window.num", whole(1), 11, "Samples kept for controller mutation quotas."),
    ConfigKey("controller.quota.window.size.seconds", whole(1), 1, "Seconds a sample of a mutation quota spans."),
    ConfigKey("num.io.threads", whole(1), 8,
            "Threads that request_percentage counts, with num.network.threads.", dynamic=True, resizes=True),
    ConfigKey("num.network.threads", whole(1), 3,
            "Threads that request_percentage counts, with num.io.threads.", dynamic=True, resizes=True),
    ConfigKey("connection.failed.authentication.delay.ms", whole(0), 100,
            "How long the answer to a failed authentication is held back (KIP-306)."),
    ConfigKey("connections.max.idle.ms", long(), 600_000, "A connection idle for longer is closed."),
    ConfigKey("connections.max.reauth.ms", long(), 0, "How long a SASL session lasts; 0: for ever."),
]  # fmt: skip


codecs = one_of("uncompressed", "zstd", "lz4", "snappy", "gzip", "producer")
_SERVING = [
    ConfigKey("broker.id", whole(-1), -1, "Id of this broker."),
    ConfigKey("node.id", whole(-1), -1, "Id of this broker."),
    ConfigKey("broker.rack", TEXT, None, "Rack of this broker. SHOWN."),
    ConfigKey("listeners", TEXT, None, "Listeners, as NAME://host:port."),
    ConfigKey("advertised.listeners", TEXT, None, "Where clients are told to connect, as NAME://host:port."),
    ConfigKey("listener.security.protocol.map", TEXT, None, "Security protocol of each listener."),
    ConfigKey("inter.broker.listener.name", TEXT, None,
            "The listener between brokers: exempt from the broker-wide connection limits."),
    ConfigKey("security.inter.broker.protocol", TEXT, "PLAINTEXT", "Protocol between brokers. SHOWN."),
    ConfigKey("log.dirs", TEXT, None, "Where partitions are kept."),
    ConfigKey("process.roles", TEXT, "broker,controller", "Roles of this process. SHOWN."),
    ConfigKey("socket.request.max.bytes", whole(1), 104_857_600, "A larger request closes its connection."),
    ConfigKey("socket.listen.backlog.size", whole(1), 1024,
            "Connections the kernel keeps before they are accepted (Kafka: 50, which storms overflow)."),
    ConfigKey("socket.receive.buffer.bytes", whole(-1), 102_400, "SO_RCVBUF. SHOWN."),
    ConfigKey("socket.send.buffer.bytes", whole(-1), 102_400, "SO_SNDBUF. SHOWN."),
    ConfigKey("queued.max.requests", whole(1), 500, "Requests in flight. SHOWN."),
    ConfigKey("message.max.bytes", whole(0), 1_048_588, "Largest record batch.", dynamic=True),
    ConfigKey("fetch.max.bytes", whole(1024), 57_671_680, "Most bytes in one Fetch response."),
    ConfigKey("max.incremental.fetch.session.cache.slots", whole(0), 1000, "Fetch sessions kept."),
    ConfigKey("auto.create.topics.enable", BOOLEAN, True, "Whether Metadata creates topics it doesn't know."),
    ConfigKey("delete.topic.enable", BOOLEAN, True, "Whether topics can be deleted."),
    ConfigKey("num.partitions", whole(1), 1, "Partitions of a topic created without a number."),
    ConfigKey("default.replication.factor", whole(1, SHORT_MAX), 1, "Replicas; this cluster keeps one."),
    ConfigKey("min.insync.replicas", whole(1), 1, "SHOWN: one replica is all there is.", dynamic=True),
    ConfigKey("compression.type", codecs, "producer", "SHOWN: batches stay as received.", dynamic=True),
    ConfigKey("unclean.leader.election.enable", BOOLEAN, False, "SHOWN: no leader ever changes.", dynamic=True),
    ConfigKey("log.cleanup.policy", words("compact", "delete"), ("delete",),
            "delete, compact or both; compact topics are kept, not compacted.", dynamic=True),
    ConfigKey("log.retention.bytes", long(), 268_435_456,
            "Bytes kept of a partition (Kafka: unlimited, which lets a load test fill the disk); -1: all.",
            dynamic=True),
    ConfigKey("log.retention.ms", long(1, also=(-1,)), None,
            "Milliseconds records are kept; before minutes and hours.", dynamic=True),
    ConfigKey("log.retention.minutes", whole(-1), None, "Minutes records are kept; before hours."),
    ConfigKey("log.retention.hours", whole(-1), 168, "Hours records are kept."),
    ConfigKey("log.retention.check.interval.ms", long(1), 300_000, "How often retention by time is applied."),
    ConfigKey("log.segment.bytes", whole(1_048_576), 67_108_864,
            "Size of a log file (Kafka: 1 GiB, which retention by 256 MiB could never delete).", dynamic=True),
    ConfigKey("log.segment.delete.delay.ms", long(0), 60_000, "SHOWN.", dynamic=True),
    ConfigKey("log.roll.ms", long(1), None, "SHOWN.", dynamic=True),
    ConfigKey("log.roll.hours", whole(1), 168, "SHOWN."),
    ConfigKey("log.roll.jitter.ms", long(0), None, "SHOWN.", dynamic=True),
    ConfigKey("log.index.interval.bytes", whole(0), 4096, "Bytes between two index entries.", dynamic=True),
    ConfigKey("log.index.size.max.bytes", whole(4), 10_485_760, "SHOWN.", dynamic=True),
    ConfigKey("log.flush.interval.messages", long(1), LONG_MAX, "SHOWN: nothing is flushed.", dynamic=True),
    ConfigKey("log.flush.interval.ms", long(0), None, "SHOWN: nothing is flushed.", dynamic=True),
    ConfigKey("log.message.timestamp.type", one_of("CreateTime", "LogAppendTime"), "CreateTime",
            "Whose time a record carries.", dynamic=True),
    ConfigKey("log.message.timestamp.before.max.ms", long(0), LONG_MAX, "SHOWN.", dynamic=True),
    ConfigKey("log.message.timestamp.after.max.ms", long(0), 3_600_000, "SHOWN.", dynamic=True),
    ConfigKey("log.preallocate", BOOLEAN, False, "SHOWN.", dynamic=True),
    ConfigKey("log.cleaner.enable", BOOLEAN, True, "SHOWN."),
    ConfigKey("log.cleaner.threads", whole(0), 1, "SHOWN.", dynamic=True, resizes=True),
    ConfigKey("log.cleaner.delete.retention.ms", long(0), 86_400_000, "SHOWN.", dynamic=True),
    ConfigKey("log.cleaner.min.compaction.lag.ms", long(0), 0, "SHOWN.", dynamic=True),
    ConfigKey("log.cleaner.max.compaction.lag.ms", long(1), LONG_MAX, "SHOWN.", dynamic=True),
    ConfigKey("log.cleaner.min.cleanable.ratio", number(0, 1), 0.5, "SHOWN.", dynamic=True),
    ConfigKey("background.threads", whole(1), 10, "SHOWN.", dynamic=True, resizes=True),
    ConfigKey("num.replica.fetchers", whole(1), 1, "SHOWN.", dynamic=True, resizes=True),
    ConfigKey("num.recovery.threads.per.data.dir", whole(1), 2, "SHOWN.", dynamic=True, resizes=True),
    ConfigKey("metric.reporters", words(), (), "SHOWN: metrics are at /metrics.", dynamic=True),
    ConfigKey("request.timeout.ms", whole(), 30_000, "SHOWN."),
]  # fmt: skip


_COORDINATING = [
    ConfigKey("group.initial.rebalance.delay.ms", whole(), 0,
            "How long the first join of an empty group waits for more members (as Kafka's server.properties "
            "sets it; its built-in 3000 suits large groups)."),
    ConfigKey("group.min.session.timeout.ms", whole(), 3000,
            "Least session timeout (Kafka: 6000; kafka-python's tests ask for 3 s)."),
    ConfigKey("group.max.session.timeout.ms", whole(), 1_800_000, "Largest session timeout."),
    ConfigKey("group.max.size", whole(1), INT_MAX, "Members a group may have."),
    ConfigKey("group.coordinator.rebalance.protocols", words("consumer", "classic", "share", "streams"),
            ("classic", "consumer"), "Group protocols that are served."),
    ConfigKey("group.consumer.session.timeout.ms", whole(1), 45_000, "Session timeout of a KIP-848 member."),
    ConfigKey("group.consumer.min.session.timeout.ms", whole(1), 45_000, "Its least value."),
    ConfigKey("group.consumer.max.session.timeout.ms", whole(1), 60_000, "Its largest value."),
    ConfigKey("group.consumer.heartbeat.interval.ms", whole(1), 5000, "Heartbeat interval of a KIP-848 member."),
    ConfigKey("group.consumer.min.heartbeat.interval.ms", whole(1), 5000, "Its least value."),
    ConfigKey("group.consumer.max.heartbeat.interval.ms", whole(1), 15_000, "Its largest value."),
    ConfigKey("group.consumer.max.size", whole(1), INT_MAX, "Members a KIP-848 group may have."),
    ConfigKey("group.consumer.assignors", words(), ("uniform", "range"), "Server-side assignors."),
    ConfigKey("offset.metadata.max.bytes", whole(), 4096, "Largest metadata of a committed offset."),
    ConfigKey("offsets.retention.minutes", whole(1), 10_080, "How long offsets of an empty group are kept."),
    ConfigKey("offsets.topic.num.partitions", whole(1), 50, "SHOWN."),
    ConfigKey("offsets.topic.replication.factor", whole(1, SHORT_MAX), 1, "SHOWN."),
    ConfigKey("transaction.max.timeout.ms", whole(1), 900_000, "Largest transaction timeout."),
    ConfigKey("transactional.id.expiration.ms", whole(1), 604_800_000, "How long an unused id is kept."),
    ConfigKey("transaction.state.log.num.partitions", whole(1), 50, "SHOWN."),
    ConfigKey("transaction.state.log.replication.factor", whole(1, SHORT_MAX), 1, "SHOWN."),
    ConfigKey("transaction.state.log.min.isr", whole(1), 1, "SHOWN."),
    ConfigKey("transaction.partition.verification.enable", BOOLEAN, True, "SHOWN.", dynamic=True),
    ConfigKey("producer.id.expiration.ms", whole(1), 86_400_000,
            "How long the state of an idle producer is kept.", dynamic=True),
    ConfigKey("sasl.enabled.mechanisms", words(), ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"),
            "SASL mechanisms of listeners that ask for them."),
    ConfigKey("sasl.mechanism.inter.broker.protocol", TEXT, "GSSAPI", "SHOWN."),
    ConfigKey("authorizer.class.name", TEXT, "", "SHOWN: there is none, everything is allowed."),
]  # fmt: skip


_HOUR_MS = 3_600_000
_TOPIC_ROWS: list[tuple[str, ValueType, Value, str, tuple[tuple[str, int], ...]]] = [
    ("cleanup.policy", words("compact", "delete"), ("delete",), "", (("log.cleanup.policy", 1),)),
    ("compression.gzip.level", whole(1, 9, also=(-1,)), -1, "", ()),
    ("compression.lz4.level", whole(1, 17), 9, "", ()),
    ("compression.type", one_of("uncompressed", "zstd", "lz4", "snappy", "gzip", "producer"), "producer", "",
     (("compression.type", 1),)),
    ("compression.zstd.level", whole(-131_072, 22), 3, "", ()),
    ("delete.retention.ms", long(0), 86_400_000, "", (("log.cleaner.delete.retention.ms", 1),)),
    ("file.delete.delay.ms", long(0), 60_000, "", (("log.segment.delete.delay.ms", 1),)),
    ("flush.messages", long(1), LONG_MAX, "", (("log.flush.interval.messages", 1),)),
    ("flush.ms", long(0), LONG_MAX, "", (("log.flush.interval.ms", 1),)),
    ("follower.replication.throttled.replicas", words(), (), "", ()),
    ("index.interval.bytes", whole(0), 4096, "Bytes between two index entries.",
     (("log.index.interval.bytes", 1),)),
    ("leader.replication.throttled.replicas", words(), (), "", ()),
    ("local.retention.bytes", long(-2), -2, "", ()),
    ("local.retention.ms", long(-2), -2, "", ()),
    ("max.compaction.lag.ms", long(1), LONG_MAX, "", (("log.cleaner.max.compaction.lag.ms", 1),)),
    ("max.message.bytes", whole(0), 1_048_588, "Largest record batch.", (("message.max.bytes", 1),)),
    ("message.timestamp.after.max.ms", long(0), _HOUR_MS, "", (("log.message.timestamp.after.max.ms", 1),)),
    ("message.timestamp.before.max.ms", long(0), LONG_MAX, "", (("log.message.timestamp.before.max.ms", 1),)),
    ("message.timestamp.type", one_of("CreateTime", "LogAppendTime"), "CreateTime",
     "Whose time a record carries.", (("log.message.timestamp.type", 1),)),
    ("min.cleanable.dirty.ratio", number(0, 1), 0.5, "", (("log.cleaner.min.cleanable.ratio", 1),)),
    ("min.compaction.lag.ms", long(0), 0, "", (("log.cleaner.min.compaction.lag.ms", 1),)),
    ("min.insync.replicas", whole(1), 1, "", (("min.insync.replicas", 1),)),
    ("preallocate", BOOLEAN, False, "", (("log.preallocate", 1),)),
    ("remote.log.copy.disable", BOOLEAN, False, "", ()),
    ("remote.log.delete.on.disable", BOOLEAN, False, "", ()),
    ("remote.storage.enable", BOOLEAN, False, "", ()),
    ("retention.bytes", long(), -1, "Bytes kept of each partition; -1: all.", (("log.retention.bytes", 1),)),
    ("retention.ms", long(-1), 168 * _HOUR_MS, "Milliseconds records are kept; -1: for ever.",
     (("log.retention.ms", 1), ("log.retention.minutes", 60_000), ("log.retention.hours", _HOUR_MS))),
    ("segment.bytes", whole(1_048_576), 1_073_741_824, "Size of a log file.", (("log.segment.bytes", 1),)),
    ("segment.index.bytes", whole(4), 10_485_760, "", (("log.index.size.max.bytes", 1),)),
    ("segment.jitter.ms", long(0), 0, "", (("log.roll.jitter.ms", 1),)),
    ("segment.ms", long(1), 168 * _HOUR_MS, "", (("log.roll.ms", 1), ("log.roll.hours", _HOUR_MS))),
    ("unclean.leader.election.enable", BOOLEAN, False, "", (("unclean.leader.election.enable", 1),)),
]  # fmt: skip

BROKER: dict[str, ConfigKey] = {s.name: s for s in [*_LIMITING, *_SERVING, *_COORDINATING]}
TOPIC: dict[str, ConfigKey] = {
    name: ConfigKey(name, kind, default, doc or "SHOWN.", dynamic=True, broker_names=names)
    for name, kind, default, doc, names in _TOPIC_ROWS
}
LIMITS: tuple[str, ...] = tuple(s.name for s in _LIMITING[:11])  # the settings that limit clients, for displays


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


def _unknown(name: str, table: dict[str, ConfigKey]) -> ConfigInvalid:
    near = difflib.get_close_matches(name, table, n=1, cutoff=0.7)
    near = near or difflib.get_close_matches(name.replace("_", ".").lower(), table, n=1, cutoff=0.7)
    return ConfigInvalid(name, None, f"is not a setting; did you mean {near[0]}?" if near else "is not a setting")


def parse(setting: ConfigKey, name: str, text: str) -> Value:
    """The value of `name` (a row's own name or a prefixed one) from its text. Raises ConfigInvalid."""
    try:
        return setting.kind.parse(text)
    except ValueError as error:
        raise ConfigInvalid(name, text, str(error)) from None
