"""Redpanda's ListKafkaConnections: the open connections of all brokers that match a filter, in an order, the first ones.

bounded  An answer has at most MOST_LISTED connections, whatever the page size: Redpanda, too, may list fewer than
    were asked for. `total_size` is the number that was found on all shards. Subsequent pages can't be asked for, as in Redpanda.
whole_or_refused  A running shard that does not answer makes the call fail: a list without its connections would look like the
    whole one.
"""

from __future__ import annotations

from functools import partial
from typing import Any, Final

from broker.admin.connect_messages import nested
from broker.admin.connect_rpc import INVALID_ARGUMENT, UNAVAILABLE, UNIMPLEMENTED, ConnectFault
from broker.admin.connection_filter import NotKept, NotUnderstood, conditions, sort_keys
from broker.serve.listed_connections import LISTED_FIELDS, SortKey
from shards.config.coordinator import Coordinator

MOST_LISTED: Final = 1000
_WITHIN_S: Final = 30.0


async def listed(coordinator: Coordinator, asked: dict[str, Any]) -> dict[str, Any]:
    """The values of a LIST_RESPONSE; `asked`: those of the LIST_REQUEST. Raises ConnectFault."""
    size = asked.get("page_size", 0)
    if size < 0:
        raise ConnectFault(INVALID_ARGUMENT, "page_size can't be negative.")
    most = min(size or MOST_LISTED, MOST_LISTED)
    try:
        tests = conditions(asked.get("filter", ""), LISTED_FIELDS)
        keys = sort_keys(asked.get("order_by", ""), LISTED_FIELDS)
    except NotUnderstood as fault:
        raise ConnectFault(INVALID_ARGUMENT, str(fault)) from None
    except NotKept as fault:
        raise ConnectFault(UNIMPLEMENTED, str(fault)) from None
    asking = [member for member, version in coordinator.describe_shards().items() if version is not None]
    answers = await coordinator.ask_all("list_connections", tests, keys, most, timeout_s=_WITHIN_S)
    missing = [f"broker {broker} shard {shard}" for broker, shard in asking if (broker, shard) not in answers]
    if missing:
        raise ConnectFault(UNAVAILABLE, f"{', '.join(missing)} did not answer.")
    rows = [row for answer in answers.values() for row in answer["connections"]]
    for key in reversed(keys):
        rows.sort(key=partial(_value, key), reverse=key.descending)
    total = sum(answer["total"] for answer in answers.values())
    return {"connections": [_connection(row) for row in rows[:most]], "total_size": total}


def _value(key: SortKey, row: dict[str, object]) -> Any:
    return row[key.field]


def _connection(row: dict[str, object]) -> dict[str, object]:
    """The sample of requests under way is empty, as their APIs are not kept; `has_more_requests` says that there are some."""
    values = nested(row)
    values["in_flight_requests"]["sampled_in_flight_requests"] = []
    return values
