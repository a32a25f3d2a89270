"""The faults of one shard: answers the requests that a fault matches as the fault says, and ends connections.

no_fault_no_cost  While no fault is set, the dispatcher's own function answers, and nothing of this module is on the path of
    a request.
faults_act_in_order  All faults that match a request and fire act on it, in the order in which they were added, until one
    ends it; each that does is counted and journaled once, by the shard that had the request.
coordinator_counts_calls  Whether a fault with a trigger fires is asked of the coordinator, which counts the calls of all
    shards; while it can't be reached, such a fault does not fire.
ends_decided_once_per_connection  A fault that ends connections is decided once for each of them: when the fault is set or
    the connection is opened, or, if it is for a client id, with the connection's first request.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from itertools import compress
from typing import Protocol

from broker.faults.fault import Fault, fault_of
from broker.faults.stamp import header_of, with_error, with_throttle
from broker.runtime.shard_context import ShardContext
from broker.serve.call import Call
from broker.serve.channel import AnswerFrame, Channel
from broker.serve.connection import Connection
from broker.wire import apis
from broker.wire.answer_parts import Encoded
from shards.errors import DeadlineExceeded, PeerLost, RemoteError
from shards.loop.deferred import Deferred, MaybeDeferred, gather, then

_LOST = (PeerLost, DeadlineExceeded, RemoteError)
_AUTHENTICATION = (17, 36)  # SaslHandshake, SaslAuthenticate
_DELAY = "connection.failed.authentication.delay.ms"


class Injectable(Protocol):
    """The part of a listener's Serving that a fault replaces."""

    def answer_by(self, answer: AnswerFrame, opened: Callable[[Connection], None] | None) -> None: ...


