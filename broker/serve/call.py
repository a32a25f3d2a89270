"""One request in flight, and a route: the function that answers an API in a range of versions."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeAlias

from broker.serve.channel import Channel
from broker.wire import apis, wire
from broker.wire.answer_parts import Encoded
from broker.wire.codec import Message
from shards.loop.deferred import Deferred, MaybeDeferred
from shards.quotas.sharded_quotas import RecordedCharge

if TYPE_CHECKING:
    from typing_extensions import TypeVar

    ResponseTypes = TypeVar("ResponseTypes", default=object, covariant=True)
else:
    from typing import TypeVar

    ResponseTypes = TypeVar("ResponseTypes", covariant=True)


class Call(Generic[ResponseTypes]):
    """A request without its body: header, client and connection; and the response types of its version.

    A handler of Metadata is given a `Call[MetadataTypes]` (broker/wire/responses.py), so that its answer is type-checked.
    """

    __slots__ = (
        "api_key",
        "api_version",
        "channel",
        "client_id",
        "correlation_id",
        "encoded",
        "ip",
        "listener",
        "may_read",
        "most_bytes",
        "mutations",
        "node_throttle_ms",
        "observed_mutations",
        "port",
        "stand_in",
        "tells_mutations",
        "throttle_ms",
        "user",
        "withheld",
    )

    def __init__(
        self,
        api_key: int,
        api_version: int,
        correlation_id: int = 0,
        client_id: str | None = None,
        *,
        user: str = "ANONYMOUS",
        listener: str = "PLAINTEXT",
        ip: str = "127.0.0.1",
        port: int = 0,
        channel: Channel | None = None,
    ) -> None:
        self.api_key = api_key
        self.api_version = api_version
        self.correlation_id = correlation_id
        self.client_id = client_id
        self.user = user  # the name in the principal "User:<name>"; ANONYMOUS without SASL
        self.listener = listener
        self.ip = ip  # the client's own
        self.port = port  # the client's
        self.channel = channel  # the connection it came over; None: none
        self.encoded: Encoded | None = None  # the response, if it was encoded aside
        self.throttle_ms = 0  # the throttle time of a quota that the handler itself charged
        self.node_throttle_ms = 0  # of Redpanda's limits: it is in the answer, and mutes nothing
        self.mutations = 0  # how many partitions it created or deleted, if they count against a quota
        self.observed_mutations: tuple[MaybeDeferred[RecordedCharge], ...] = ()  # what observed quotas answer to them
        self.tells_mutations = True  # True if its answer has a throttle time for these mutations
        self.stand_in = False  # whether any of them was charged by a stand-in of the quota's home
        self.most_bytes: float | None = None  # the most that a Fetch may read: more would surely be throttled

        self.may_read: Callable[[str], bool] | None = None  # whether the client may read a topic; None: any
        self.withheld: Callable[[], Message] | None = (
            None  # what goes out instead when a quota withholds a Fetch's answer
        )

    def read_only_if(self, may_read: Callable[[str], bool]) -> None:
        """Only topics for which `may_read(name)` is true are read for this client."""
        self.may_read = may_read

    def withhold_by(self, answer: Callable[[], Message]) -> None:
        """If a quota withholds the answer of this Fetch, `answer()` goes out in its place."""
        self.withheld = answer

    @property
    def reached(self) -> str:
        """The local address of the connection, or that of its proxy: where its client found the broker, if nothing else on the
        way maps addresses."""
        return "localhost" if self.channel is None else self.channel.reached

    @property
    def reached_port(self) -> int | None:
        """The port of that proxy; None: there is none."""
        return None if self.channel is None else self.channel.reached_port

    @property
    def types(self) -> ResponseTypes:
        """`wire.types` of this API and version: `call.types.MetadataResponse(...)`."""
        made: ResponseTypes = wire.types(self.api_key, self.api_version)
        return made


Answer: TypeAlias = Message | Deferred[Message] | Deferred[Message | None] | None
"""A response, now or later; None if none is to be sent."""
Handler = Callable[[Any, Call[Any]], Answer]
"""(request, call) -> its answer. Raises wire.BadFrame or ClientFault to end the connection. The request is of the class of
its API in broker/wire/requests.py, the call's types are those of its API in responses.py."""


class Route(NamedTuple):
    """The function that answers an API, and the versions in which it does.

    `prepared`: an answer that comes at once depends only on the request, the listener and the configuration's version (and on
    the address that the client reached, on listeners that advertise it). So it may be given again to an equal request
    (prepared_answers.py).
    """

    api_key: int
    min_version: int
    max_version: int
    function: Handler
    prepared: bool = False

    @classmethod
    def of(cls, api_key: int, function: Handler, *, prepared: bool = False) -> "Route":
        """A route for all versions of the API that `wire` knows."""
        api = apis.APIS[api_key]
        return cls(api_key, api.min_version, api.max_version, function, prepared)
