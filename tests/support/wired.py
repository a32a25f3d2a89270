"""One connection to any broker, Turnstile or another, and whole requests over it: every API and version the codec knows.

Fields that a test does not care about are the dullest that Kafka reads: no elements, "", 0, False, null where it may be.
"""

from __future__ import annotations

import dataclasses
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from importlib import import_module
from typing import Any

from request_bytes import answer

from broker.serve.call import Call
from broker.wire import apis, wire
from broker.wire.shapes import Field, fields_of

KEYS = {api.name: key for key, api in apis.APIS.items()}
ANSWER_S = 30.0
_DULL = {
    "string": "",
    "bytes": b"",
    "bool": False,
    "uuid": None,
    "timedelta_i32": timedelta(0),
    "timedelta_i64": timedelta(0),
}


class Wired:
    """`ask` sends one request and returns its response; `size` is that of the last response, without its length."""

    def __init__(self, sock: socket.socket, client_id: str) -> None:
        self.sock = sock
        self.client_id = client_id
        self.size = 0

    def types(self, api: str, version: int) -> Any:
        """The classes of a request, by name."""
        return wire.request_types(KEYS[api], version)

    def ask(self, api: str, version: int, **fields: Any) -> Any:
        self.send(api, version, **fields)
        return self.answer(api, version)

    def send(self, api: str, version: int, **fields: Any) -> None:
        call = Call(KEYS[api], version, 7)
        request = self.types(api, version).top(**{**dull(api, version), **fields})
        self.sock.sendall(wire.encode_request(call, request, self.client_id))

    def answer(self, api: str, version: int) -> Any:
        frame = answer(self.sock)
        self.size = len(frame)
        correlation_id, response = wire.parse_response(frame, KEYS[api], version)
        assert correlation_id == 7
        return response


@contextmanager
def wired(bootstrap: str, client_id: str = "wired") -> Iterator[Wired]:
    """`bootstrap` is "host:port"."""
    host, _, port = bootstrap.rpartition(":")
    with socket.create_connection((host, int(port)), timeout=ANSWER_S) as sock:
        yield Wired(sock, client_id)


def dull(api: str, version: int) -> dict[str, Any]:
    """Values for all fields of a request that have no default."""
    module = import_module(f"kio.schema.{api}.v{version}.request")
    top = next(
        each for each in vars(module).values() if getattr(getattr(each, "__type__", None), "name", "") == "request"
    )
    return {field.name: dull_value(field) for field in fields_of(top) if field.default is dataclasses.MISSING}


def dull_value(field: Field) -> Any:
    if field.array:
        return None if field.nullable else ()
    if field.nullable:
        return None
    return _DULL.get(field.kind, 0)


class Dialogue:
    """`said`: [what was asked, the answer] each."""

    def __init__(self, wire: Wired) -> None:
        self.wire = wire
        self.said: list[list[Any]] = []

    def say(self, asked: str, answer: Any) -> None:
        self.said.append([asked, answer])
