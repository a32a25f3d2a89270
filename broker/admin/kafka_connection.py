"""The messages of Redpanda's ListKafkaConnections, and of the two calls by which rpk learns whether a broker has it.

Source: redpanda proto/redpanda/core/admin/v2/kafka_connections.proto, cluster.proto and broker.proto (Apache License 2.0): names
and numbers of fields and enums.
"""

from __future__ import annotations

from typing import Final

from broker.admin.connect_messages import Scalar, message, numbered

INT, BIG, TEXT, BOOL, TIME, DURATION = Scalar.INT, Scalar.BIG, Scalar.TEXT, Scalar.BOOL, Scalar.TIME, Scalar.DURATION
_STATE = numbered(*(f"KAFKA_CONNECTION_STATE_{each}" for each in ("UNSPECIFIED", "OPEN", "ABORTING", "CLOSED")))
_PROVEN = numbered(
    *(f"AUTHENTICATION_STATE_{each}" for each in ("UNSPECIFIED", "UNAUTHENTICATED", "SUCCESS", "FAILURE"))
)
_MECHANISMS = ("UNSPECIFIED", "MTLS", "SASL_SCRAM", "SASL_OAUTHBEARER", "SASL_PLAIN", "SASL_GSSAPI")
_MECHANISM = numbered(*(f"AUTHENTICATION_MECHANISM_{each}" for each in _MECHANISMS))
_STATISTICS = message(
    ("produce_bytes", BIG), ("fetch_bytes", BIG), ("request_count", BIG), ("produce_batch_count", BIG)
)
_REQUEST = message(("api_key", INT), ("in_flight_duration", DURATION))
KAFKA_CONNECTION: Final = message(
    ("node_id", INT),
    ("shard_id", INT),
    ("uid", TEXT),
    ("state", _STATE),
    ("open_time", TIME),
    ("close_time", TIME),
    ("authentication_info", message(("state", _PROVEN), ("mechanism", _MECHANISM), ("user_principal", TEXT))),
    ("listener_name", TEXT),
    ("tls_info", message(("enabled", BOOL))),
    ("source", message(("ip_address", TEXT), ("port", INT))),
    ("client_id", TEXT),
    ("client_software_name", TEXT),
    ("client_software_version", TEXT),
    ("transactional_id", TEXT),
    ("group_id", TEXT),
    ("group_instance_id", TEXT),
    ("group_member_id", TEXT),
    ("api_versions", message(("key", INT), ("value", INT)), True),
    ("idle_duration", DURATION),
    ("in_flight_requests", message(("sampled_in_flight_requests", _REQUEST, True), ("has_more_requests", BOOL))),
    ("total_request_statistics", _STATISTICS),
    ("recent_request_statistics", _STATISTICS),
)
LIST_REQUEST: Final = message(("page_size", INT), ("filter", TEXT), ("order_by", TEXT))
LIST_RESPONSE: Final = message(("connections", KAFKA_CONNECTION, True), ("total_size", BIG))

_BROKER = message(("node_id", INT), ("build_info", message(("version", TEXT), ("build_sha", TEXT))))
BROKERS_RESPONSE: Final = message(("brokers", _BROKER, True))
BROKER_REQUEST: Final = message(("node_id", INT))
BROKER_RESPONSE: Final = message(("broker", _BROKER))
