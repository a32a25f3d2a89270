"""The answers of Redpanda's calls as types, in the JSON of the Connect protocol: brokers, and the members of KafkaConnection that
are emulated."""

from __future__ import annotations

from typing import Annotated, NotRequired, TypedDict


class ListConnectionsBody(TypedDict):
    """The connections that are asked for, and their order."""

    pageSize: NotRequired[Annotated[int, "The most connections to return; 0, or more than 1000: 1000."]]
    filter: NotRequired[
        Annotated[str, 'Conditions joined by AND, such as `client_id = "app" AND idle_duration > 30s`.']
    ]
    orderBy: NotRequired[Annotated[str, "Fields, each with asc or desc, such as `idle_duration desc, source.port`."]]


class AuthenticationInfo(TypedDict):
    """The proof of its identity that a client has given, if any."""

    state: str
    userPrincipal: str


class TlsInfo(TypedDict):
    """The TLS state of a connection."""

    enabled: bool


class ConnectionSource(TypedDict):
    """The address and port that a connection comes from; those that a trusted proxy announced, if one did."""

    ipAddress: str
    port: int


class InFlightRequests(TypedDict):
    """Requests under way. Their APIs are not kept."""

    sampledInFlightRequests: list[str]
    hasMoreRequests: Annotated[bool, "True: a request is under way."]


class RequestStatistics(TypedDict):
    """The counts of a connection since it was opened."""

    requestCount: Annotated[str, "A whole number."]


class ListedConnection(TypedDict):
    """An open connection. The other members of Redpanda's KafkaConnection are not kept."""

    nodeId: int
    shardId: int
    uid: Annotated[
        str, "Incarnation of the shard, broker, shard, and the connection's number in the journal, as a UUID."
    ]
    state: str
    openTime: str
    authenticationInfo: AuthenticationInfo
    listenerName: str
    tlsInfo: TlsInfo
    source: ConnectionSource
    clientId: Annotated[str, "The client id; empty: the client has not sent one yet."]
    clientSoftwareName: str
    clientSoftwareVersion: str
    idleDuration: Annotated[str, "Since its last request was read; 0s while one is under way."]
    inFlightRequests: InFlightRequests
    totalRequestStatistics: RequestStatistics


class ListedConnections(TypedDict):
    """The connections that match."""

    connections: list[ListedConnection]
    totalSize: Annotated[str, "The number of matches, a whole number; `connections` may have fewer."]


class BuildInfo(TypedDict):
    """The release of Redpanda whose calls a broker answers here."""

    version: str
    buildSha: str


class RedpandaBroker(TypedDict):
    """A broker."""

    nodeId: int
    buildInfo: BuildInfo


class ListBrokersBody(TypedDict):
    """Nothing is asked."""


class ListedBrokers(TypedDict):
    """Every broker."""

    brokers: list[RedpandaBroker]


class GetBrokerBody(TypedDict):
    """The broker that is asked for."""

    nodeId: NotRequired[int]


class OneBroker(TypedDict):
    """A broker."""

    broker: RedpandaBroker
