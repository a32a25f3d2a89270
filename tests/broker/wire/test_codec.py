"""The compiled codec against kio's own reader and writer, and against hostile bytes."""

import contextlib
import dataclasses
import io
import random
import struct
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kio.schema.errors import ErrorCode
from kio.serial import entity_reader, entity_writer

from broker.serve.call import Call
from broker.wire import apis, wire
from broker.wire.shapes import FIXED, fields_of

MESSAGES = [
    (api_key, version, side)
    for api_key, api in apis.APIS.items()
    for version in range(api.min_version, api.max_version + 1)
    for side in ("request", "response")
]
BITS = {"b": 8, "h": 16, "i": 32, "q": 64}


def kio_class(message: tuple[int, int, str]) -> type:
    return next(
        entity
        for entity in vars(wire._module(*message)).values()
        if dataclasses.is_dataclass(entity) and entity.__type__.name == message[2]
    )


def scalar(kind: str, nullable: bool, rng: random.Random) -> Any:
    if nullable and kind not in ("uuid", "datetime_i64") and rng.random() < 0.3:
        return None
    if kind == "string":
        return "".join(rng.choices("aä漢 -", k=rng.choice((0, 1, 5, 200))))
    if kind == "bytes":
        return rng.randbytes(rng.choice((0, 1, 127, 128, 20_000)))
    if kind == "bool":
        return rng.random() < 0.5
    if kind == "uuid":
        return rng.choice((None, UUID(int=rng.getrandbits(128) | 1)))
    if kind.startswith("timedelta"):
        return timedelta(milliseconds=rng.choice((0, -1, 1, 2**31 - 1)))
    if kind == "datetime_i64":
        moment = datetime(2024, 1, 1, tzinfo=UTC) + timedelta(milliseconds=rng.getrandbits(30))
        return rng.choice((None, moment)) if nullable else moment
    if kind == "error_code":
        return ErrorCode(rng.choice((0, 1, 35, 100)))
    if kind == "float64":
        return rng.choice((0.0, -1.5, 1e300))
    code = FIXED[kind]
    if code.isupper():
        return rng.getrandbits(BITS[code.lower()])
    return rng.choice((0, -1, 1, rng.getrandbits(BITS[code] - 1)))


def build(entity: type, make: Any, rng: random.Random) -> Any:
    """An instance of `entity`'s shape, made by `make(class)` with random values from `rng`."""

    def one(field: Any) -> Any:
        if field.kind != "entity":
            return scalar(field.kind, field.nullable and not field.array, rng)
        if field.nullable and not field.array and rng.random() < 0.3:
            return None
        return build(field.entity, make, rng)

    values = {}
    for field in fields_of(entity):
        if field.array:
            null = field.nullable and rng.random() < 0.3
            values[field.name] = None if null else tuple(one(field) for _ in range(rng.choice((0, 1, 3))))
        else:
            values[field.name] = one(field)
    return make(entity)(**values)


def same(ours: Any, kios: Any) -> bool:
    if dataclasses.is_dataclass(kios):
        return all(same(getattr(ours, name), getattr(kios, name)) for name in ours.field_names)
    if isinstance(kios, tuple):
        return len(ours) == len(kios) and all(map(same, ours, kios))
    return bool(ours == kios)


@pytest.mark.parametrize("message", MESSAGES, ids=str)
def test_reads_what_kio_writes_and_writes_what_kio_reads(message: tuple[int, int, str]) -> None:
    kios = kio_class(message)
    ours = wire._types(*message)
    for seed in range(5):
        theirs = build(kios, lambda entity: entity, random.Random(seed))
        buffer = io.BytesIO()
        entity_writer(kios)(buffer, theirs)
        raw = buffer.getvalue()

        parsed = wire._parse(ours.top, raw, 0)
        assert same(parsed, theirs)

        parts: list[bytes] = []
        parsed.write(parts.append)
        again, size = entity_reader(kios)(b"".join(parts), 0)
        assert same(parsed, again)
        assert size == sum(map(len, parts))


def test_the_table_of_apis_says_what_kio_has_and_where_flexible_versions_start() -> None:
    from kio.index import load_request_schema
    from kio.schema.index import api_key_map, schema_name_map

    for api_key, api in apis.APIS.items():
        assert api_key_map[api_key] == api.name
        assert set(range(api.min_version, api.max_version + 1)) <= set(schema_name_map[api.name])
        for version in range(api.min_version, api.max_version + 1):
            assert load_request_schema(api_key, version).__flexible__ == (version >= api.flexible_from)


SEEDS = st.integers(min_value=0, max_value=2**32)
REQUESTS = [message[:2] for message in MESSAGES if message[2] == "request"]


@given(raw=st.binary(max_size=200), target=st.sampled_from(REQUESTS))
def test_random_bytes_parse_or_are_a_bad_frame(raw: bytes, target: tuple[int, int]) -> None:
    with contextlib.suppress(wire.BadFrame):
        wire.parse_body(raw, 0, *target)
    with contextlib.suppress(wire.BadFrame):
        wire.parse_header(struct.pack(">hhi", *target, 1) + raw)


@given(target=st.sampled_from(REQUESTS), seed=SEEDS, data=st.data())
def test_truncated_and_lengthened_and_flipped_frames_parse_or_are_bad(
    target: tuple[int, int], seed: int, data: st.DataObject
) -> None:
    kios = kio_class((*target, "request"))
    buffer = io.BytesIO()
    entity_writer(kios)(buffer, build(kios, lambda entity: entity, random.Random(seed)))
    raw = buffer.getvalue()

    if raw:
        cut = data.draw(st.integers(0, len(raw) - 1))
        with pytest.raises(wire.BadFrame):
            wire.parse_body(raw[:cut], 0, *target)
        flipped = bytearray(raw)
        for _ in range(data.draw(st.integers(1, 4))):
            flipped[data.draw(st.integers(0, min(len(raw), 300) - 1))] ^= 1 << data.draw(st.integers(0, 7))
        with contextlib.suppress(wire.BadFrame):
            wire.parse_body(bytes(flipped), 0, *target)
    if target[0] not in wire.MORE_ALLOWED:
        with pytest.raises(wire.BadFrame):
            wire.parse_body(raw + b"\0", 0, *target)


@pytest.mark.parametrize("raw", [b"\0\xff\xff\0\0\0\0\xff\xff\xff\xff\x07", b"\0\xff\xff\0\0\0\0\xff\xff\xff\xff\x0f"])
def test_an_array_that_claims_billions_of_items_costs_nothing(raw: bytes) -> None:
    with pytest.raises(wire.BadFrame, match=r"more items than bytes|varint"):
        wire.parse_body(raw, 0, 0, 11)


@pytest.mark.parametrize("version", [0, 1, 4])
def test_a_text_that_is_too_long_for_the_wire_is_cut_and_says_so(version: int) -> None:
    """As of an error message that quotes a name of 32,767 bytes."""
    key, first = {0: (50, 0), 1: (32, 1), 4: (32, 4)}[version]
    types = wire.types(key, first)
    long = "ä" * 20_000
    if key == 50:
        response = types.DescribeUserScramCredentialsResponse(error_code=1, error_message=long, results=())
    else:
        result = types.DescribeConfigsResult(
            error_code=1, error_message=long, resource_type=2, resource_name="t", configs=()
        )
        response = types.DescribeConfigsResponse(results=(result,))
    parsed = wire.parse_response(wire.encode_response(Call(key, first), response)[4:], key, first).body
    told = parsed.error_message if key == 50 else parsed.results[0].error_message
    assert told.endswith("ä...") and len(told.encode()) in (32_766, 32_767)
