"""The observation of clients for `turnstile verdict`: every request, and what arrives on a muted connection, in the journal.

On while `turnstile.observe` is true, and otherwise not on the path of a request.

requests_journaled_when_answered  A `request` is journaled when it is answered, with the time that this took; so the
    journal's events stay in order. That of a telemetry request (KIP-714) also has the error of the answer, as `reason`.
muted_are_not_read  Nothing of a muted connection is read: the kernel tells how many bytes wait in its socket (SIOCINQ).
    Bytes that waited when the throttle time was sent are not `early`: they were on the way before.
"""

from __future__ import annotations

import fcntl
import struct
import termios
from functools import partial

from broker.runtime.shard_context import ShardContext
from broker.serve.channel import AnswerFrame, Channel
from broker.wire import apis, codes
from broker.wire.answer_parts import Encoded
from shards.loop.deferred import MaybeDeferred, then

_TELEMETRY = {(key).to_bytes(2, "big") for key in (71, 72)}
_ERROR_AT = 13
"""The place of the error in both answers: behind length, correlation id, tags and throttle time."""
_LOOK_MS = 2
_int = struct.Struct("i")
_api_at = _error_at = struct.Struct(">h").unpack_from


class _Throttled:
    """A channel whose client was sent a throttle time."""

    __slots__ = ("at_ns", "channel", "until_ns", "waiting")

    def __init__(self, channel: Channel, at_ns: int, throttle_ms: int, waiting: int) -> None:
        self.channel = channel
        self.at_ns = at_ns
        self.until_ns = at_ns + throttle_ms * 1_000_000
        self.waiting = waiting


class Observation:
    """Wraps the function that answers frames, while it is on."""

    def __init__(self, context: ShardContext) -> None:
        self._context = context
        self._throttled: list[_Throttled] = []

    @property
    def is_on(self) -> bool:
        return bool(self._context.image.get("turnstile.observe"))

    def around(self, answer: AnswerFrame) -> AnswerFrame:
        """`answer`, observed if this is on."""
        return partial(self._observe, answer) if self.is_on else answer

    def _observe(self, answer: AnswerFrame, channel: Channel, frame: bytes) -> MaybeDeferred[Encoded | None]:
        began_ns = self._context.poller.clock_ns()
        return then(answer(channel, frame), partial(self._answered, channel, frame, began_ns))

    def _answered(self, channel: Channel, frame: bytes, began_ns: int, response: Encoded | None) -> Encoded | None:
        if channel.closed:
            return response
        now_ns = self._context.poller.clock_ns()
        waiting = waiting_bytes(channel.fd)
        throttle_ms = 0 if channel.throttle is None else channel.throttle[1]
        behind = waiting + len(channel.received or b"")
        error = _error_at(bytes(response), _ERROR_AT)[0] if response and frame[:2] in _TELEMETRY else 0
        took_ms = (now_ns - began_ns) / 1e6
        self._note(
            "request",
            channel,
            took_ms,
            len(frame) + 4,
            frame=frame,
            throttle_ms=throttle_ms,
            waiting=behind,
            error=codes.NAMES.get(error) if error else None,
        )
        if throttle_ms:
            if not self._throttled:
                self._context.timers.after(_LOOK_MS, self._look)
            self._throttled.append(_Throttled(channel, now_ns, throttle_ms, waiting))
        return response

    def _look(self) -> None:
        """Notes what has arrived since the last look."""
        now_ns = self._context.poller.now_ns
        self._throttled = [each for each in self._throttled if not each.channel.closed and now_ns < each.until_ns]
        for each in self._throttled:
            waiting = waiting_bytes(each.channel.fd)
            if waiting > each.waiting:
                self._note("early", each.channel, (now_ns - each.at_ns) / 1e6, waiting - each.waiting)
                each.waiting = waiting
        if self._throttled:
            self._context.timers.after(_LOOK_MS, self._look)

    def _note(
        self,
        kind: str,
        channel: Channel,
        took_ms: float,
        size: int,
        *,
        frame: bytes | None = None,
        throttle_ms: int | None = None,
        waiting: int | None = None,
        error: str | None = None,
    ) -> None:
        api = None if frame is None or len(frame) < 2 else _api_at(frame)[0]
        self._context.journal.add(
            kind,
            conn=channel.id,
            ip=channel.ip,
            port=channel.port,
            listener=channel.listener,
            reason=error,
            user=channel.user,
            client_id=channel.client_id,
            api=apis.api_name(api) if api in apis.APIS else None,
            bytes_moved=size,
            throttle_ms=throttle_ms,
            held_ms=took_ms,
            limit_value=waiting,
            version=self._context.image.version,
        )


def waiting_bytes(fd: int) -> int:
    """The bytes that a client has sent, the kernel holds and the broker has not read."""
    return int(_int.unpack(fcntl.ioctl(fd, termios.FIONREAD, bytes(_int.size)))[0])
