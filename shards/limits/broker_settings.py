"""The broker's settings, row by row. Data; config_def.py looks them up.

Names, types, ranges and defaults of the Kafka rows are those of Kafka 4.1's own ConfigDefs (SocketServerConfigs,
QuotaConfig, ServerConfigs, GroupCoordinatorConfig, ...); where a default differs, the row's documentation says why. Those of
the Redpanda rows are those of Redpanda's config/configuration.h: caps are unsigned 32 bit numbers, rates are 64 bit
numbers of at least 1. A row made by `shown` is not emulated: it is there because tools look for it.
"""

from shards.limits.config_key import KAFKA, REDPANDA, TURNSTILE, ConfigKey, shown, told
from shards.limits.config_types import BOOLEAN, COST, TEXT, ConfigType, long, number, one_of, overrides, whole, words
from shards.limits.overrides import NO_OVERRIDES
from shards.limits.ranges import INT_MAX, LONG_MAX, SHORT_MAX, UINT32_MAX

_OPTIONAL = whole(0, UINT32_MAX)
_RATE = long(1)
LIMITING = [
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
            "waits for a slot (KIP-402).", KAFKA, True, per_listener=True),
    ConfigKey("max.connections.per.ip", whole(0), INT_MAX,
            "Connections open at once from one IP address; 0 needs overrides. Over it a connection is refused.",
            KAFKA, True),
    ConfigKey("max.connections.per.ip.overrides", overrides(0, INT_MAX, ConfigType.STRING), NO_OVERRIDES,
            "Own numbers for some addresses instead of max.connections.per.ip, as ip:count.", KAFKA, True),
    ConfigKey("max.connection.creation.rate", whole(0), INT_MAX,
            "New connections a second on a broker, and on each listener without its own rate; over it accepting "
            "is delayed by at most one quota window (KIP-612).", KAFKA, True, per_listener=True),
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
    shown("num.io.threads", whole(1), 8,
            "Threads that handle requests; request_percentage is per cent of one thread's time.", dynamic=True, resizes=True),
    shown("num.network.threads", whole(1), 3,
            "Threads that read requests and write responses.", dynamic=True, resizes=True),
    ConfigKey("connection.failed.authentication.delay.ms", whole(0), 100,
            "How long the answer to a failed authentication is held back (KIP-306)."),
    ConfigKey("connections.max.idle.ms", long(), 600_000, "A connection idle for longer is closed."),
    ConfigKey("connections.max.reauth.ms", long(), 0,
            "How long a SASL session lasts before the client has to prove again who it is (KIP-368); 0: for ever."),
]  # fmt: skip


