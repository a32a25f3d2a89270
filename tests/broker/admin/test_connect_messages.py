"""connect_messages.py: a message in JSON and in Protocol Buffers, byte by byte as protoc's own encoders write it."""

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.admin.connect_messages import from_protobuf, nested, to_json, to_protobuf
from broker.admin.kafka_connection import KAFKA_CONNECTION, LIST_REQUEST, LIST_RESPONSE
from broker.admin.protobuf import LENGTH, VARINT, NotProtobuf, fields

CONNECTION = nested(
    {
        "node_id": 1,
        "shard_id": 0,
        "uid": "u",
        "state": "KAFKA_CONNECTION_STATE_OPEN",
        "open_time": 1_760_537_755_755_065_000,
        "authentication_info.state": "AUTHENTICATION_STATE_SUCCESS",
        "authentication_info.user_principal": "é",
        "tls_info.enabled": True,
        "source.port": 300,
        "idle_duration": 1_500_000_000,
        "in_flight_requests.has_more_requests": False,
        "total_request_statistics.request_count": 2**40,
    }
)


def test_json_has_what_there_is() -> None:
    assert to_json(KAFKA_CONNECTION, CONNECTION) == {
        "nodeId": 1,
        "shardId": 0,
        "uid": "u",
        "state": "KAFKA_CONNECTION_STATE_OPEN",
        "openTime": "2025-10-15T14:15:55.755065000Z",
        "authenticationInfo": {"state": "AUTHENTICATION_STATE_SUCCESS", "userPrincipal": "é"},
        "tlsInfo": {"enabled": True},
        "source": {"port": 300},
        "idleDuration": "1.5s",
        "inFlightRequests": {"hasMoreRequests": False},
        "totalRequestStatistics": {"requestCount": "1099511627776"},
    }
    assert to_json(KAFKA_CONNECTION, {"idle_duration": 0}) == {"idleDuration": "0s"}


def test_protocol_buffers_have_the_numbers_of_the_proto_file() -> None:
    assert to_protobuf(KAFKA_CONNECTION, CONNECTION) == b"".join(
        [
            b"\x08\x01",  # node_id = 1; shard_id 0 is the default, and left out
            b"\x1a\x01u",  # uid = 3
            b"\x20\x01",  # state = 4
            b"\x2a\x0c\x08\x9b\xd9\xbe\xc7\x06\x10\xa8\xc1\x85\xe8\x02",  # open_time = 5: seconds, nanos
            b"\x3a\x06\x08\x02\x1a\x02\xc3\xa9",  # authentication_info = 7
            b"\x4a\x02\x08\x01",  # tls_info = 9
            b"\x52\x03\x10\xac\x02",  # source = 10
            b"\x9a\x01\x08\x08\x01\x10\x80\xca\xb5\xee\x01",  # idle_duration = 19
            b"\xa2\x01\x00",  # in_flight_requests = 20, of defaults
            b"\xaa\x01\x07\x18\x80\x80\x80\x80\x80\x20",  # statistics = 21
        ]
    )
    two = to_protobuf(LIST_RESPONSE, {"connections": [CONNECTION, {}], "total_size": 2})
    assert [(each.number, each.kind) for each in fields(two)] == [(1, LENGTH), (1, LENGTH), (2, VARINT)]


@given(st.integers(-(2**31), 2**31 - 1), st.text(), st.text())
def test_a_request_is_read_as_it_was_written(page_size: int, filter_: str, order_by: str) -> None:
    values = {"page_size": page_size, "filter": filter_, "order_by": order_by}
    assert from_protobuf(LIST_REQUEST, to_protobuf(LIST_REQUEST, values)) == {
        name: value for name, value in values.items() if value
    }


def test_fields_of_a_newer_request_are_passed_over() -> None:
    assert from_protobuf(LIST_REQUEST, b"\x08\x05\xa2\x06\x03abc\xa8\x06\x01") == {"page_size": 5}


@pytest.mark.parametrize(
    "data", [b"\x12", b"\x12\x05ab", b"\x12\x02\xff\xfe", b"\x10\x01", b"\x0a\x01a", b"\x08" + b"\xff" * 11]
)
def test_other_bytes_are_refused(data: bytes) -> None:
    with pytest.raises(NotProtobuf):
        from_protobuf(LIST_REQUEST, data)


@given(st.binary(max_size=40))
def test_any_bytes_are_read_or_refused(data: bytes) -> None:
    with contextlib.suppress(NotProtobuf):
        from_protobuf(LIST_REQUEST, data)
