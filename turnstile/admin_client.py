"""A client of a cluster's admin API: for the commands, the load driver, the scripts and the tests.

changes_are_not_repeated  A call returns what the API answered, or raises AdminError with one sentence. A change whose
    answer does not come is not tried twice: it may be in force. A question is, once, when the connection that was kept for
    it has ended meanwhile.
http_is_imported_late  Nothing is imported for HTTP before the first call, so that a command which asks no cluster starts
    without it.
one_kept_connection  One connection is kept between calls, whichever thread makes them; calls at the same time have one
    each. A fork of the program closes its copy, and connects for itself.

http.client is enough for JSON over one connection, and unlike urllib.request it reads no proxy from the environment: the
cluster is on this machine, or on one that was named. This module imports nothing of Turnstile: the load driver uses it.
"""

from __future__ import annotations

import json
import os
import select
import time
import weakref
from types import TracebackType
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from http.client import HTTPConnection

DEFAULT_ADMIN = "http://127.0.0.1:9644"
_NAMED = "x-turnstile"
"""A header of each answer (broker/admin/guard.py): other programs answer with JSON, too."""
_KEPT_S = 20.0
"""The seconds for which a connection is kept without a call: well below the time after which the API closes it."""


class AdminError(Exception):
    """A call of the admin API that failed; `str()` is one sentence."""


class AdminUnreachable(AdminError):
    """No admin API of Turnstile answers at the URL."""


class AdminRefused(AdminError):
    """The admin API answered with an error: `status` is HTTP's, `told` the JSON of its body, or its text."""

    def __init__(self, status: int, told: object, sentence: str) -> None:
        super().__init__(sentence)
        self.status = status
        self.told = told


class _Answer(NamedTuple):
    status: int
    content: bytes
    is_ours: bool


class _Kept(NamedTuple):
    """A connection between two calls."""

    connection: HTTPConnection
    since_s: float

    def is_usable(self) -> bool:
        """True if the other side has neither ended it nor said anything since the last answer."""
        if self.connection.sock is None or time.monotonic() - self.since_s > _KEPT_S:
            return False
        heard = select.poll()
        heard.register(self.connection.sock, select.POLLIN)
        return not heard.poll(0)