CODECS = one_of("uncompressed", "zstd", "lz4", "snappy", "gzip", "producer")
SERVING = [
    ConfigKey("turnstile.shard.timeout.ms", whole(100), 5000,
            "A shard process that does not answer the coordinator for so long is ended and started again; while it "
            "starts or applies a change, only time in which it gets nowhere counts.", TURNSTILE, True),
    ConfigKey("turnstile.observe", BOOLEAN, False,
            "Whether every request, and what arrives on a muted connection, is in the journal: for turnstile verdict.",
            TURNSTILE, True),
    told("broker.id", whole(-1), -1, "Id of this broker."),
    told("node.id", whole(-1), -1, "Id of this broker."),
    shown("broker.rack", TEXT, None, "Rack of this broker."),
    told("listeners", TEXT, None, "Listeners, as NAME://host:port."),
    ConfigKey("advertised.listeners", TEXT, None, "Where clients are told to connect, as NAME://host:port."),
    told("listener.security.protocol.map", TEXT, None, "Security protocol of each listener."),
    ConfigKey("inter.broker.listener.name", TEXT, None,
            "The listener between brokers: exempt from the broker-wide connection limits."),
    shown("security.inter.broker.protocol", TEXT, "PLAINTEXT", "Protocol between brokers."),
    shown("log.dirs", TEXT, None, "Where partitions are kept."),
    shown("process.roles", TEXT, "broker,controller", "Roles of this process."),
    ConfigKey("socket.request.max.bytes", whole(1), 104_857_600, "A larger request closes its connection."),
    ConfigKey("turnstile.request.max.items", whole(1000), 20_000,
            "A request with more array items in all (topics, partitions, groups, ...) closes its connection.", TURNSTILE),
    ConfigKey("socket.listen.backlog.size", whole(1), 4096,
            "Connections the kernel keeps for each shard before they are accepted (Kafka: 50, which storms overflow); "
            "the kernel's net.core.somaxconn bounds it."),
    shown("socket.receive.buffer.bytes", whole(-1), 102_400, "SO_RCVBUF."),
    shown("socket.send.buffer.bytes", whole(-1), 102_400, "SO_SNDBUF."),
    ConfigKey("queued.max.request.bytes", long(-1), 64 << 20,
            "Memory that unfinished requests of all connections of a shard may take; over it connections are not read "
            "(Kafka: -1, no limit)."),
    ConfigKey("turnstile.queued.max.response.bytes", long(-1), 64 << 20,
            "Answers of a shard that wait for their clients to read them; over it a Fetch is answered with one batch. "
            "-1: no limit.", TURNSTILE),
    shown("queued.max.requests", whole(1), 500, "Requests in flight."),
    ConfigKey("message.max.bytes", whole(0), 1_048_588, "Largest record batch.", dynamic=True),
    ConfigKey("fetch.max.bytes", whole(1024), 57_671_680, "Most bytes in one Fetch response."),
    ConfigKey("max.incremental.fetch.session.cache.slots", whole(0), 1000,
            "Fetch sessions of a broker, divided among its shards (KIP-227)."),
    ConfigKey("auto.create.topics.enable", BOOLEAN, True, "Whether Metadata creates topics it doesn't know."),
    ConfigKey("delete.topic.enable", BOOLEAN, True, "Whether topics can be deleted."),
    ConfigKey("num.partitions", whole(1), 1, "Partitions of a topic created without a number."),
    shown("default.replication.factor", whole(1), 1, "Replicas; this cluster keeps one."),
    shown("min.insync.replicas", whole(1), 1, "One replica is all there is.", dynamic=True),
    shown("compression.type", CODECS, "producer", "Batches stay as received.", dynamic=True),
    shown("unclean.leader.election.enable", BOOLEAN, False, "No leader ever changes.", dynamic=True),
    ConfigKey("log.cleanup.policy", words("compact", "delete"), ("delete",),
            "delete, compact or both; compact topics are kept, not compacted.", dynamic=True),
    ConfigKey("storage_min_free_bytes", long(0), None,
            "While the volume of the data has less free, Produce is answered with KAFKA_STORAGE_ERROR. Unset: 1 GiB, or a "
            "twentieth of a volume of less than 20 GiB (Redpanda: 5 GiB); 0: until a write fails, as Kafka.", REDPANDA, True),
    ConfigKey("log.retention.bytes", long(), -1, "Bytes kept of a partition; -1: all.", dynamic=True),
    ConfigKey("log.retention.ms", long(1, also=(-1,)), None,
            "Milliseconds records are kept; before minutes and hours.", dynamic=True),
    ConfigKey("log.retention.minutes", whole(-1), None, "Minutes records are kept; before hours."),
    ConfigKey("log.retention.hours", whole(-1), 168, "Hours records are kept."),
    ConfigKey("log.retention.check.interval.ms", long(1), 300_000, "How often retention by time is applied."),
    ConfigKey("log.segment.bytes", whole(1_048_576), 67_108_864,
            "Size of a log file (Kafka: 1 GiB, which a shard that starts again would have to read whole).", dynamic=True),
    shown("log.segment.delete.delay.ms", long(0), 60_000, "", dynamic=True),
    shown("log.roll.ms", long(1), None, "", dynamic=True),
    shown("log.roll.hours", whole(1), 168, ""),
    shown("log.roll.jitter.ms", long(0), None, "", dynamic=True),
    shown("log.index.interval.bytes", whole(0), 4096, "Bytes between two index entries.", dynamic=True),
    shown("log.index.size.max.bytes", whole(4), 10_485_760, "", dynamic=True),
    shown("log.flush.interval.messages", long(1), LONG_MAX, "Nothing is flushed.", dynamic=True),
    shown("log.flush.interval.ms", long(0), None, "Nothing is flushed.", dynamic=True),
    ConfigKey("log.message.timestamp.type", one_of("CreateTime", "LogAppendTime"), "CreateTime",
            "Time of a record: its producer's or the broker's.", dynamic=True),
    ConfigKey("log.message.timestamp.before.max.ms", long(0), LONG_MAX,
            "How long ago a record's timestamp may be.", dynamic=True),
    ConfigKey("log.message.timestamp.after.max.ms", long(0), 3_600_000,
            "How far ahead of the broker's time a record's timestamp may be.", dynamic=True),
    shown("log.preallocate", BOOLEAN, False, "", dynamic=True),
    shown("log.cleaner.enable", BOOLEAN, True, ""),
    shown("log.cleaner.threads", whole(0), 1, "", dynamic=True, resizes=True),
    shown("log.cleaner.delete.retention.ms", long(0), 86_400_000, "", dynamic=True),
    shown("log.cleaner.min.compaction.lag.ms", long(0), 0, "", dynamic=True),
    shown("log.cleaner.max.compaction.lag.ms", long(1), LONG_MAX, "", dynamic=True),
    shown("log.cleaner.min.cleanable.ratio", number(0, 1), 0.5, "", dynamic=True),
    shown("background.threads", whole(1), 10, "", dynamic=True, resizes=True),
    shown("num.replica.fetchers", whole(1), 1, "", dynamic=True, resizes=True),
    shown("num.recovery.threads.per.data.dir", whole(1), 2, "", dynamic=True, resizes=True),
    shown("metric.reporters", words(), (), "Metrics are at /metrics.", dynamic=True),
    shown("request.timeout.ms", whole(), 30_000, ""),
]  # fmt: skip


