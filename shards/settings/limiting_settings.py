"""The broker's settings that limit connections and the throughput of all clients, row by row. Data; config_def.py looks them up.

Sources: as broker_settings.py. Rows of TURNSTILE are its own: neither Kafka nor Redpanda has them.
"""

from shards.settings.api_keys import API_KEYS
from shards.settings.config_key import KAFKA, REDPANDA, TURNSTILE, ConfigKey
from shards.settings.config_types import (
    BOOLEAN,
    COST,
    THROUGHPUT_GROUPS,
    ConfigType,
    long,
    overrides,
    user_overrides,
    whole,
    words,
)
from shards.settings.overrides import NO_OVERRIDES
from shards.settings.ranges import INT_MAX, LONG_MAX, UINT32_MAX
from shards.settings.user_overrides import NO_USER_OVERRIDES

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
            "network/length:count, [v6]:count or host:count.", REDPANDA, True),
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
            "Own numbers for some addresses instead of max.connections.per.ip, as ip:count or host:count.", KAFKA, True),
    ConfigKey("max.connection.creation.rate", whole(0), INT_MAX,
            "New connections a second on a broker, and on each listener without its own rate; over it accepting "
            "is delayed by at most one quota window (KIP-612).", KAFKA, True, per_listener=True),
    ConfigKey("turnstile.cluster.max.connections", _OPTIONAL, None,
            "Connections open at once in the whole cluster, over all listeners of all brokers; neither Kafka nor Redpanda has it. "
            "Over it a connection is refused at once, by whichever broker it came to. It can't be set for one broker.",
            TURNSTILE, True, of_cluster=True),
    ConfigKey("turnstile.cluster.max.connection.creation.rate", whole(1), None,
            "New connections a second in the whole cluster, over all listeners of all brokers, by Kafka's windows; neither Kafka "
            "nor Redpanda has it. Over it a connection is refused at once, by whichever broker it came to. It can't be set for one "
            "broker.", TURNSTILE, True, of_cluster=True),
    ConfigKey("turnstile.max.ssl.connections", _OPTIONAL, None,
            "Connections open at once on a broker, over all its listeners with TLS together; neither Kafka nor Redpanda has it "
            "(KIP-1015 proposes max.ssl.connections). Over it a connection is refused at once, before its handshake; listeners "
            "without TLS are not counted.", TURNSTILE, True),
    ConfigKey("turnstile.max.connections.per.user", _OPTIONAL, None,
            "Connections of one user open at once on a broker, from all addresses; neither Kafka nor Redpanda has it. Beyond it a "
            "login is answered as MSK answers, SASL_AUTHENTICATION_FAILED with Too many connects. Clients that do not log in are "
            "not counted.", TURNSTILE, True),
    ConfigKey("turnstile.max.connections.per.user.overrides", user_overrides(0, UINT32_MAX), NO_USER_OVERRIDES,
            "Own numbers for some users instead of turnstile.max.connections.per.user, as user:count.", TURNSTILE, True),
    ConfigKey("turnstile.max.connection.creation.rate.per.user", whole(1), None,
            "New connections a second of one user on a broker, from all addresses, by Kafka's windows; neither Kafka nor Redpanda "
            "has it. Beyond it a login is answered as beyond turnstile.max.connections.per.user. Clients that do not log in are "
            "not counted.", TURNSTILE, True),
    ConfigKey("turnstile.max.connection.creation.rate.per.user.overrides", user_overrides(1, INT_MAX), NO_USER_OVERRIDES,
            "Own numbers for some users instead of turnstile.max.connection.creation.rate.per.user, as user:rate.",
            TURNSTILE, True),
    ConfigKey("turnstile.core.rate.exact", BOOLEAN, False,
            "Whether exactly so many connections a second pass as kafka_connection_rate_limit and its overrides say; false: a "
            "token a whole number of milliseconds, as Redpanda, so that 300 let 333 pass and 501 let 1,000.", TURNSTILE, True),
    ConfigKey("turnstile.ipv6.prefix.length", whole(1, 128), 128,
            "IPv6 clients of one network of so many bits count as one address, the first of the network: in caps and rates of "
            "addresses, overrides, journal and displays; 64 is what a household or a host is given. ACLs and what clients are told "
            "have the client's own. 128: each address counts by itself, as for Kafka and Redpanda.", TURNSTILE),
    ConfigKey("turnstile.ip.rate.recheck", BOOLEAN, False,
            "Whether a connection held for its IP's connection_creation_rate is checked again after the delay and "
            "may then get in (KIP-612's text); false closes it, as the shipped broker does.", TURNSTILE, True),
    ConfigKey("turnstile.request.cost", COST, (),
            "What a request costs on top of the time it took, for request_percentage, and for how long it keeps a request "
            "handler busy while turnstile.request.queue is true: Produce=2ms+1us/KiB,*=100us.", TURNSTILE, True),
]  # fmt: skip
"""The settings that limit clients, in the order in which displays show them."""
THROUGHPUT = [
    ConfigKey("kafka_throughput_limit_node_in_bps", _RATE, None,
            "Bytes a second that a broker takes from all clients together, in requests of kafka_throughput_controlled_api_keys; "
            "beyond it a client is told a throttle time, and its next such request is held until that is over.", REDPANDA, True),
    ConfigKey("kafka_throughput_limit_node_out_bps", _RATE, None,
            "Bytes a second that a broker sends to all clients together, in answers to such requests; beyond it as "
            "kafka_throughput_limit_node_in_bps.", REDPANDA, True),
    ConfigKey("kafka_throughput_controlled_api_keys", words(*API_KEYS), ("produce", "fetch"),
            "APIs whose requests and answers count for both limits, and are held (Redpanda ignores names that it does not know).",
            REDPANDA, True),
    ConfigKey("kafka_throughput_control", THROUGHPUT_GROUPS, (),
            "Groups of clients that are exempt from both limits, as JSON: name, and client_id, a regular expression (RE2) of the "
            "whole client id, or +empty for clients without one; without client_id all clients.", REDPANDA, True),
    ConfigKey("max_kafka_throttle_delay_ms", long(0), 30_000, "No delay of both limits is longer.", REDPANDA, True),
]  # fmt: skip
"""The settings of the throughput of a broker as a whole; Kafka has none."""
