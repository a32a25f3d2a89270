"""Headers, the classes handlers build responses with, and whole frames."""

import struct
import subprocess
import sys
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.serve.call import Call
from broker.wire import apis, wire
from shards.settings.config_def import broker_setting

PRODUCE, FETCH, METADATA, SASL_HANDSHAKE = 0, 1, 3, 17


def header(api_key: int, version: int, client_id: bytes | None = b"c", tags: bytes = b"") -> bytes:
    length = -1 if client_id is None else len(client_id)
    return struct.pack(">hhih", api_key, version, 77, length) + (client_id or b"") + tags


def test_headers_with_and_without_tagged_fields() -> None:
    assert wire.parse_header(header(METADATA, 8) + b"body") == (METADATA, 8, 77, "c", 11)
    assert wire.parse_header(header(METADATA, 9, tags=b"\0") + b"body") == (METADATA, 9, 77, "c", 12)
    tags = b"\x02" + b"\x05\x03abc" + b"\x81\x01\x01x"
    assert wire.parse_header(header(METADATA, 9, tags=tags)) == (METADATA, 9, 77, "c", 11 + len(tags))


def test_a_client_id_may_be_null_or_empty() -> None:
    assert wire.parse_header(header(METADATA, 8, None))[3] is None
    assert wire.parse_header(header(METADATA, 8, b""))[3] == ""


@pytest.mark.parametrize(("api_key", "version"), [(9999, 0), (-1, 0), (METADATA, 99), (METADATA, -1), (PRODUCE, 2)])
def test_what_is_not_known_says_which_it_was(api_key: int, version: int) -> None:
    with pytest.raises(wire.UnsupportedVersion) as why:
        wire.parse_header(header(api_key, version))
    assert (why.value.api_key, why.value.api_version, why.value.correlation_id) == (api_key, version, 77)


@given(frame=st.binary(max_size=60))
def test_any_other_header_is_a_bad_frame(frame: bytes) -> None:
    try:
        *_, at = wire.parse_header(frame)
    except wire.BadFrame:
        return
    assert 10 <= at <= len(frame)


@given(cut=st.integers(0, 16), version=st.sampled_from([8, 9]))
def test_a_truncated_header_is_a_bad_frame(cut: int, version: int) -> None:
    whole = header(METADATA, version, b"client", b"\x01\x05\x03abc" if version == 9 else b"")
    with pytest.raises(wire.BadFrame):
        wire.parse_header(whole[: min(cut, len(whole) - 1)])


def test_a_client_id_that_is_not_utf_8_is_a_bad_frame() -> None:
    with pytest.raises(wire.BadFrame):
        wire.parse_header(header(METADATA, 8, b"\xff"))


def test_a_handler_gives_what_any_version_has_and_the_others_leave_it_out() -> None:
    for version in range(3, 14):
        types = wire.types(PRODUCE, version)
        made = types.ProduceResponse(
            responses=(), node_endpoints=(types.NodeEndpoint(node_id=0, host="h", port=1),) if version >= 10 else ()
        )
        assert made.throttle_time == timedelta(0)
        assert hasattr(made, "node_endpoints") == (version >= 10)


def test_a_class_that_only_other_versions_have_makes_nothing() -> None:
    assert wire.types(PRODUCE, 3).NodeEndpoint(node_id=0, host="h", port=1) is None
    assert wire.types(PRODUCE, 10).NodeEndpoint(node_id=0, host="h", port=1).host == "h"


def test_what_no_version_has_is_a_mistake() -> None:
    with pytest.raises(TypeError, match="no version of ProduceResponse has respones"):
        wire.types(PRODUCE, 9).ProduceResponse(responses=(), respones=())
    with pytest.raises(AttributeError):
        _ = wire.types(PRODUCE, 9).ProduceAnswer
    with pytest.raises(TypeError, match="responses"):
        wire.types(PRODUCE, 9).ProduceResponse()


@pytest.mark.parametrize("version", [3, 9, 13])
def test_the_throttle_time_is_put_in_when_the_response_is_encoded(version: int) -> None:
    call = Call(PRODUCE, version, 7)
    frame = wire.encode_response(call, call.types.ProduceResponse(responses=()), throttle_ms=1234)
    assert int.from_bytes(frame[:4], "big") == len(frame) - 4
    correlation_id, parsed = wire.parse_response(frame[4:], PRODUCE, version)
    assert (correlation_id, parsed.throttle_time) == (7, timedelta(milliseconds=1234))


def test_a_throttle_time_beyond_32_bits_is_the_largest_there_is() -> None:
    call = Call(PRODUCE, 9, 7)
    frame = wire.encode_response(call, call.types.ProduceResponse(responses=()), throttle_ms=1 << 40)
    assert wire.parse_response(frame[4:], PRODUCE, 9).body.throttle_time == timedelta(milliseconds=2**31 - 1)


def test_a_response_without_throttle_time_goes_out_without() -> None:
    call = Call(SASL_HANDSHAKE, 1, 7)
    made = call.types.SaslHandshakeResponse(error_code=0, mechanisms=("PLAIN",))
    assert wire.encode_response(call, made, throttle_ms=5) == wire.encode_response(call, made)


def test_bytes_behind_a_request_make_it_a_bad_frame() -> None:
    call = Call(FETCH, 12, 7)
    types = wire.request_types(FETCH, 12)
    request = types.FetchRequest(max_wait=timedelta(milliseconds=1), min_bytes=1, topics=(), forgotten_topics_data=())
    frame = wire.encode_request(call, request, "c")[4:]
    *_, at = wire.parse_header(frame)
    assert wire.parse_body(frame, at, FETCH, 12) == request
    with pytest.raises(wire.BadFrame, match="1 bytes behind"):
        wire.parse_body(frame + b"x", at, FETCH, 12)


def test_librdkafkas_metadata_request_for_all_topics_is_read() -> None:
    frame = bytes.fromhex("0003000d00000003000772646b61666b610000000000010000")
    *_, at = wire.parse_header(frame)
    assert wire.parse_body(frame, at, METADATA, 13).topics is None


def test_importing_the_wire_imports_nothing_of_kio() -> None:
    code = "import sys, broker.wire.wire, broker.kafka.cluster.api_versions as a; a.SupportedVersions([]); "
    code += "print([name for name in sys.modules if name.startswith('kio')])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, check=True).stdout.strip() == b"[]"


def test_each_api_can_have_a_cost_by_its_name() -> None:
    names = [apis.api_name(key) for key in apis.APIS]
    cost = broker_setting("turnstile.request.cost").kind.parse(",".join(f"{name}=1ms" for name in names))
    assert [api for api, *_ in cost] == names
