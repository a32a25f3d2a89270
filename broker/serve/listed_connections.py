"""The open connections of one shard, listed for ListKafkaConnections: those that match conditions, the first ones of an order.

no_long_walk  There may be a million connections: LOOKED_AT of them are looked at in a pass, and then others have their turn. A
    connection that opens during the walk is not listed; one that closes after it was looked at is. Values are read at the end.
bounded_answer  An answer has at most as many connections as were asked for, and MOST_TEXT characters of text.
"""

import operator
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, Final, NamedTuple, TypeAlias

import trio

from broker.serve.connection import Connection
from shards.loop.poller import Poller
from shards.ownership import BrokerShard

LOOKED_AT: Final = 500
MOST_TEXT: Final = 4 << 20
Value: TypeAlias = int | str | bool
_OPS: Final[Mapping[str, Callable[[Any, Any], bool]]] = {
    "=": operator.eq, "!=": operator.ne, "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge,
}  # fmt: skip


class Condition(NamedTuple):
    """A connection matches if its `field` is `op` `value`. Fields are named as in KafkaConnection: `source.ip_address`."""

    field: str
    op: str
    value: Value


class SortKey(NamedTuple):
    """An order by one field, ascending or not."""

    field: str
    descending: bool


class Moment(NamedTuple):
    """The place and time of a look: the machine's monotonic clock, and how far the wall clock is ahead of it, in nanoseconds."""

    place: BrokerShard
    epoch: int
    now_ns: int
    ahead_ns: int


_Getter: TypeAlias = Callable[[Connection, Moment], Value]


def _is_proven(connection: Connection) -> bool:
    """True if the client has proven who it is; also while it does so again (KIP-368)."""
    return connection.serving.logged_in_by is not None and (
        connection.authentication is None or connection.user != "ANONYMOUS"
    )


def _idle_ns(connection: Connection, at: Moment) -> int:
    return 0 if connection.under_way is not None else max(0, at.now_ns - connection.last_used_ns)


def _uid(connection: Connection, at: Moment) -> str:
    """Unique, and in the form of a UUID: incarnation of the shard, broker, shard, and the connection's number in the journal."""
    (broker, shard), number = at.place, connection.id
    tail = f"8{number >> 48 & 0xFFF:03x}-{number & (1 << 48) - 1:012x}"
    return f"{at.epoch & 0xFFFFFFFF:08x}-{broker & 0xFFFF:04x}-4{shard & 0xFFF:03x}-{tail}"


_STATE = "AUTHENTICATION_STATE_"
_GETTERS: Final[Mapping[str, _Getter]] = {
    "node_id": lambda _, at: at.place[0],
    "shard_id": lambda _, at: at.place[1],
    "uid": _uid,
    "state": lambda _, at: "KAFKA_CONNECTION_STATE_OPEN",
    "open_time": lambda each, at: each.opened_ns + at.ahead_ns,
    "authentication_info.state": lambda each, at: f"{_STATE}{'SUCCESS' if _is_proven(each) else 'UNAUTHENTICATED'}",
    "authentication_info.user_principal": lambda each, at: each.user if _is_proven(each) else "",
    "listener_name": lambda each, at: each.listener,
    "tls_info.enabled": lambda each, at: each.serving.tls is not None,
    "source.ip_address": lambda each, at: each.host,
    "source.port": lambda each, at: each.port,
    "client_id": lambda each, at: each.client_id or "",
    "client_software_name": lambda each, at: "" if each.software is None else each.software[0],
    "client_software_version": lambda each, at: "" if each.software is None else each.software[1],
    "idle_duration": _idle_ns,
    "in_flight_requests.has_more_requests": lambda each, at: each.under_way is not None,
    "total_request_statistics.request_count": lambda each, at: each.requests,
}
LISTED_FIELDS: Final = tuple(_GETTERS)
"""The fields of KafkaConnection that there are; the others are absent."""


class ListedConnections:
    """`connections`: those that are open, by number."""

    def __init__(
        self,
        connections: Mapping[int, Connection],
        place: BrokerShard,
        epoch: int,
        poller: Poller,
        *,
        wall_ns: Callable[[], int] = time.time_ns,
    ) -> None:
        self._connections = connections
        self._place = place
        self._epoch = epoch
        self._poller = poller
        self._wall_ns = wall_ns

    async def select(
        self, conditions: Sequence[Sequence[Any]], keys: Sequence[Sequence[Any]], most: int
    ) -> dict[str, object]:
        """`conditions` and `keys`: the fields of Condition and SortKey, as they came. {"total": how many match, "connections": the
        first `most` of them by the keys, each {field: value}}; without keys, in the order in which they were opened."""
        at, order = self._moment(), [SortKey(*each) for each in keys]
        tests = [self._test(Condition(*each), at) for each in conditions]
        every, kept, total = list(self._connections.values()), list[Connection](), 0
        for start in range(0, len(every), LOOKED_AT):
            found = [
                each
                for each in every[start : start + LOOKED_AT]
                if not each.closed and all(test(each) for test in tests)
            ]
            total += len(found)
            kept = first(most, [*kept, *found], order, at)
            await trio.lowlevel.checkpoint()
        return {"total": total, "connections": self._told(kept)}

    def _moment(self) -> Moment:
        self._poller.touch()
        now_ns = self._poller.now_ns
        return Moment(self._place, self._epoch, now_ns, self._wall_ns() - now_ns)

    @staticmethod
    def _test(condition: Condition, at: Moment) -> Callable[[Connection], bool]:
        compare, get, value = _OPS[condition.op], _GETTERS[condition.field], condition.value
        return lambda connection: compare(get(connection, at), value)

    def _told(self, connections: Iterable[Connection]) -> list[dict[str, Value]]:
        at, rows, size = self._moment(), list[dict[str, Value]](), 0
        for connection in connections:
            row = {field: get(connection, at) for field, get in _GETTERS.items()}
            size += sum(len(value) for value in row.values() if isinstance(value, str))
            if size > MOST_TEXT:
                break
            rows.append(row)
        return rows


def first(most: int, connections: list[Connection], keys: Sequence[SortKey], at: Moment) -> list[Connection]:
    """The first `most` by the keys; among equals, in their order."""
    for key in reversed(keys):
        connections.sort(key=partial(_value, _GETTERS[key.field], at), reverse=key.descending)
    return connections[:most]


def _value(get: _Getter, at: Moment, connection: Connection) -> Any:
    return get(connection, at)
