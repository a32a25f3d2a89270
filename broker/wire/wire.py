"""Kafka's framing and messages: the only module that knows kio.

A *frame* here is what follows the four length bytes: header, then body. Responses are built with `types(...)`, whose
classes take keyword arguments, drop the fields their version lacks and default `throttle_time` to zero. kio's modules
are imported per API and version when first used: all of them take longer than a shard may take to start.

For any bytes the readers raise nothing but BadFrame (or UnsupportedVersion, its subclass).
"""

import dataclasses
import struct
import sys
from collections.abc import Callable
from datetime import timedelta
from functools import cache
from importlib import import_module
from types import ModuleType
from typing import Any, NamedTuple, Protocol

from broker.wire.answer_parts import Encoded, joined
from broker.wire.apis import ALTER_USER_SCRAM_CREDENTIALS, API_VERSIONS, APIS, METADATA
from broker.wire.codec import Compiler, Message
from broker.wire.primitives import ANY, COUNT_ITEMS_ABOVE_BYTES, ITEMS, Buffer, Malformed, TooMany, skip_tags
from broker.wire.shapes import Field, fields_of


class BadFrame(ValueError):
    """Not a request: truncated, trailing bytes, lengths that don't fit, text that isn't UTF-8. Close the connection."""


class TooManyItems(BadFrame):
    """A request with more array items than `most_items`: LARGE_ITEMS at once in the loop, more in turns."""


class UnsupportedVersion(BadFrame):
    """A request of an API or a version not known here. For ApiVersions answer all the same (KIP-511); else close."""

    def __init__(self, api_key: int, api_version: int, correlation_id: int) -> None:
        super().__init__(f"no API {api_key} of version {api_version}")
        self.api_key = api_key
        self.api_version = api_version
        self.correlation_id = correlation_id


MAX_THROTTLE_MS = 2**31 - 1
LARGE_ITEMS = 1000
"""A request with more array items is not read and answered at once."""
_HEADER = struct.Struct(">hhih")
_PREFIX = struct.Struct(">ii")
_FOREIGN = (Malformed, struct.error, IndexError, UnicodeDecodeError, OverflowError)


class Versioned(Protocol):
    """The part of broker.serve.call.Call that encoding needs."""

    api_key: int
    api_version: int
    correlation_id: int


# --- headers ------------------------------------------------------------------------------------------------------


def parse_header(frame: Buffer) -> tuple[int, int, int, str | None, int]:
    """(api_key, api_version, correlation_id, client_id, where the body starts).

    Raises UnsupportedVersion for APIs and versions outside APIS (it carries the correlation id), BadFrame otherwise.
    """
    try:
        api_key, api_version, correlation_id, length = _HEADER.unpack_from(frame)
    except struct.error:
        raise BadFrame("shorter than a request header") from None
    api = APIS.get(api_key)
    if api is None or not api.min_version <= api_version <= api.max_version:
        raise UnsupportedVersion(api_key, api_version, correlation_id)
    at = 10
    client_id = None
    try:
        if length >= 0:
            at = 10 + length
            if at > len(frame):
                raise BadFrame("client id longer than the frame")
            client_id = str(frame[10:at], "utf-8")
        if api_version >= api.flexible_from:
            at = at + 1 if frame[at] == 0 else skip_tags(frame, at, len(frame))
    except _FOREIGN as fault:
        raise BadFrame(f"request header: {fault}") from None
    return api_key, api_version, correlation_id, client_id, at


# --- messages -----------------------------------------------------------------------------------------------------


class Types:
    """The compiled classes of one message module, as attributes.

    A class that only other versions of the API have is a function that answers None, so that a handler may build a
    structure that its response then leaves out. A field or class that no version has is a TypeError or an AttributeError.
    """

    def __init__(self, api_key: int, version: int, side: str) -> None:
        self._api_key = api_key
        self._side = side
        self._compiler = Compiler(self._refuse_unknown, self._absent if side == "request" else None)
        module = _module(api_key, version, side)
        for entity in _entities(module):
            made = self._compiler.compile(entity)
            setattr(self, entity.__name__, made)
            if entity.__type__.name == side:
                self.top = made

    def __getattr__(self, name: str) -> Callable[..., Message]:
        if name.startswith("_") or not any(hasattr(module, name) for module in self._all_modules()):
            raise AttributeError(f"no version of {APIS[self._api_key].name} has {name}")

        setattr(self, name, _leave_out)
        return _leave_out

    def _all_modules(self) -> list[ModuleType]:
        api = APIS[self._api_key]
        return [
            _module(self._api_key, version, self._side) for version in range(api.max_version, api.min_version - 1, -1)
        ]

    def _refuse_unknown(self, class_name: str, names: list[str]) -> None:
        unknown = set(names)
        api = APIS[self._api_key]
        for version in (api.max_version, api.min_version, *range(api.max_version - 1, api.min_version, -1)):
            unknown -= _field_names(self._api_key, version, self._side, class_name)
            if not unknown:
                return
        raise TypeError(f"no version of {class_name} has {', '.join(sorted(unknown))}")

    def _absent(self, class_name: str, name: str) -> object:
        """The default of a field that this version lacks. Raises AttributeError if no version has it."""
        field = request_fields(self._api_key).get(class_name, {}).get(name)
        if field is None:
            raise AttributeError(f"no version of {class_name} has {name}")
        return field.default