COORDINATING = [
    ConfigKey("group.initial.rebalance.delay.ms", whole(), 0,
            "How long the first join of an empty group waits for more members (as Kafka's server.properties "
            "sets it; its built-in 3000 suits large groups)."),
    ConfigKey("group.min.session.timeout.ms", whole(), 3000,
            "Least session timeout (Kafka: 6000; kafka-python's tests ask for 3 s)."),
    ConfigKey("group.max.session.timeout.ms", whole(), 1_800_000, "Largest session timeout."),
    ConfigKey("group.max.size", whole(1), INT_MAX, "Members a group may have."),
    shown("group.coordinator.rebalance.protocols", words("consumer", "classic", "share", "streams"),
            ("classic",), "Group protocols that are served: classic alone."),
    shown("group.consumer.session.timeout.ms", whole(1), 45_000, "Session timeout of a KIP-848 member."),
    shown("group.consumer.min.session.timeout.ms", whole(1), 45_000, "Its least value."),
    shown("group.consumer.max.session.timeout.ms", whole(1), 60_000, "Its largest value."),
    shown("group.consumer.heartbeat.interval.ms", whole(1), 5000, "Heartbeat interval of a KIP-848 member."),
    shown("group.consumer.min.heartbeat.interval.ms", whole(1), 5000, "Its least value."),
    shown("group.consumer.max.heartbeat.interval.ms", whole(1), 15_000, "Its largest value."),
    shown("group.consumer.max.size", whole(1), INT_MAX, "Members a KIP-848 group may have."),
    shown("group.consumer.assignors", words(), ("uniform", "range"), "Server-side assignors."),
    ConfigKey("offset.metadata.max.bytes", whole(), 4096, "Largest metadata of a committed offset."),
    ConfigKey("offsets.retention.minutes", whole(1), 10_080, "How long offsets of an empty group are kept."),
    shown("offsets.topic.num.partitions", whole(1), 50, ""),
    shown("offsets.topic.replication.factor", whole(1, SHORT_MAX), 1, ""),
    shown("transaction.max.timeout.ms", whole(1), 900_000, "Largest transaction timeout."),
    shown("transactional.id.expiration.ms", whole(1), 604_800_000, "How long an unused id is kept."),
    shown("transaction.state.log.num.partitions", whole(1), 50, ""),
    shown("transaction.state.log.replication.factor", whole(1, SHORT_MAX), 1, ""),
    shown("transaction.state.log.min.isr", whole(1), 1, ""),
    shown("transaction.partition.verification.enable", BOOLEAN, True, "", dynamic=True),
    shown("producer.id.expiration.ms", whole(1), 86_400_000,
            "How long the state of an idle producer is kept.", dynamic=True),
    ConfigKey("sasl.enabled.mechanisms", words(), ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"),
            "SASL mechanisms of listeners that ask for them."),
    shown("sasl.mechanism.inter.broker.protocol", TEXT, "GSSAPI", ""),
    ConfigKey("authorizer.class.name", one_of("", "org.apache.kafka.metadata.authorizer.StandardAuthorizer"), "",
            "StandardAuthorizer: clients may do what ACLs allow; none: everything."),
    ConfigKey("super.users", TEXT, "", "Principals that may do everything, as User:alice;User:bob."),
    ConfigKey("allow.everyone.if.no.acl.found", BOOLEAN, False,
            "Whether everyone may use a resource that no ACL names."),
    ConfigKey("turnstile.max.acls", whole(0), 10_000, "ACLs that there may be.", TURNSTILE),
]  # fmt: skip
