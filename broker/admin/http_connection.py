"""One HTTP/1.1 connection of the admin API: h11 parses and encodes it, an ASGI application answers. One task a connection.

gone_clients_end_connections  When a client has closed its end, the connection ends: no timeout is waited for between requests.
waits_have_deadlines  Each wait for the client has a deadline, which a client that sends or reads slowly does not move.
read_no_further_than_asked  No more of a request is read than the application asks for, and nothing of the next one before
    the answer is sent.

HTTP/2 is not spoken: a client that begins with it is answered 505. An upgrade is ignored, as RFC 9110 allows.
"""

from __future__ import annotations

import json
import sys
import traceback
from email.utils import formatdate
from urllib.parse import unquote_to_bytes

import h11
import trio
from starlette.types import ASGIApp, Message, Scope

from broker.admin.http_places import Places

QUIET_S = 60.0
"""A connection that sends no request for so long is closed."""
HEAD_WITHIN_S = 10.0
"""The head of a request arrives within this time from its first byte."""
TAKEN_WITHIN_S = 60.0
"""A client takes a part of an answer within this time."""
LINGER_S = 1.0
"""A body that the application did not ask for is read and dropped for so long, so that its client can read the answer."""
_DROPPED_BYTES = 1 << 16
"""The most bytes of such a body after which the connection stays open."""
_READ_BYTES = 1 << 14
_VERSIONS = (b"1.0", b"1.1")
_GONE: Message = {"type": "http.disconnect"}


class HttpConnection:
    """Serves one client until it leaves, stays away, breaks the protocol, or has to make room."""

    def __init__(self, app: ASGIApp, stream: trio.SocketStream, places: Places) -> None:
        self.http = h11.Connection(h11.SERVER)
        self.places = places
        self._app = app
        self._stream = stream
        self.client = _address(stream)
        self._lives = trio.CancelScope()

    def close_early(self) -> None:
        self._lives.cancel()

    async def run(self) -> None:
        """Serves the connection, and closes its socket."""
        try:
            with self._lives:
                while await self._serve_one():
                    self.http.start_next_cycle()
                await self._linger()
        except (trio.BrokenResourceError, trio.TooSlowError):
            pass  # the client has left, or neither sends nor reads
        except Exception:
            traceback.print_exc()  # a mistake of ours, which must not end the process
        finally:
            self.places.remove(self)
            await trio.aclose_forcefully(self._stream)

    async def _serve_one(self) -> bool:
        """Serves one request; True if another may follow on this connection."""
        self.places.begins_step(self)
        try:
            request = await self._next_request()
            if request is None:
                return False
            if request.http_version not in _VERSIONS:
                await self.refuse(505, "this admin API speaks HTTP/1.1.")
                return False
            exchange = Exchange(self, request)
            await exchange.run(self._app)
            return not exchange.is_gone and await self._is_reusable()
        except h11.RemoteProtocolError as fault:
            if self.http.our_state in (h11.IDLE, h11.SEND_RESPONSE):
                await self.refuse(fault.error_status_hint, f"this is not an HTTP request: {fault}.")
            return False

    async def _next_request(self) -> h11.Request | None:
        """None when the client is gone. Raises RemoteProtocolError, TooSlowError."""
        event = self.http.next_event()
        if event is h11.NEED_DATA:
            with trio.fail_after(QUIET_S):
                await self.read()
            with trio.fail_after(HEAD_WITHIN_S):
                while (event := self.http.next_event()) is h11.NEED_DATA:
                    await self.read()
        return event if isinstance(event, h11.Request) else None

    async def _is_reusable(self) -> bool:
        """True when all of the request has arrived, or does so soon."""
        if self.http.they_are_waiting_for_100_continue:
            return False
        dropped = 0
        self.places.begins_step(self)
        with trio.move_on_after(LINGER_S):
            while self.http.their_state is h11.SEND_BODY and dropped < _DROPPED_BYTES:
                event = self.http.next_event()
                if event is h11.NEED_DATA:
                    await self.read()
                elif isinstance(event, h11.Data):
                    dropped += len(event.data)
        return self.http.our_state is h11.DONE and self.http.their_state is h11.DONE

    async def _linger(self) -> None:
        """Drops what is still on its way: closing with unread bytes would reset the connection, and lose the answer."""
        if self.http.their_state in (h11.IDLE, h11.MUST_CLOSE, h11.CLOSED):
            return
        with trio.move_on_after(LINGER_S):
            await self._stream.send_eof()
            while await self._stream.receive_some(_READ_BYTES):
                pass

    async def refuse(self, status: int, sentence: str) -> None:
        """An answer of this server itself, after which the connection is closed."""
        body = json.dumps({"message": sentence, "code": status}).encode()
        kind, size, last = b"application/json", str(len(body)).encode(), b"close"
        headers = [(b"content-type", kind), (b"content-length", size), (b"connection", last)]
        head = self.http.send(h11.Response(status_code=status, headers=headers)) or b""
        await self.write(head + body)

    async def read(self) -> None:
        """Hands more bytes of the client, or its end, to h11. Raises BrokenResourceError."""
        self.http.receive_data(await self._stream.receive_some(_READ_BYTES))

    async def write(self, data: bytes) -> None:
        """Raises BrokenResourceError, TooSlowError."""
        with trio.fail_after(TAKEN_WITHIN_S):
            await self._stream.send_all(data)


