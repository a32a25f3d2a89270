"""Committed offsets: one append-only file per group under DIR/b<broker>/groups/, all of it also in memory.

A record is length (u32, big endian), crc32 (u32) of the body, and a msgpack body; one commit request is one record
and one write, so it is there whole or not at all. Nothing is fsynced, as Kafka's default is: what was acknowledged
survives a killed process. Files of other shards are left alone, so the number of shards may change between starts.

    [GROUP, id]                                                first record: file names can't hold every group id
    [GENERATION, n, protocol type]                             so that generations keep rising after a restart
    [COMMIT, time ms, [[topic, id, [[partition, offset, leader epoch, metadata], ...]], ...]]
    [DROP, [[topic, partition], ...]]

F1  A file's whole records, in order, give what memory holds.
F2  After a failed write the file is as it was before it.
F3  A file is at most MAX_WASTE times what its group holds, or COMPACT_BYTES.
"""

from __future__ import annotations

import hashlib
import os
import struct
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote, unquote
from zlib import crc32

import msgpack

GROUP, GENERATION, COMMIT, DROP = range(4)
SUFFIX, ASIDE = ".offsets", ".new"
HASHED = "%sha256-"
"""How the file name of a long group id begins; no quoted name has "%s" in it."""
COMPACT_BYTES = 64 << 10
MAX_WASTE = 4
_MAX_OPEN = 64
_MAX_RECORD = 64 << 20
_FRAME = struct.Struct(">II")

Place = tuple[str, int]  # (topic, partition)


class CommittedOffset(NamedTuple):
    """`topic_id` (hex) ties it to one incarnation of the topic: an offset of a deleted topic is never given out."""

    offset: int
    leader_epoch: int
    metadata: str
    committed_ms: int
    topic_id: str


@dataclass(slots=True)
class _Kept:
    offsets: dict[Place, CommittedOffset] = field(default_factory=dict)
    generation: int = 0
    protocol_type: str | None = None
    size: int = 0
    compact_at: int = COMPACT_BYTES


