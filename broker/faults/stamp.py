"""An answer as it goes out -> the same answer with an error, or with a throttle time: read, changed, written again.

The request has been served: as with Kafka's fault proxy, what the answer denies may have happened.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from broker.serve.call import Call
from broker.wire import apis, wire
from broker.wire.codec import Message

if TYPE_CHECKING:
    from broker.wire.responses import FetchTypes

_FETCH = 1
_LENGTH = 4


def with_error(call: Call, encoded: bytes, code: int) -> bytes | None:
    """The answer with `code` as every error code in it; None if it has none."""
    response = wire.parse_response(encoded[_LENGTH:], call.api_key, call.api_version).body
    return wire.encode_response(call, response) if _put_error(response, code) else None


def _put_error(message: Message, code: int) -> int:
    """The number of error codes that the message had."""
    found = 0
    for name in message.field_names:
        value = getattr(message, name)
        if name == "error_code":
            message.error_code = code  # type: ignore[attr-defined] # a slot of the compiled class
            found += 1
        elif isinstance(value, Message):
            found += _put_error(value, code)
        elif type(value) in (tuple, list):
            found += sum(_put_error(each, code) for each in value if isinstance(each, Message))
    return found


def with_throttle(call: Call[Any], encoded: bytes, throttle_ms: int) -> bytes | None:
    """The answer with a throttle time, a Fetch empty as a quota makes it; None if this version has no throttle time."""
    response = wire.parse_response(encoded[_LENGTH:], call.api_key, call.api_version).body
    if "throttle_time" not in response.field_names:
        return None
    if call.api_key == _FETCH:
        types: FetchTypes = call.types
        response = types.FetchResponse(error_code=0, session_id=0, responses=())
    return wire.encode_response(call, response, throttle_ms)


def header_of(frame: bytes) -> Call | None:
    """The request's header as a Call; None for what has none that can be read: the dispatcher will say so."""
    try:
        api_key, version, correlation_id, client_id, _ = wire.parse_header(frame)
    except wire.BadFrame:
        return None
    return Call(api_key, version, correlation_id, client_id) if api_key in apis.APIS else None