class Exchange:
    """One request as the application sees it, and its answer."""

    def __init__(self, connection: HttpConnection, request: h11.Request) -> None:
        self.is_gone = False
        """True when the client has left, or broken the protocol, before the answer was sent."""
        self._connection = connection
        self._http = connection.http
        self._request = request
        self._head: h11.Response | None = None
        self._held_bytes = 0
        self._has_arrived = False

    async def run(self, app: ASGIApp) -> None:
        """Runs the application. Its exceptions are logged and answered with 500, not raised."""
        connection = self._connection
        connection.places.waits(connection, False)
        try:
            await app(self._scope(), self._receive, self._send)
        except Exception as fault:
            # Starlette raises again what its handlers have logged and answered.
            if self._http.our_state is h11.SEND_RESPONSE:
                traceback.print_exception(fault, file=sys.stderr)
        finally:
            connection.places.holds(connection, -self._held_bytes)
        if self._http.our_state is h11.SEND_RESPONSE and not self.is_gone:
            await connection.refuse(500, "internal error")

    def _scope(self) -> Scope:
        request = self._request
        path, _, query = request.target.partition(b"?")
        return {
            "type": "http",
            "asgi": {"version": "3.0", "spec_version": "2.3"},
            "http_version": request.http_version.decode(),
            "method": request.method.decode(),
            "scheme": "http",
            "path": unquote_to_bytes(path).decode(errors="replace"),
            "raw_path": path,
            "query_string": query,
            "root_path": "",
            "headers": list(request.headers),
            "client": self._connection.client,
            "server": None,
        }

    async def _receive(self) -> Message:
        """More of the body, or the message that the client has gone."""
        if self._has_arrived:
            await trio.sleep_forever()
        connection = self._connection
        connection.places.waits(connection)
        try:
            if self._http.they_are_waiting_for_100_continue:
                await connection.write(self._http.send(h11.InformationalResponse(status_code=100, headers=[])) or b"")
            while (event := self._http.next_event()) is h11.NEED_DATA:
                await connection.read()
        except (h11.RemoteProtocolError, trio.BrokenResourceError, trio.TooSlowError):
            return _GONE
        finally:
            connection.places.waits(connection, False)
        if isinstance(event, h11.Data):
            self._hold(len(event.data))
            return {"type": "http.request", "body": bytes(event.data), "more_body": True}
        self._has_arrived = isinstance(event, h11.EndOfMessage)
        return {"type": "http.request", "body": b"", "more_body": False} if self._has_arrived else _GONE

    async def _send(self, message: Message) -> None:
        """A part of the answer; nothing happens when the client has gone."""
        if message["type"] == "http.response.start":
            date = formatdate(usegmt=True).encode()
            headers = [*message["headers"], (b"date", date)]
            self._head = h11.Response(status_code=message["status"], headers=headers)
            return
        body = message.get("body", b"")
        sent = self._http.send(self._head) or b"" if self._head is not None else b""
        if body and self._request.method != b"HEAD":
            sent += self._http.send(h11.Data(data=body)) or b""
        if not message.get("more_body", False):
            sent += self._http.send(h11.EndOfMessage()) or b""
        if not self.is_gone:
            await self._hand_over(sent)

    async def _hand_over(self, sent: bytes) -> None:
        connection = self._connection
        if self._head is not None:
            connection.places.begins_step(connection)
            self._head = None
        connection.places.waits(connection)
        self._hold(len(sent))
        try:
            await connection.write(sent)
        except (trio.BrokenResourceError, trio.TooSlowError):
            self.is_gone = True
        finally:
            connection.places.waits(connection, False)

    def _hold(self, size: int) -> None:
        self._held_bytes += size
        self._connection.places.holds(self._connection, size)


def _address(stream: trio.SocketStream) -> tuple[str, int] | None:
    """The client's address; None when it has left already."""
    try:
        host, port, *_ = stream.socket.getpeername()
    except OSError:
        return None
    return host, port