class Faults:
    """`ask(name)`: whether a fault with a trigger fires now; its answer comes from the coordinator."""

    def __init__(
        self,
        context: ShardContext,
        connections: Mapping[int, Connection],
        answer: AnswerFrame,
        ask: Callable[[str], Deferred[bool]],
        around: Callable[[AnswerFrame], AnswerFrame],
    ) -> None:
        """`around` wraps the function that answers (observation.py)."""
        self._context = context
        self._connections = connections
        self._answer = answer
        self._ask = ask
        self._around = around
        self._servings: list[Injectable] = []
        self._faults: list[Fault] = []
        self._fired: Counter[str] = Counter()

    def attach(self, serving: Injectable) -> None:
        """A listener of this shard, from its start on."""
        self._servings.append(serving)
        self._put_in_place()

    def image_changed(self, kinds: Collection[str]) -> None:
        """The configuration has another version, in which records of `kinds` differ."""
        if "fault" not in kinds:
            if "setting" in kinds:
                self._put_in_place()
            return
        before = self._faults
        self._faults = [fault_of(name, record) for name, record in self._context.image.faults.items()]
        self._fired = Counter({fault.name: self._fired[fault.name] for fault in self._faults if fault in before})
        self._put_in_place()
        new = [fault for fault in self._faults if fault.ends_connections and fault not in before]
        for connection in list(self._connections.values()) if new else ():
            known = [fault for fault in new if fault.client_id is None or connection.client_id is not None]
            matching = [fault for fault in known if fault.matches_client(connection.client_id)]
            self._decide_about(connection, matching)

    def describe(self) -> dict[str, int]:
        """The number of times each fault fired here."""
        return {fault.name: self._fired[fault.name] for fault in self._faults}

    def _put_in_place(self) -> None:
        """Puts the faults in force before the dispatcher's function, or takes them away (no_fault_no_cost)."""
        for serving in self._servings:
            serving.answer_by(
                self._around(self.answer if self._faults else self._answer),
                self.opened if any(fault.ends_connections for fault in self._faults) else None,
            )

    # Connections

    def opened(self, connection: Connection) -> None:
        """A connection was admitted."""
        faults = [fault for fault in self._faults if fault.ends_connections and fault.client_id is None]
        self._decide_about(connection, faults)

    def _decide_about(self, connection: Connection, faults: Sequence[Fault]) -> None:
        for fault in faults:
            if fault.matches_connection(connection.host, connection.port) and not connection.closed:
                then(self._fires(fault), partial(self._end_if, connection, fault))

    def _end_if(self, connection: Connection, fault: Fault, fires: bool) -> None:
        if fires and not connection.closed:
            self._note(connection, connection.client_id, None, fault)
            _end(connection, fault)

    # Requests

    def answer(self, channel: Channel, frame: bytes) -> MaybeDeferred[Encoded | None]:
        """Answers a frame as Dispatcher.answer does, changed by the faults that fire."""
        bare = channel.authentication is not None and channel.authentication.bare
        call = None if bare else header_of(frame)
        client_id = None if call is None else call.client_id
        api_key = None if call is None else call.api_key
        is_first = channel.client_id is None
        matching = [
            fault
            for fault in self._faults
            if fault.matches(api_key, client_id, channel.host, channel.port)
            and (not fault.ends_connections or (is_first and fault.client_id is not None))
        ]
        if not matching:
            return self._answer(channel, frame)
        return then(self._firing(matching), partial(self._serve, channel, frame, call))

    def _firing(self, faults: Sequence[Fault]) -> MaybeDeferred[list[Fault]]:
        """The faults that fire."""
        fires = gather([self._fires(fault) for fault in faults])
        return then(fires, lambda fires: list(compress(faults, fires)))

    def _fires(self, fault: Fault) -> MaybeDeferred[bool]:
        return self._ask(fault.name).recover(_LOST, lambda: False) if fault.triggered else True

    def _serve(
        self, channel: Channel, frame: bytes, call: Call | None, faults: Sequence[Fault]
    ) -> MaybeDeferred[Encoded | None]:
        for fault in faults:
            if fault.kind == "blackhole" or fault.ends_connections:
                self._note(channel, None if call is None else call.client_id, call, fault)
                if fault.ends_connections:
                    _end(channel, fault)
                return None
        answer = self._answer(channel, frame)
        for fault in faults:
            answer = then(answer, partial(self._finish, channel, call, fault))
        return answer

    def _finish(
        self, channel: Channel, call: Call | None, fault: Fault, answer: Encoded | None
    ) -> MaybeDeferred[Encoded | None]:
        """The answer of a served request, as the fault makes it."""
        made: MaybeDeferred[Encoded | None] = answer
        if channel.closed:
            return None
        if fault.kind == "delay":
            made = self._later(fault.amount_ms, answer)
        elif fault.kind == "disconnect":
            _end(channel, fault)
            made = None
        elif answer is None or call is None:
            return answer
        else:
            changed = self._changed(channel, call, fault, bytes(answer))
            if changed is None:
                return answer
            made = changed
        self._note(channel, channel.client_id, call, fault)
        return made

    def _changed(self, channel: Channel, call: Call, fault: Fault, answer: bytes) -> MaybeDeferred[Encoded | None]:
        """The answer with the fault's error or throttle time; None if it has no room for that."""
        if fault.kind == "error":
            stamped = with_error(call, answer, fault.error)
            if stamped is None or call.api_key not in _AUTHENTICATION:
                return stamped
            return self._unauthenticated(channel, stamped)
        throttled = with_throttle(call, answer, fault.amount_ms)
        if throttled is not None and fault.mute:
            channel.throttle = "fault", fault.amount_ms
        return throttled

    def _unauthenticated(self, channel: Channel, answer: bytes) -> Deferred[Encoded | None]:
        """Treats the request as a login that failed: it is answered after KIP-306's delay, and then the connection ends."""
        self._context.counters.add("auth_failures", 1)

        def part(answer: Encoded | None) -> Encoded | None:
            channel.parting = "unauthenticated"
            return answer

        return self._later(self._context.image.get(_DELAY), answer).then(part)

    def _later(self, delay_ms: int, answer: Encoded | None) -> Deferred[Encoded | None]:
        timers = self._context.timers
        later: Deferred[Encoded | None] = Deferred()
        timer = timers.after(delay_ms, lambda: later.resolve(answer))
        later.ends_by(partial(timers.cancel, timer))
        return later

    def _note(self, channel: Channel, client_id: str | None, call: Call | None, fault: Fault) -> None:
        self._fired[fault.name] += 1
        self._context.counters.add(f"faults_{fault.kind}", 1)
        self._context.journal.add(
            "fault",
            conn=channel.id,
            ip=channel.ip,
            port=channel.port,
            listener=channel.listener,
            reason=fault.kind,
            user=channel.user,
            client_id=client_id,
            api=None if call is None else apis.api_name(call.api_key),
            limit=fault.name,
            limit_value=fault.amount_ms or None,
            version=self._context.image.version,
        )


def _end(channel: Channel, fault: Fault) -> None:
    if fault.reset:
        channel.reset_when_closed()
    channel.close("fault")