class AdminClient:
    """Calls of one cluster's admin API, for several threads (one_kept_connection). `close()`, or the end of a `with`
    block, drops its connection; the next call makes another."""

    def __init__(self, url: str, token: str | None = None, *, who: str = "", timeout_s: float = 15.0) -> None:
        """`url`: http://HOST:PORT, or HOST:PORT. `who` is what the history of changes names the caller. `timeout_s`: of
        connecting, and of each wait for a part of an answer."""
        self.url = (url if "://" in url else f"http://{url}").rstrip("/")
        self.timeout_s = timeout_s
        self._headers = {"content-type": "application/json", "x-turnstile-who": who or f"turnstile ({_user()})"}
        if token:
            self._headers["authorization"] = f"Bearer {token}"
        # A list, as its methods need no lock: one that a thread held would be held for ever in a fork.
        self._kept: list[_Kept] = []
        weakref.finalize(self, _close, self._kept)
        _clients.add(self)

    def get(self, path: str, **query: object) -> Any:
        """The JSON of the answer. Arguments of the query that are None are left out. Raises AdminError."""
        return self._json(self._call("GET", path, None, query))

    def put(self, path: str, body: object, **query: object) -> Any:
        """The JSON of the answer, when the change is in force. Raises AdminError."""
        return self._json(self._call("PUT", path, json.dumps(body).encode(), query))

    def post(self, path: str, body: object = None) -> Any:
        """The JSON of the answer. Raises AdminError."""
        return self._json(self._call("POST", path, b"" if body is None else json.dumps(body).encode(), {}))

    def delete(self, path: str, **query: object) -> Any:
        """As `put`, without a body."""
        return self._json(self._call("DELETE", path, None, query))

    def text(self, path: str) -> str:
        """The text of the answer, such as the page of /metrics. Raises AdminError."""
        return self._call("GET", path, None, {}).decode()

    def close(self) -> None:
        """Drops the connection that is kept."""
        _close(self._kept)

    def __enter__(self) -> AdminClient:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, fault: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _call(self, method: str, path: str, body: bytes | None, query: dict[str, object]) -> bytes:
        from http.client import HTTPException
        from urllib.parse import urlencode, urlsplit

        named = {name: value for name, value in query.items() if value is not None}
        target = urlsplit(self.url).path + path + (f"?{urlencode(named)}" if named else "")
        try:
            answer = self._ask(method, target, body)
        except (HTTPException, OSError) as fault:
            if method == "GET":
                raise self._unreachable(fault) from None
            raise AdminUnreachable(
                f"the cluster at {self.url} did not answer ({_why(fault)}): the change may be in force, or not"
            ) from None
        if not answer.is_ours and answer.status < 500:  # a gateway in front of it may have failed
            raise AdminUnreachable(f"{self.url} is not an admin API of Turnstile")
        if answer.status >= 400:
            raise self._refusal(answer.status, answer.content)
        return answer.content

    def _ask(self, method: str, target: str, body: bytes | None) -> _Answer:
        """Raises HTTPException, OSError; AdminUnreachable when nothing can be connected to."""
        kept = self._take()
        if kept is not None:
            try:
                return self._exchange(kept, method, target, body)
            except ConnectionError:
                if method != "GET":
                    raise
        connection = self._connection()
        try:
            connection.connect()
        except OSError as fault:
            connection.close()
            raise self._unreachable(fault) from None
        return self._exchange(connection, method, target, body)

    def _exchange(self, connection: HTTPConnection, method: str, target: str, body: bytes | None) -> _Answer:
        """One request on a connection, which is kept afterwards, or closed."""
        is_whole = False
        try:
            connection.request(method, target, body, self._headers)
            answer = connection.getresponse()
            content = answer.read()
            is_whole = True
        finally:
            if is_whole and connection.sock is not None and not self._kept:
                self._kept.append(_Kept(connection, time.monotonic()))
            else:
                connection.close()
        return _Answer(answer.status, content, answer.getheader(_NAMED) is not None)

    def _take(self) -> HTTPConnection | None:
        """The connection that was kept, if it can be used; it is this thread's from here on."""
        while self._kept:
            try:
                kept = self._kept.pop()
            except IndexError:  # another thread was faster
                break
            if kept.is_usable():
                return kept.connection
            kept.connection.close()
        return None

    def _unreachable(self, fault: Exception) -> AdminUnreachable:
        return AdminUnreachable(f"no cluster answers at {self.url} ({_why(fault)})")

    def _connection(self) -> HTTPConnection:
        """A connection that is not open yet. Raises AdminUnreachable for what is no address."""
        from http.client import HTTPConnection, HTTPSConnection
        from urllib.parse import urlsplit

        try:
            url = urlsplit(self.url)
            host, port = url.hostname, url.port
        except ValueError as fault:
            raise AdminUnreachable(f"{self.url} is not the URL of an admin API ({fault})") from None
        if not host or url.scheme not in ("http", "https"):
            raise AdminUnreachable(f"{self.url} is not the URL of an admin API, such as {DEFAULT_ADMIN}")
        secure = url.scheme == "https"
        return (HTTPSConnection if secure else HTTPConnection)(host, port, timeout=self.timeout_s)

    def _json(self, content: bytes) -> Any:
        try:
            return json.loads(content)
        except ValueError as fault:
            raise AdminUnreachable(f"{self.url} is not an admin API of Turnstile ({fault})") from None

    def _refusal(self, status: int, content: bytes) -> AdminRefused:
        """Says Turnstile's own sentence: that of a `message`, or one for each setting that was refused."""
        try:
            body = json.loads(content)
        except ValueError:
            return AdminRefused(status, content.decode(errors="replace"), f"{self.url} answered with {status}")
        if not isinstance(body, dict):
            return AdminRefused(status, body, f"{self.url} answered with {status}")
        sentences = [body["message"]] if "message" in body else list(body.values())
        return AdminRefused(status, body, "\n".join(map(str, sentences)))


def _why(fault: Exception) -> str:
    return getattr(fault, "strerror", None) or str(fault) or type(fault).__name__


def _user() -> str:
    from getpass import getuser

    try:
        return getuser()
    except (KeyError, OSError):
        return str(os.getuid())


def _close(kept: list[_Kept]) -> None:
    while kept:
        kept.pop().connection.close()


def _close_copies() -> None:
    """Called in a fork: its copies of connections are the program's (one_kept_connection)."""
    for client in list(_clients):
        client.close()


_clients: weakref.WeakSet[AdminClient] = weakref.WeakSet()
os.register_at_fork(after_in_child=_close_copies)
