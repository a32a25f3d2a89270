"""Which request gets an answer that was made before, and how long."""

from types import SimpleNamespace
from typing import Any

import pytest

from broker.serve.call import Call, Route
from broker.serve.dispatch import Dispatcher
from broker.serve.prepared_answers import MOST, MOST_BYTES, PreparedAnswers
from broker.wire import wire
from broker.wire.codec import Message
from shards.config.image import ClusterImage
from shards.loop.deferred import Deferred, MaybeDeferred

FIND_COORDINATOR = 10


class Served:
    """A dispatcher over one route whose answers count up: two equal ones are the same one."""

    def __init__(self, *, prepared: bool = True) -> None:
        self.image = ClusterImage()
        self.throttling: Any = SimpleNamespace(active=False, timed=False)
        self.throughput: Any = SimpleNamespace(controlled=())
        self.settled = 0
        self.throttling.settle = self._settle
        self.made = 0
        self.later: Deferred[Message] | None = None
        self.prepared = PreparedAnswers(self.image)
        routes = [Route.of(FIND_COORDINATOR, self._find, prepared=prepared)]
        self.dispatcher = Dispatcher(
            routes, lambda *_: b"", self.throttling, Any, self.prepared, self.throughput, most_items=9  # type: ignore[arg-type]
        )  # fmt: skip

    def _find(self, request: Any, call: Call) -> MaybeDeferred[Message]:
        self.made += 1
        if self.later is not None:
            return self.later
        return call.types.FindCoordinatorResponse(
            node_id=self.made, host="h", port=1, error_code=0, error_message=request.key
        )

    def _settle(self, channel: Any, call: Call, size: int, response: Message, began_ns: int) -> bytes:
        self.settled += 1
        return wire.encode_response(call, response)

    def ask(self, channel: Any, key: str = "g", correlation_id: int = 7, client_id: str = "c") -> Any:
        """The dispatcher's answer, parsed if it is there: (correlation id, number of the answer, key)."""
        answer = self.dispatcher.answer(channel, request(key, correlation_id, client_id))
        return parsed(answer) if isinstance(answer, bytes) else answer


def request(key: str, correlation_id: int = 7, client_id: str = "c") -> bytes:
    body = wire.request_types(FIND_COORDINATOR, 2).FindCoordinatorRequest(key=key, key_type=0)
    return wire.encode_request(Call(FIND_COORDINATOR, 2, correlation_id), body, client_id)[4:]


def parsed(answer: bytes) -> tuple[int, int, str]:
    assert int.from_bytes(answer[:4], "big") == len(answer) - 4
    correlation_id, response = wire.parse_response(answer[4:], FIND_COORDINATOR, 2)
    return correlation_id, response.node_id, response.error_message


def channel(listener: str = "L") -> Any:
    return SimpleNamespace(
        authentication=None, user="u", listener=listener, ip="127.0.0.1", host="127.0.0.1", port=1, client_id=None
    )


@pytest.fixture
def served() -> Served:
    return Served()


def test_an_equal_request_gets_the_answer_made_before_under_its_own_correlation_id(served: Served) -> None:
    assert served.ask(channel(), correlation_id=1) == (1, 1, "g")
    again = channel()
    assert served.ask(again, correlation_id=-2) == (-2, 1, "g")
    assert again.client_id == "c"
    assert served.made == 1


def test_another_request_client_or_listener_gets_an_answer_of_its_own(served: Served) -> None:
    served.ask(channel())
    assert served.ask(channel(), "other") == (7, 2, "other")
    assert served.ask(channel(), client_id="d") == (7, 3, "g")
    assert served.ask(channel("M")) == (7, 4, "g")


def test_a_new_version_of_the_configuration_drops_every_answer(served: Served) -> None:
    served.ask(channel())
    served.image.apply(1, [["setting", "/num.partitions", "3"]])
    assert served.ask(channel()) == (7, 2, "g")


def test_answers_of_other_routes_are_made_each_time() -> None:
    served = Served(prepared=False)
    assert [served.ask(channel()), served.ask(channel())] == [(7, 1, "g"), (7, 2, "g")]


def test_an_answer_that_comes_later_is_not_kept(served: Served) -> None:
    served.later = Deferred()
    assert isinstance(served.ask(channel()), Deferred)
    served.later = None
    assert served.ask(channel()) == (7, 2, "g")


def test_a_client_that_is_charged_for_request_time_is_charged_each_time(served: Served) -> None:
    served.ask(channel())
    served.throttling.active = served.throttling.timed = True
    assert [served.ask(channel()), served.ask(channel())] == [(7, 2, "g"), (7, 3, "g")]
    assert served.settled == 2


def test_a_listener_that_advertises_what_its_client_reached_keeps_none(served: Served) -> None:
    served.image.apply(1, [["advertised", "0/L", "auto"]])
    assert [served.ask(channel()), served.ask(channel())] == [(7, 1, "g"), (7, 2, "g")]
    assert [served.ask(channel("M")), served.ask(channel("M"))] == [(7, 3, "g"), (7, 3, "g")]
    served.image.apply(2, [["advertised", "0/L", None]])
    assert [served.ask(channel()), served.ask(channel())] == [(7, 4, "g"), (7, 4, "g")]


def test_what_is_kept_is_bounded(served: Served) -> None:
    served.ask(channel(), "k" * (MOST_BYTES // 2))
    served.ask(channel(), "k" * (MOST_BYTES // 2))
    assert served.made == 2  # too long to be kept
    for number in range(MOST):
        served.ask(channel(), f"g{number}")
    assert served.ask(channel(), "g0")[1] == 3  # all fit
    served.ask(channel(), "one more")
    assert served.ask(channel(), "g0")[1] == served.made
