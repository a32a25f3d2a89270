"""The answer of `/v1/utilisation`, the use of each limit, as types, as in answers.py."""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias, TypedDict

UnixSeconds: TypeAlias = Annotated[float, "Unix seconds."]
UsedLevel: TypeAlias = Annotated[
    Literal["roomy", "high", "near", "full"], "Below 80 % of the limit, from 80 %, from 90 %, from 100 % on."
]
LimitOf: TypeAlias = Literal["cluster", "broker", "ip", "user", "client"]


OfBroker: TypeAlias = Annotated[int | None, "null: the limit is one of the whole cluster."]


class Utilisation(TypedDict):
    """The use of a limit on one broker, or of one of the whole cluster."""

    broker: OfBroker
    what: Annotated[
        str, "connections: open ones; new_connections: a second, over the quota window; or a client quota's key."
    ]
    of: Annotated[str, "broker, broker:all, listener:NAME, ssl, ip:ADDRESS, user:NAME, cluster, or client."]
    user: Annotated[
        str | None, "The user; empty: the quota does not tell users apart; null: the limit is not of a client."
    ]
    client_id: Annotated[
        str | None,
        "The client id; empty: the quota does not tell client ids apart; null: the limit is not of a client.",
    ]
    used: Annotated[float, "Connections, or in the quota's unit: bytes a second, percent, mutations a second."]
    limit: float
    percent: Annotated[float | None, "null: the limit is 0, and something is used."]
    level: UsedLevel
    by: Annotated[str, "The setting or quota that gives the limit."]


class CloseRow(TypedDict):
    """The number of limits of a kind that are close to being reached on one broker. One that is full is near and high, too."""

    broker: OfBroker
    what: Annotated[str, "connections, new_connections, or a client quota's key."]
    of: Annotated[
        LimitOf,
        "cluster: of all brokers together; broker: of the broker and its listeners; ip: of addresses; user: of users' "
        "connections; client: of clients.",
    ]
    high: Annotated[int, "From 80 % on."]
    near: Annotated[int, "From 90 % on."]
    full: Annotated[int, "From 100 % on."]
    limits: Annotated[int, "The number of limits of this kind that were in use."]


class UtilisationAnswer(TypedDict):
    """The use of each limit, the closest to being reached first. Each figure is of the moment at which its shards answered
    this request. Where a shard is home to more than 2,000 pools or 500 metered clients, the choice of the closest, and
    `close`, may be ten seconds old."""

    at: UnixSeconds
    limits: Annotated[
        list[Utilisation], "All limits of brokers and listeners, and the fullest of addresses and clients."
    ]
    close: list[CloseRow]
