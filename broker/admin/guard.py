"""The requests that the admin API takes: those with its token, and none from a web page of another site.

every_request_carries_the_token  With a token, every request but /healthz carries it, as `Authorization: Bearer TOKEN` or as
    the password of Basic (so that a browser can ask for it).
loopback_only_without_token  Without one the API listens on loopback only, and the Host of a request is an address or
    localhost: a page whose name was made to resolve to this machine (DNS rebinding) is refused.
pages_are_of_this_origin  A request that a browser sends for a page (it has an Origin) comes from this API's own page.
"""

from __future__ import annotations

import base64
import binascii
import hmac
from ipaddress import ip_address
from urllib.parse import urlsplit

from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

NAMED = (b"x-turnstile", b"admin")
"""A header of each answer, by which turnstile.AdminClient knows that it has not asked another program."""


class Guard:
    """An ASGI application in front of another; refused requests are answered here."""

    def __init__(self, app: ASGIApp, token: str | None) -> None:
        self._app = app
        self._token = None if token is None else token.encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers: dict[bytes, bytes] = dict(scope["headers"])
        refusal = self._refusal(scope["path"], headers)

        async def send_named(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message.get("headers", ()), NAMED]
            await send(message)

        await (self._app if refusal is None else refusal)(scope, receive, send_named)

    def _refusal(self, path: str, headers: dict[bytes, bytes]) -> JSONResponse | None:
        host = headers.get(b"host", b"").decode("latin-1")
        origin = headers.get(b"origin", b"").decode("latin-1")
        if origin and _netloc(origin) != host.lower():
            return _error(403, f"a page of {origin!r} may not ask this admin API.")
        if self._token is None:
            if host and not _is_local(host):
                return _error(403, f"this admin API is not called {host!r}: ask it by its address, or as localhost.")
        elif path != "/healthz" and not self._has_token(headers, self._token):
            asked_for = {"www-authenticate": 'Basic realm="turnstile; the password is the token"'}
            return _error(401, "this admin API needs its token.", asked_for)
        return None

    @staticmethod
    def _has_token(headers: dict[bytes, bytes], token: bytes) -> bool:
        kind, _, given = headers.get(b"authorization", b"").partition(b" ")
        if kind.lower() == b"basic":
            try:
                given = base64.b64decode(given, validate=True).partition(b":")[2]
            except (binascii.Error, ValueError):
                return False
        return hmac.compare_digest(given.strip(), token)


def _is_local(host: str) -> bool:
    """True if this Host (name or address, perhaps with a port) can't be another site's name."""
    try:
        name = urlsplit(f"//{host}").hostname or ""
    except ValueError:
        return False
    if name == "localhost" or name.endswith(".localhost"):
        return True
    try:
        ip_address(name)
    except ValueError:
        return False
    return True


def _netloc(origin: str) -> str:
    """The host and port of an Origin; "" for one that has none, as `null`."""
    try:
        return urlsplit(origin).netloc.lower()
    except ValueError:
        return ""


def _error(status: int, sentence: str, headers: dict[str, str] | None = None) -> JSONResponse:
    return JSONResponse({"message": sentence, "code": status}, status, headers)
