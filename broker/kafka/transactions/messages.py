"""The messages from handlers and other shards to the home of a transactional id; this module alone packs and unpacks it for the
mesh.

Every message names its transactional id first, but for ListTransactions, which is for every shard. Fields hold what msgpack
carries; over the mesh a message is its fields, by the method `transaction.<its class>`. The answer stands at each message: a code
is one of Kafka's error codes.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeAlias

from broker.kafka.transactions.homes import ClusterHomes, Shard
from shards.loop.deferred import MaybeDeferred


class InitProducer(NamedTuple):
    """[code, producer id, epoch]. `producer_id`, `epoch`: what the producer has; -1 and -1 if nothing."""

    transactional_id: str
    timeout_ms: int
    producer_id: int
    epoch: int


class AddPartitions(NamedTuple):
    """A code. `places`: (topic, partition) each."""

    transactional_id: str
    producer_id: int
    epoch: int
    places: Sequence[tuple[str, int]]


class VerifyPartitions(NamedTuple):
    """A code for each of `places`: (topic, partition)."""

    transactional_id: str
    producer_id: int
    epoch: int
    places: Sequence[tuple[str, int]]


class EndTransaction(NamedTuple):
    """[code, producer id, epoch]. `second`: by the second version of the protocol."""

    transactional_id: str
    producer_id: int
    epoch: int
    commit: bool
    second: bool


class TransactionDescription(NamedTuple):
    """`start_ms`: -1 while nothing was added; `places`: (topic, partition) each. With another code than NONE there is no more
    than that."""

    code: int
    state: str = ""
    timeout_ms: int = 0
    start_ms: int = 0
    producer_id: int = 0
    epoch: int = 0
    places: Sequence[tuple[str, int]] = ()


class DescribeTransaction(NamedTuple):
    """A TransactionDescription; TRANSACTIONAL_ID_NOT_FOUND for an unknown id."""

    transactional_id: str


class TransactionListing(NamedTuple):
    """A transactional id, and the state of its transaction."""

    transactional_id: str
    producer_id: int
    state: str


class ListTransactions(NamedTuple):
    """A TransactionListing each of those that all filters let through; an empty filter, or -1, lets all through."""

    states: Sequence[str]
    producer_ids: Sequence[int]
    duration_ms: int
    pattern: str


TransactionMessage: TypeAlias = InitProducer | AddPartitions | VerifyPartitions | EndTransaction | DescribeTransaction


def serve(
    homes: ClusterHomes, kind: type[TransactionMessage] | type[ListTransactions], function: Callable[..., object]
) -> None:
    """Messages of one class are answered by a function of their fields."""
    homes.serve(_method(kind), function)


def send(homes: ClusterHomes, message: TransactionMessage) -> MaybeDeferred[Any]:
    """The answer of the home of the id; of another shard it may be PeerLost, DeadlineExceeded or RemoteError."""
    return send_to(homes, homes.of_transaction(message.transactional_id), message)


def send_to(homes: ClusterHomes, home: Shard, message: TransactionMessage | ListTransactions) -> MaybeDeferred[Any]:
    """As `send`, to one shard."""
    return homes.call(home, _method(type(message)), *message)


def _method(kind: type[TransactionMessage | ListTransactions]) -> str:
    return f"transaction.{kind.__name__}"
