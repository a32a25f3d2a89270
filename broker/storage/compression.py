"""The records of a compressed batch, unpacked so that they can be counted and checked. The batch is stored as it came.

Source: CompressionType of Kafka; KIP-110 (zstd). Snappy comes framed as snappy-java does it, or raw as other clients send it.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable

import cramjam

from broker.storage.records import HEADER
from broker.wire.primitives import Buffer

MAX_UNPACKED_BYTES = 16 << 20
"""A batch of more is refused. Kafka's clients bound a request before it is compressed, by default at 1 MB."""
NAMES = {1: "gzip", 2: "snappy", 3: "lz4", 4: "zstd"}
_SNAPPY_JAVA = b"\x82SNAPPY\0"
_BLOCK = 32 << 10  # of snappy-java
_SNAPPY_JAVA_HEADER = 16  # its name, a version and a compatible version, four bytes each

_room = bytearray()
"""The room for what is unpacked; used again by each batch."""


class NotUnpacked(ValueError):
    """The data is not of its codec, or unpacks to more than MAX_UNPACKED_BYTES."""


def unpacked(codec: int, data: bytes) -> memoryview:
    """The records in `data`, valid until the next call. `codec`: one of NAMES. Raises NotUnpacked."""
    if not _room:
        _room.extend(bytes(MAX_UNPACKED_BYTES))
    try:
        size = _CODECS[codec](data)
    except (zlib.error, ValueError, cramjam.DecompressionError) as fault:
        raise NotUnpacked(
            f"The {NAMES[codec]} data can't be unpacked into {MAX_UNPACKED_BYTES} bytes: {fault}."
        ) from None
    return memoryview(_room)[:size]


def packed(codec: int, data: bytes) -> bytes:
    """The records as a batch of that codec has them; snappy framed as snappy-java does it. `codec` 0: as they are."""
    return _PACK[codec](data) if codec else data


def _pack_snappy(data: bytes) -> bytes:
    blocks = [bytes(cramjam.snappy.compress_raw(data[at : at + _BLOCK])) for at in range(0, len(data), _BLOCK)]
    return _SNAPPY_JAVA + b"\0\0\0\1\0\0\0\1" + b"".join(len(block).to_bytes(4, "big") + block for block in blocks)


def records_of(batch_bytes: bytes, codec: int) -> tuple[Buffer, int]:
    """The records of a batch and where they start in that buffer; `codec` 0: as they are. Raises NotUnpacked."""
    return (unpacked(codec, batch_bytes[HEADER.size :]), 0) if codec else (batch_bytes, HEADER.size)


def _gzip(data: bytes) -> int:
    stream = zlib.decompressobj(wbits=31)
    records = stream.decompress(data, MAX_UNPACKED_BYTES)
    if not stream.eof:
        raise ValueError("it has no end")
    _room[: len(records)] = records
    return len(records)


def _snappy(data: bytes) -> int:
    if not data.startswith(_SNAPPY_JAVA):
        return _snappy_block(data, 0)
    at, size = _SNAPPY_JAVA_HEADER, 0
    while at < len(data):
        length = int.from_bytes(data[at : at + 4], "big")
        at += 4 + length
        if at > len(data):
            raise ValueError("a block is cut off")
        size += _snappy_block(data[at - length : at], size)
    return size


def _snappy_block(block: bytes, at: int) -> int:
    size: int = cramjam.snappy.decompress_raw_len(block)
    if at + size > MAX_UNPACKED_BYTES:
        raise ValueError("it is too large")
    return int(cramjam.snappy.decompress_raw_into(block, memoryview(_room)[at : at + size]))


def _lz4(data: bytes) -> int:
    return int(cramjam.lz4.decompress_into(data, _room))


def _zstd(data: bytes) -> int:
    return int(cramjam.zstd.decompress_into(data, _room))


_CODECS: dict[int, Callable[[bytes], int]] = {1: _gzip, 2: _snappy, 3: _lz4, 4: _zstd}
_PACK: dict[int, Callable[[bytes], bytes]] = {
    1: lambda data: zlib.compress(data, wbits=31),
    2: _pack_snappy,
    3: lambda data: bytes(cramjam.lz4.compress(data)),
    4: lambda data: bytes(cramjam.zstd.compress(data)),
}
