"""Compressed records are unpacked whole, within a bound, or not at all."""

import contextlib
import gzip
import zlib

import cramjam
import pytest
from batches import COMPRESS
from hypothesis import given
from hypothesis import strategies as st

from broker.storage.compression import MAX_UNPACKED_BYTES, NAMES, NotUnpacked, unpacked

CODECS = pytest.mark.parametrize("codec", NAMES)


@CODECS
@given(data=st.binary(min_size=1, max_size=5000), times=st.integers(1, 50))
def test_what_was_compressed_comes_back(codec: int, data: bytes, times: int) -> None:
    assert unpacked(codec, COMPRESS[codec](data * times)) == data * times


def test_the_frames_of_snappy_java_are_known(codec: int = 2) -> None:
    blocks = [bytes(cramjam.snappy.compress_raw(part)) for part in (b"one" * 100, b"two")]
    framed = b"\x82SNAPPY\0\0\0\0\1\0\0\0\1" + b"".join(len(block).to_bytes(4, "big") + block for block in blocks)
    assert unpacked(codec, framed) == b"one" * 100 + b"two"
    with pytest.raises(NotUnpacked, match="cut off"):
        unpacked(codec, framed[:-1])


def test_raw_deflate_is_no_gzip() -> None:
    with pytest.raises(NotUnpacked):
        unpacked(1, zlib.compress(b"data"))


@CODECS
def test_more_than_the_bound_is_not_unpacked(codec: int) -> None:
    full = bytes(MAX_UNPACKED_BYTES)
    assert len(unpacked(codec, COMPRESS[codec](full))) == len(full)
    with pytest.raises(NotUnpacked, match="into 16777216 bytes"):
        unpacked(codec, COMPRESS[codec](full + b"x"))


@CODECS
@given(data=st.binary(max_size=200))
def test_anything_is_unpacked_or_refused(codec: int, data: bytes) -> None:
    with contextlib.suppress(NotUnpacked):
        assert len(unpacked(codec, data)) <= MAX_UNPACKED_BYTES


@CODECS
@given(cut=st.integers(1, 40))
def test_a_torn_end_is_refused(codec: int, cut: int) -> None:
    whole = COMPRESS[codec](bytes(range(256)) * 4)
    with pytest.raises(NotUnpacked):
        unpacked(codec, whole[: -min(cut, len(whole) - 1)])


def test_gzip_made_by_a_client_with_other_settings() -> None:
    assert unpacked(1, gzip.compress(b"data", compresslevel=1, mtime=5)) == b"data"