def _leave_out(**_fields: object) -> Any:
    """Stands for a structure that this version lacks."""
    return None


@cache
def request_fields(api_key: int) -> dict[str, dict[str, Field]]:
    """The fields of a request and of the structures in it, by class name: those of all versions, as the latest has them.

    A field may be null if it may be in any version. Its default is the schema's, else what is shortest: 0, "", no items.
    """
    api = APIS[api_key]
    classes: dict[str, dict[str, Field]] = {}
    for version in range(api.max_version, api.min_version - 1, -1):
        for name, fields in fields_of_version(api_key, version, "request").items():
            known = classes.setdefault(name, {})
            for field in fields:
                if field.default is dataclasses.MISSING:
                    field = field._replace(default=shortest(field))
                latest = known.setdefault(field.name, field)
                known[field.name] = latest._replace(nullable=latest.nullable or field.nullable)
    return classes


def fields_of_version(api_key: int, version: int, side: str) -> dict[str, list[Field]]:
    """The fields of the structures of a message, by class name."""
    return {entity.__name__: fields_of(entity) for entity in _entities(_module(api_key, version, side))}


def shortest(field: Field) -> object:
    """The value of a field that takes the fewest bytes: 0, "", no items."""
    if field.array:
        return ()
    if field.kind.startswith("timedelta"):
        return timedelta(0)
    return {"string": "", "bytes": b"", "uuid": None, "bool": False, "entity": None}.get(field.kind, 0)


@cache
def _field_names(api_key: int, version: int, side: str, class_name: str) -> frozenset[str]:
    entity = getattr(_module(api_key, version, side), class_name, None)
    return frozenset() if entity is None else frozenset(entity.__dataclass_fields__)


def _entities(module: ModuleType) -> list[Any]:
    return [
        entity
        for entity in vars(module).values()
        if dataclasses.is_dataclass(entity) and entity.__module__ == module.__name__ and isinstance(entity, type)
    ]


def _module(api_key: int, version: int, side: str) -> ModuleType:
    """kio's module of one message. It would import hypothesis where that is installed, only to register strategies."""
    hidden = "kio.static.primitive" not in sys.modules and "hypothesis" not in sys.modules
    if hidden:
        sys.modules["hypothesis"] = None  # type: ignore[assignment]
    try:
        return import_module(f"kio.schema.{APIS[api_key].name}.v{version}.{side}")
    finally:
        if hidden:
            del sys.modules["hypothesis"]


@cache
def _types(api_key: int, version: int, side: str) -> Types:
    api = APIS.get(api_key)
    if api is None or not api.min_version <= version <= api.max_version:
        raise UnsupportedVersion(api_key, version, 0)
    return Types(api_key, version, side)


@cache
def types(api_key: int, version: int) -> Any:
    """The response classes of an API in a version. At run time a Types; type checkers see the API's class in responses.py."""
    return _types(api_key, version, "response")


@cache
def request_types(api_key: int, version: int) -> Types:
    return _types(api_key, version, "request")


MORE_ALLOWED = frozenset({METADATA, ALTER_USER_SCRAM_CREDENTIALS})
"""See parse_body."""
COMPILED: set[bytes] = set()
"""The API and version (four bytes) of requests that are compiled already. Compiling one takes up to 0.2 s of CPU time."""


def compile_api(api_key: int, version: int) -> None:
    """Compiles what requests and responses of the version consist of; for another thread than the loop's."""
    request_types(api_key, version)
    types(api_key, version)
    request_fields(api_key)
    # The latest version's module: fields that this version lacks are looked up there.
    _module(api_key, APIS[api_key].max_version, "response")
    COMPILED.add(struct.pack(">hh", api_key, version))


