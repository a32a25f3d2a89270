"""A client of a cluster's admin API: for the commands, the load driver, the scripts and the tests.

A1  A call returns what the API answered, or raises AdminError with one sentence; nothing is tried twice.
A2  Nothing is imported for HTTP before the first call, so that a command which asks no cluster starts without it.

http.client is enough for JSON over one connection, and unlike urllib.request it reads no proxy from the environment: the
cluster is on this machine, or on one that was named. This module imports nothing of Turnstile: the load driver uses it.
"""

from __future__ import annotations

import json
import os
from types import TracebackType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from http.client import HTTPConnection

DEFAULT_ADMIN = "http://127.0.0.1:9644"


class AdminError(Exception):
    """A call of the admin API that failed; `str()` is one sentence."""


class AdminUnreachable(AdminError):
    """No admin API of Turnstile answers at the URL."""


class AdminRefused(AdminError):
    """The admin API answered with an error: `status` is HTTP's, `told` the JSON of its body, or its text."""

    def __init__(self, status: int, told: Any, sentence: str) -> None:
        super().__init__(sentence)
        self.status = status
        self.told = told


class AdminClient:
    """Calls of one cluster's admin API. Each call has a connection of its own; within `with`, all share one."""

    def __init__(self, url: str, token: str | None = None, *, who: str = "", timeout_s: float = 15.0) -> None:
        """`url`: http://HOST:PORT, or HOST:PORT. `who` is what the history of changes names the caller. `timeout_s`: of
        connecting, and of each wait for a part of an answer."""
        self.url = (url if "://" in url else f"http://{url}").rstrip("/")
        self.timeout_s = timeout_s
        self._headers = {"content-type": "application/json", "x-turnstile-who": who or f"turnstile ({_user()})"}
        if token:
            self._headers["authorization"] = f"Bearer {token}"
        self._kept: HTTPConnection | None = None

    def get(self, path: str, **query: Any) -> Any:
        """The JSON of the answer. Arguments of the query that are None are left out. Raises AdminError."""
        return self._json(self._call("GET", path, None, query))

    def put(self, path: str, body: Any, **query: Any) -> Any:
        """The JSON of the answer, when the change is in force. Raises AdminError."""
        return self._json(self._call("PUT", path, json.dumps(body).encode(), query))

    def post(self, path: str) -> Any:
        """The JSON of the answer. Raises AdminError."""
        return self._json(self._call("POST", path, b"", {}))

    def text(self, path: str) -> str:
        """The text of the answer, such as the page of /metrics. Raises AdminError."""
        return self._call("GET", path, None, {}).decode()

    def __enter__(self) -> AdminClient:
        self._kept = self._connection()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, fault: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._kept is not None:
            self._kept.close()
            self._kept = None

    def _call(self, method: str, path: str, body: bytes | None, query: dict[str, Any]) -> bytes:
        from http.client import HTTPException
        from urllib.parse import urlencode, urlsplit

        named = {name: value for name, value in query.items() if value is not None}
        target = urlsplit(self.url).path + path + (f"?{urlencode(named)}" if named else "")
        connection = self._kept or self._connection()
        try:
            connection.request(method, target, body, self._headers)
            answer = connection.getresponse()
            content = answer.read()
        except (HTTPException, OSError) as fault:
            connection.close()
            raise AdminUnreachable(f"no cluster answers at {self.url} ({_why(fault)})") from None
        finally:
            if connection is not self._kept:
                connection.close()
        if answer.status >= 400:
            raise self._refusal(answer.status, content)
        return content

    def _connection(self) -> HTTPConnection:
        """Connects with the first request, and again when the other side has closed the connection meanwhile."""
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
            raise AdminUnreachable(f"{self.url} is no admin API of Turnstile ({fault})") from None

    def _refusal(self, status: int, content: bytes) -> AdminRefused:
        """Says Turnstile's own sentence: that of a `message`, or one for each setting that was refused."""
        try:
            told = json.loads(content)
        except ValueError:
            return AdminRefused(status, content.decode(errors="replace"), f"{self.url} answered with {status}")
        if not isinstance(told, dict):
            return AdminRefused(status, told, f"{self.url} answered with {status}")
        sentences = [told["message"]] if "message" in told else list(told.values())
        return AdminRefused(status, told, "\n".join(map(str, sentences)))


def _why(fault: Exception) -> str:
    return getattr(fault, "strerror", None) or str(fault) or type(fault).__name__


def _user() -> str:
    from getpass import getuser

    try:
        return getuser()
    except (KeyError, OSError):
        return str(os.getuid())