class CommittedOffsets:
    """The groups of one shard: `owns(group id)` says which files in the directory are its own."""

    def __init__(self, directory: Path, owns: Callable[[str], bool] = lambda _: True) -> None:
        self._directory = directory
        self._groups: dict[str, _Kept] = {}
        self._open: OrderedDict[str, int] = OrderedDict()
        directory.mkdir(parents=True, exist_ok=True)
        for path in sorted(directory.iterdir()):
            name = path.name.removesuffix(SUFFIX).removesuffix(ASIDE)
            if not name.startswith(HASHED) and not owns(unquote(name)):
                continue
            if path.name.endswith(SUFFIX):
                self._load(path, owns)
            elif not name.startswith(HASHED):
                path.unlink()  # a compaction that was killed before its file was in place

    def close(self) -> None:
        while self._open:
            os.close(self._open.popitem()[1])

    # --- reading -----------------------------------------------------------------------------------------------

    def __contains__(self, group: str) -> bool:
        return group in self._groups

    def __iter__(self) -> Iterator[str]:
        return iter(list(self._groups))

    def of(self, group: str) -> dict[Place, CommittedOffset]:
        """What the group has committed, in the order of the first commits; not to be changed."""
        kept = self._groups.get(group)
        return kept.offsets if kept is not None else {}

    def generation(self, group: str) -> tuple[int, str | None]:
        """(the last generation, protocol type) of a group; (0, None) if it never had one."""
        kept = self._groups.get(group)
        return (kept.generation, kept.protocol_type) if kept is not None else (0, None)

    # --- changes; each raises OSError and leaves everything as it was when it can't be written ------------------

    def commit(self, group: str, places: Iterable[tuple[str, str, int, int, int, str]], now_ms: int) -> None:
        """`places`: (topic, topic id, partition, offset, leader epoch, metadata) each."""
        topics: dict[tuple[str, str], list[tuple[int, int, int, str]]] = {}
        for topic, topic_id, *rest in places:
            topics.setdefault((topic, topic_id), []).append(tuple(rest))  # type: ignore[arg-type]
        if topics:
            self._append(group, [COMMIT, now_ms, [[*key, parts] for key, parts in topics.items()]])

    def remember(self, group: str, generation: int, protocol_type: str | None) -> None:
        self._append(group, [GENERATION, generation, protocol_type])

    def drop(self, group: str, places: Iterable[Place]) -> None:
        held = self.of(group)
        gone = [list(place) for place in places if place in held]
        if gone:
            self._append(group, [DROP, gone])

    def forget(self, group: str) -> None:
        """The group and its file are gone."""
        if self._groups.pop(group, None) is not None:
            self._close(group)
            self._path(group).unlink(missing_ok=True)

    # --- files -------------------------------------------------------------------------------------------------

    def _path(self, group: str) -> Path:
        name = quote(group, safe="")
        if len(name) > 200:
            name = HASHED + hashlib.sha256(group.encode()).hexdigest()
        return self._directory / (name + SUFFIX)

    def _append(self, group: str, body: list[Any]) -> None:
        kept = self._groups.get(group)
        data = _record(body)
        fd = self._descriptor(group)
        if kept is None:
            kept = _Kept()
            data = _record([GROUP, group]) + data
            os.ftruncate(fd, 0)  # at most the torn first record of a process that was killed
        written = 0
        try:
            written = os.write(fd, data)
        finally:
            if written < len(data):
                os.ftruncate(fd, kept.size)
        if written < len(data):
            raise OSError(f"only {written} of {len(data)} bytes fit into {self._path(group)}")
        self._groups[group] = kept
        kept.size += len(data)
        _apply(kept, body)
        if kept.size > kept.compact_at:
            self._compact(group, kept)

    def _compact(self, group: str, kept: _Kept) -> None:
        """Writes what the group holds aside and renames it into place."""
        data = b"".join(_snapshot(group, kept))
        path = self._path(group)
        aside = path.with_suffix(ASIDE)
        aside.write_bytes(data)
        self._close(group)
        aside.replace(path)
        kept.size = len(data)
        kept.compact_at = max(COMPACT_BYTES, MAX_WASTE * kept.size)

    def _descriptor(self, group: str) -> int:
        fd = self._open.pop(group, None)
        if fd is None:
            if len(self._open) >= _MAX_OPEN:
                os.close(self._open.popitem(last=False)[1])
            fd = os.open(self._path(group), os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
        self._open[group] = fd
        return fd

    def _close(self, group: str) -> None:
        fd = self._open.pop(group, None)
        if fd is not None:
            os.close(fd)

    def _load(self, path: Path, owns: Callable[[str], bool]) -> None:
        data = path.read_bytes()
        kept = _Kept()
        group = None
        for body, end in _records(data):
            if group is None:
                if body[0] != GROUP or not owns(body[1]):
                    return
                group = body[1]
            else:
                _apply(kept, body)
            kept.size = end
        if group is None:
            return
        if kept.size < len(data):
            os.truncate(path, kept.size)
        kept.compact_at = max(COMPACT_BYTES, MAX_WASTE * sum(map(len, _snapshot(group, kept))))
        self._groups[group] = kept


def _record(body: list[Any]) -> bytes:
    packed: bytes = msgpack.packb(body)
    return _FRAME.pack(len(packed), crc32(packed)) + packed


def _records(data: bytes) -> Iterator[tuple[list[Any], int]]:
    """(body, where it ends) of each whole record, up to the first that is torn or damaged."""
    at = 0
    while at + _FRAME.size <= len(data):
        length, checksum = _FRAME.unpack_from(data, at)
        start, at = at + _FRAME.size, at + _FRAME.size + length
        if length > _MAX_RECORD or at > len(data) or crc32(data[start:at]) != checksum:
            return
        yield msgpack.unpackb(data[start:at]), at


def _apply(kept: _Kept, body: list[Any]) -> None:
    match body:
        case [kind, int(now_ms), topics] if kind == COMMIT:
            for topic, topic_id, parts in topics:
                for partition, offset, leader_epoch, metadata in parts:
                    kept.offsets[(topic, partition)] = CommittedOffset(offset, leader_epoch, metadata, now_ms, topic_id)
        case [kind, places] if kind == DROP:
            for topic, partition in places:
                kept.offsets.pop((topic, partition), None)
        case [kind, generation, protocol_type] if kind == GENERATION:
            kept.generation, kept.protocol_type = generation, protocol_type


def _snapshot(group: str, kept: _Kept) -> Iterator[bytes]:
    yield _record([GROUP, group])
    if kept.generation or kept.protocol_type is not None:
        yield _record([GENERATION, kept.generation, kept.protocol_type])
    by_time: dict[int, dict[tuple[str, str], list[tuple[int, int, int, str]]]] = {}
    for (topic, partition), c in kept.offsets.items():
        topics = by_time.setdefault(c.committed_ms, {})
        topics.setdefault((topic, c.topic_id), []).append((partition, c.offset, c.leader_epoch, c.metadata))
    for now_ms, topics in by_time.items():
        yield _record([COMMIT, now_ms, [[*key, parts] for key, parts in topics.items()]])