def parse_body(frame: Buffer, offset: int, api_key: int, version: int, most_items: int = LARGE_ITEMS) -> Any:
    """The request that starts at `offset` and fills the frame to its end; raises BadFrame.

    TooManyItems if its arrays have more than `most_items` in all, and the frame more than COUNT_ITEMS_ABOVE_BYTES.

    Bytes behind a request are an error, with two exceptions that librdkafka 2.x writes too long and Kafka accepts: Metadata for all
    topics in a flexible version, where it writes the array's length in four bytes instead of one, and AlterUserScramCredentials.
    """
    message, more_allowed = request_types(api_key, version).top, api_key in MORE_ALLOWED
    if len(frame) <= COUNT_ITEMS_ABOVE_BYTES:
        return _parse(message, frame, offset, more_allowed=more_allowed)
    ITEMS.begin(most_items)
    try:
        return _parse(message, frame, offset, more_allowed=more_allowed)
    finally:
        ITEMS.begin(ANY)


def _parse(message: type[Message], frame: Buffer, offset: int, *, more_allowed: bool = False) -> Any:
    try:
        parsed, at = message.read(frame, offset, len(frame))
    except TooMany as fault:
        raise TooManyItems(f"{message.__name__}: {fault}") from None
    except _FOREIGN as fault:
        raise BadFrame(f"{message.__name__}: {fault}") from None
    if at != len(frame) and not more_allowed:
        raise BadFrame(f"{message.__name__}: {len(frame) - at} bytes behind its end")
    return parsed


def body_size(call: Versioned, encoded: Encoded) -> int:
    """Bytes of a response without its length and header."""
    return len(encoded) - (9 if call.api_version >= APIS[call.api_key].flexible_from else 8)


def encode_response(call: Versioned, response: Message, throttle_ms: int = 0) -> bytes:
    """As encode_answer, all in memory."""
    return bytes(encode_answer(call, response, throttle_ms))


def encode_answer(call: Versioned, response: Message, throttle_ms: int = 0) -> Encoded:
    """The whole response: length, header, body, with `throttle_ms` in its throttle time if this version has one. Records of
    a Fetch may stay in their files."""
    _tell_throttle(response, throttle_ms)
    parts: list[Any] = [b""]
    if call.api_version >= APIS[call.api_key].flexible_from and call.api_key != API_VERSIONS:
        parts.append(b"\0")
    response.write(parts.append)
    parts[0] = _PREFIX.pack(sum(map(len, parts)) + 4, call.correlation_id)
    return joined(parts)


def _tell_throttle(response: Message, throttle_ms: int) -> None:
    if throttle_ms and "throttle_time" in response.field_names:
        response.throttle_time = min(throttle_ms, MAX_THROTTLE_MS)  # type: ignore[misc] # a slot of the compiled class


def encode_large_response(call: Versioned, response: Message, throttle_ms: int = 0) -> bytes:
    """As `encode_response` does, for another thread than the loop's: no step takes long, as joining a million parts does."""
    _tell_throttle(response, throttle_ms)
    flexible = call.api_version >= APIS[call.api_key].flexible_from and call.api_key != API_VERSIONS
    encoded = bytearray(_PREFIX.size + flexible)
    response.write(lambda part: encoded.extend(bytes(part)))
    _PREFIX.pack_into(encoded, 0, len(encoded) - 4, call.correlation_id)
    return bytes(encoded)


# --- the client's side, for tests and for calls between brokers ---------------------------------------------------


def encode_request(call: Versioned, request: Message, client_id: str | None = None) -> bytes:
    """A whole request, with its length, as a client sends it."""
    name = b"" if client_id is None else client_id.encode()
    parts = [b"", name]
    if call.api_version >= APIS[call.api_key].flexible_from:
        parts.append(b"\0")
    request.write(parts.append)
    length = -1 if client_id is None else len(name)
    parts[0] = _HEADER.pack(call.api_key, call.api_version, call.correlation_id, length)
    body = b"".join(parts)
    return struct.pack(">i", len(body)) + body


class ParsedResponse(NamedTuple):
    """`body` is an instance of the response class of its API and version."""

    correlation_id: int
    body: Any


def parse_response(frame: Buffer, api_key: int, version: int) -> ParsedResponse:
    """Parses a frame without its length. Raises BadFrame."""
    try:
        (correlation_id,) = struct.unpack_from(">i", frame)
        at = 4
        if version >= APIS[api_key].flexible_from and api_key != API_VERSIONS:
            at = skip_tags(frame, 4, len(frame))
    except _FOREIGN as fault:
        raise BadFrame(f"response header: {fault}") from None
    return ParsedResponse(correlation_id, _parse(types(api_key, version).top, frame, at))
