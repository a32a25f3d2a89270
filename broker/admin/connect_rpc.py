"""Unary calls of the Connect protocol: reads a request in either codec, and answers in the same; an error is JSON in both.

    request    POST with a body of `application/proto`, which rpk sends, or else JSON
    error      JSON in both codecs, {"code": "invalid_argument", "message": sentence}, with the HTTP status of the code

Source: connectrpc.com/docs/protocol, Unary-Request and Error Codes.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Annotated, Any, Final, NamedTuple, TypedDict

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from broker.admin.connect_messages import MessageType, Scalar, Values, from_protobuf, to_json, to_protobuf
from broker.admin.protobuf import NotProtobuf
from broker.admin.requests import read_bytes

PROTO: Final = "application/proto"
INVALID_ARGUMENT, NOT_FOUND, UNIMPLEMENTED, UNAVAILABLE = (
    "invalid_argument",
    "not_found",
    "unimplemented",
    "unavailable",
)
STATUS: Final[Mapping[str, int]] = {INVALID_ARGUMENT: 400, NOT_FOUND: 404, UNIMPLEMENTED: 501, UNAVAILABLE: 503}


class ConnectError(TypedDict):
    """The failure of a call of the Connect protocol."""

    code: Annotated[str, "invalid_argument, not_found, unimplemented or unavailable."]
    message: Annotated[str, "One sentence."]


class ConnectFault(Exception):
    """A call failed: one of the codes of STATUS, and a sentence."""

    def __init__(self, code: str, sentence: str) -> None:
        super().__init__(sentence)
        self.code = code

    def response(self) -> Response:
        """The answer with this error, as the protocol has it."""
        return JSONResponse({"code": self.code, "message": str(self)}, STATUS[self.code])


class ConnectCall(NamedTuple):
    """A request: the content of its body, and whether that is Protocol Buffers."""

    content: bytes
    is_proto: bool

    def values(self, message: MessageType) -> dict[str, Any]:
        """The fields of the message that was sent, numbers and text, by name. Raises ConnectFault."""
        if self.is_proto:
            try:
                return from_protobuf(message, self.content)
            except NotProtobuf as fault:
                raise ConnectFault(INVALID_ARGUMENT, f"the body is not the message: {fault}.") from None
        try:
            sent = json.loads(self.content or b"{}")
        except (ValueError, RecursionError):
            raise ConnectFault(INVALID_ARGUMENT, "the body is not JSON.") from None
        if not isinstance(sent, dict):
            raise ConnectFault(INVALID_ARGUMENT, "the body is not a JSON object.")
        return {name: value for name, value in _of_json(message, sent).items() if value is not None}

    def answer(self, message: MessageType, values: Values) -> Response:
        """The answer with a message, in the codec of the request."""
        if self.is_proto:
            return Response(to_protobuf(message, values), media_type=PROTO)
        return JSONResponse(to_json(message, values))


def _of_json(message: MessageType, sent: Mapping[str, object]) -> dict[str, Any]:
    """The values by field name. A field may be sent under its name or its JSON name, as in proto3's JSON mapping. Raises
    ConnectFault for an unknown field, or a wrong type."""
    known = {name: field for field in message.fields for name in (field.json_name, field.name)}
    found = {}
    for name, value in sent.items():
        field = known.get(name)
        if field is None:
            raise ConnectFault(INVALID_ARGUMENT, f"{name!r} is not a field of the request: it has {', '.join(known)}.")
        if value is not None and type(value) is not (str if field.kind is Scalar.TEXT else int):
            raise ConnectFault(
                INVALID_ARGUMENT, f"{name} is {'text' if field.kind is Scalar.TEXT else 'a whole number'}."
            )
        found[field.name] = value
    return found


async def read_call(request: Request) -> ConnectCall:
    """The request. Raises HTTPException, as read_bytes."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if request.headers.get("content-encoding", "identity") != "identity":
        raise ConnectFault(UNIMPLEMENTED, "a compressed body is not read.")
    return ConnectCall(await read_bytes(request), kind == PROTO)
