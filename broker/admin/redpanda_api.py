"""Routes of Redpanda's own admin API v2, by the Connect protocol: what `rpk cluster connections list` asks.

rpk first asks each broker for its release, and goes on if it is v25.3 or later. The answer is the release whose settings and calls
are emulated here, with `turnstile` as its build.
"""

from __future__ import annotations

from typing import Annotated, Final

from starlette.responses import Response

from broker.admin.connect_rpc import NOT_FOUND, ConnectCall, ConnectError, ConnectFault, read_call
from broker.admin.connection_list import listed
from broker.admin.describe import Admin
from broker.admin.kafka_connection import BROKER_REQUEST, BROKER_RESPONSE, BROKERS_RESPONSE, LIST_REQUEST, LIST_RESPONSE
from broker.admin.listed_answers import (
    GetBrokerBody,
    ListBrokersBody,
    ListConnectionsBody,
    ListedBrokers,
    ListedConnections,
    OneBroker,
)
from broker.admin.route import Body, Content, RouteTable

routes = RouteTable("redpanda")
RELEASE: Final = "v26.2.1"
_PATH: Final = "/redpanda.core.admin.v2."
_ERRORS: Final = {400: ConnectError, 501: ConnectError}


@routes.post(f"{_PATH}ClusterService/ListKafkaConnections", also={**_ERRORS, 503: ConnectError})
async def list_kafka_connections(
    admin: Admin, body: Annotated[ConnectCall, Body(ListConnectionsBody, read_call)]
) -> Annotated[Response, Content(ListedConnections)]:
    """The open connections that match a filter, in an order (Redpanda's ListKafkaConnections)."""
    return body.answer(LIST_RESPONSE, await listed(admin.coordinator, body.values(LIST_REQUEST)))


@routes.post(f"{_PATH}BrokerService/ListBrokers", also=_ERRORS)
async def list_brokers(
    admin: Admin, body: Annotated[ConnectCall, Body(ListBrokersBody, read_call)]
) -> Annotated[Response, Content(ListedBrokers)]:
    """The brokers, in the format of rpk."""
    return body.answer(
        BROKERS_RESPONSE, {"brokers": [_broker(each) for each in range(admin.coordinator.state.brokers)]}
    )


@routes.post(f"{_PATH}BrokerService/GetBroker", also={**_ERRORS, 404: ConnectError})
async def get_broker(
    admin: Admin, body: Annotated[ConnectCall, Body(GetBrokerBody, read_call)]
) -> Annotated[Response, Content(OneBroker)]:
    """A broker and its release, in the format of rpk."""
    node_id = body.values(BROKER_REQUEST).get("node_id", 0)
    if not 0 <= node_id < admin.coordinator.state.brokers:
        raise ConnectFault(NOT_FOUND, f"there is no broker {node_id}.")
    return body.answer(BROKER_RESPONSE, {"broker": _broker(node_id)})


def _broker(node_id: int) -> dict[str, object]:
    return {"node_id": node_id, "build_info": {"version": RELEASE, "build_sha": "turnstile"}}
