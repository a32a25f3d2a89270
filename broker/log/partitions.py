"""The partitions of one broker, as one of its shards sees them: those at home here, and the way to the others.

A partition lives at its home shard, `home_of("partition:<topic>:<n>")`; every shard answers for all of them and asks
the home, one call per home and request. What is here is answered without waiting.

H1  only the home opens a partition's files
H2  an operation answers with a Kafka error code first, and never raises: a lost home is NOT_LEADER_OR_FOLLOWER, which
    clients retry after asking for metadata; whether it did what it was asked is then unknown
H3  the log of a topic that was deleted, or created again under its name, is deleted here, and whoever waits is told
"""

import os
import shutil
import time
from collections.abc import Callable, Coroutine, Iterable, Sequence
from typing import Any, Protocol
from uuid import UUID

import trio

from broker.log.files import Files
from broker.log.records import Rejected
from broker.log.storage import LEADER_EPOCH, Limits, Log, OutOfRange
from broker.protocol import codes
from shards.errors import DeadlineExceeded, PeerLost, RemoteError
from shards.homes import home_of

METHOD = "partitions"
CALL_TIMEOUT_S = 10.0
UNKNOWN = Rejected(codes.UNKNOWN_TOPIC_OR_PARTITION, "This server does not host this topic-partition.")
ELSEWHERE = Rejected(codes.NOT_LEADER_OR_FOLLOWER, "Another broker leads this partition.")
OUT_OF_RANGE = Rejected(codes.OFFSET_OUT_OF_RANGE, "The offset is not within the range of the log.")

Item = Sequence[Any]  # topic, partition, and what the operation asks for besides
Answer = Sequence[Any]  # an error code, and what the operation answers besides
Answers = list[Answer] | Coroutine[Any, Any, list[Answer]]  # there, or to be awaited


class Topic(Protocol):
    """What is needed of a shards.settings.Topic."""

    @property
    def name(self) -> str: ...
    @property
    def id(self) -> UUID: ...
    @property
    def leaders(self) -> list[int]: ...


class Topics(Protocol):
    def get(self, name: str) -> Any: ...
    def by_id(self, topic_id: UUID) -> Any: ...
    def names(self) -> Iterable[str]: ...


class View(Protocol):
    """What is needed of a shards.settings.View; `version` rises with every change."""

    version: int

    @property
    def topics(self) -> Any: ...
    def get(self, name: str) -> Any: ...
    def topic_get(self, topic: str, name: str) -> Any: ...


class Mesh(Protocol):
    """What is needed of a shards.mesh.Mesh."""

    async def request(self, key: Any, method: str, *args: Any, timeout_s: float = 5.0) -> Any: ...
    def serve(self, method: str, function: Callable[..., Any]) -> None: ...


FAILED: dict[str, Callable[[Rejected], Answer]] = {
    "append": lambda why: (why.code, -1, -1, -1, why.message, why.records),
    "read": lambda why: (why.code, -1, -1, b""),
    "offset_at": lambda why: (why.code, -1, -1),
    "delete_before": lambda why: (why.code, -1),
    "end_of_epoch": lambda why: (why.code, -1, -1),
}
"""The operations, and how each says that it failed."""


class Partitions:
    """`directory` is the broker's, shared by its shards; `shard` is this one's number of `shards`."""

    def __init__(
        self,
        *,
        broker: int,
        shard: int,
        shards: int,
        directory: str,
        view: View,
        mesh: Mesh,
        now_ms: Callable[[], int] = lambda: time.time_ns() // 1_000_000,
    ) -> None:
        self.broker = broker
        self.shard = shard
        self.directory = directory
        self.view = view
        self.mesh = mesh
        self.files = Files()
        self._shards = shards
        self._now_ms = now_ms
        self._logs: dict[tuple[str, int], Log] = {}
        self._current: dict[tuple[str, int], Log] = {}  # those known to be right for this version of the view
        self._homes: dict[tuple[str, int], int] = {}  # likewise
        self._seen_version = -1
        self._known: dict[str, UUID] = {}
        self._swept = False
        self._operations: dict[str, Callable[..., Answer]] = {name: getattr(self, f"_{name}") for name in FAILED}
        mesh.serve(METHOD, self._serve)

    # Where a partition is

    def home(self, topic: str, partition: int) -> int:
        """The shard of this broker where it lives; raises Rejected if there is none."""
        if self._seen_version != self.view.version:
            self.view_changed()
        home = self._homes.get((topic, partition))
        if home is None:
            self._require(topic, partition)
            home = self._homes[topic, partition] = home_of(f"partition:{topic}:{partition}", self._shards)
        return home

    def log(self, topic: str, partition: int) -> Log:
        """The log of a partition at home here. Raises Rejected, and OSError."""
        if self._seen_version != self.view.version:
            self.view_changed()
        log = self._current.get((topic, partition))
        if log is None:
            found = self._require(topic, partition)
            log = self._logs.get((topic, partition))
            if log is None:
                log = self._logs[topic, partition] = Log(self._path(topic, partition), found.id, self.files)
            log.limits = self._limits(topic)
            self._current[topic, partition] = log
        return log

    def _require(self, name: str, partition: int) -> Topic:
        topic: Topic | None = self.view.topics.get(name)
        if topic is None or not 0 <= partition < len(topic.leaders):
            raise UNKNOWN
        if topic.leaders[partition] != self.broker:
            raise ELSEWHERE
        return topic

    def _path(self, topic: str, partition: int) -> str:
        return os.path.join(self.directory, "topics", f"{topic}-{partition}")

    def _limits(self, topic: str) -> Limits:
        get = self.view.topic_get
        return Limits(
            max_message_bytes=get(topic, "max.message.bytes"),
            retention_bytes=get(topic, "retention.bytes"),
            retention_ms=get(topic, "retention.ms"),
            segment_bytes=get(topic, "segment.bytes"),
            log_append_time=get(topic, "message.timestamp.type") == "LogAppendTime",
            compacted="compact" in get(topic, "cleanup.policy"),
        )

    def name_of(self, topic_id: UUID | None) -> str:
        """The name of the topic with that id; "", which no topic is called, if there is none."""
        found = topic_id and self.view.topics.by_id(topic_id)
        return found.name if found else ""

    # Asking

    def ask(self, operation: str, items: Sequence[Item], *, timeout_s: float = CALL_TIMEOUT_S) -> Answers:
        """The answer to each item, in order: as a list if all are at home here, else as a coroutine to await.

        What is at home here is done before this returns.
        """
        answers: list[Any] = [None] * len(items)
        elsewhere: dict[int, list[int]] = {}
        for index, item in enumerate(items):
            try:
                home = self.home(item[0], item[1])
            except Rejected as why:
                answers[index] = FAILED[operation](why)
                continue
            if home == self.shard:
                answers[index] = self.do(operation, item)
            else:
                elsewhere.setdefault(home, []).append(index)
        return self._ask_homes(operation, items, elsewhere, answers, timeout_s) if elsewhere else answers

    async def _ask_homes(
        self,
        operation: str,
        items: Sequence[Item],
        elsewhere: dict[int, list[int]],
        answers: list[Any],
        timeout_s: float,
    ) -> list[Answer]:
        async def ask_home(home: int, indexes: list[int]) -> None:
            their = await self.ask_home(home, operation, [items[index] for index in indexes], timeout_s)
            for index, answer in zip(indexes, their, strict=True):
                answers[index] = answer

        if len(elsewhere) == 1:
            await ask_home(*elsewhere.popitem())
        else:
            async with trio.open_nursery() as nursery:
                for home, indexes in elsewhere.items():
                    nursery.start_soon(ask_home, home, indexes)
        return answers

    async def ask_home(self, home: int, operation: str, items: list[Item], timeout_s: float) -> list[Answer]:
        try:
            answers: list[Answer] = await self.mesh.request(home, METHOD, operation, items, timeout_s=timeout_s)
            return answers
        except DeadlineExceeded:
            why = Rejected(codes.REQUEST_TIMED_OUT, "The partition's shard did not answer in time.")
        except (PeerLost, RemoteError):
            why = Rejected(codes.NOT_LEADER_OR_FOLLOWER, "The partition's shard is starting again.")
        return [FAILED[operation](why)] * len(items)

    # Answering

    def _serve(self, _peer: Any, operation: str, items: list[Item]) -> list[Answer]:
        return [self.do(operation, item) for item in items]

    def do(self, operation: str, item: Item) -> Answer:
        """Runs an operation on a partition at home here."""
        try:
            return self._operations[operation](*item)
        except Rejected as why:
            return FAILED[operation](why)
        except OutOfRange:
            return FAILED[operation](OUT_OF_RANGE)
        except OSError as fault:
            broken = Rejected(codes.KAFKA_STORAGE_ERROR, f"The log can't be used: {fault.strerror}.")
            return FAILED[operation](broken)

    def _append(self, topic: str, partition: int, batch: bytes | None) -> Answer:
        """(code, base offset, append time in ms or -1, start offset, message, indexes of bad records)"""
        placed = self.log(topic, partition).append(batch, self._now_ms())
        return codes.NONE, placed.base_offset, placed.append_time_ms, placed.start_offset, "", ()

    def _read(self, topic: str, partition: int, epoch: int, offset: int, max_bytes: int, at_least_one: bool) -> Answer:
        """(code, high watermark, start offset, batches)"""
        require_epoch(epoch)
        log = self.log(topic, partition)
        try:
            return codes.NONE, log.next_offset, log.start_offset, log.read(offset, max_bytes, at_least_one)
        except OutOfRange:
            return codes.OFFSET_OUT_OF_RANGE, log.next_offset, log.start_offset, b""

    def _offset_at(self, topic: str, partition: int, epoch: int, timestamp: int) -> Answer:
        """(code, timestamp, offset); -1 and -1 if there is none. `timestamp` may be one of ListOffsets' own."""
        require_epoch(epoch)
        log = self.log(topic, partition)
        found: tuple[int, int] | None
        if timestamp == -1:
            found = (log.next_offset, -1)
        elif timestamp in (-2, -4):  # earliest, earliest local: nothing is kept elsewhere
            found = (log.start_offset, -1)
        elif timestamp == -3:
            found = log.offset_of_max_timestamp()
        elif timestamp >= 0:
            found = log.offset_since(timestamp)
        else:  # -5, latest tiered: nothing is
            found = None
        return (codes.NONE, -1, -1) if found is None else (codes.NONE, found[1], found[0])

    def _delete_before(self, topic: str, partition: int, offset: int) -> Answer:
        """(code, low watermark)"""
        return codes.NONE, self.log(topic, partition).delete_before(offset)

    def _end_of_epoch(self, topic: str, partition: int, current_epoch: int, epoch: int) -> Answer:
        """(code, leader epoch, end offset); -1 and -1 for an epoch that never was."""
        require_epoch(current_epoch)
        log = self.log(topic, partition)
        return (codes.NONE, epoch, log.next_offset) if epoch == LEADER_EPOCH else (codes.NONE, -1, -1)

    # Change and time

    def view_changed(self) -> None:
        """To be called when the view is of another version: logs whose topics are gone are deleted."""
        view = self.view
        self._seen_version = view.version
        self._homes.clear()
        self._current.clear()
        for key, log in list(self._logs.items()):
            topic = view.topics.get(key[0])
            if topic is None or topic.id != log.topic_id or not self._led_here(topic, key[1]):
                del self._logs[key]
                log.delete()
        topics = {name: view.topics.get(name).id for name in view.topics.names()}
        if view.version and (not self._swept or any(topics.get(name) != old for name, old in self._known.items())):
            self._sweep()
            self._swept = True
        self._known = topics

    def _led_here(self, topic: Topic, partition: int) -> bool:
        return partition < len(topic.leaders) and topic.leaders[partition] == self.broker

    def _sweep(self) -> None:
        """Deletes files of topics that are gone, which may be from before this process."""
        for topic, partition, path in self._directories():
            found = self.view.topics.get(topic)
            if home_of(f"partition:{topic}:{partition}", self._shards) != self.shard:
                continue
            if found is None or not self._led_here(found, partition):
                shutil.rmtree(path, ignore_errors=True)

    def _directories(self) -> list[tuple[str, int, str]]:
        try:
            entries = list(os.scandir(os.path.join(self.directory, "topics")))
        except FileNotFoundError:
            return []
        split = [(*entry.name.rpartition("-"), entry.path) for entry in entries]
        return [(topic, int(number), path) for topic, _, number, path in split if number.isdecimal()]

    def sizes(self) -> dict[tuple[str, int], int]:
        """Bytes of log files by partition, of all shards of this broker."""
        sizes = {}
        for topic, partition, path in self._directories():
            try:
                files = [entry for entry in os.scandir(path) if entry.name.endswith(".log")]
                sizes[topic, partition] = sum(entry.stat().st_size for entry in files)
            except FileNotFoundError:
                continue  # deleted meanwhile
        return sizes

    def retain(self) -> None:
        """Applies retention; to be called every log.retention.check.interval.ms. A full segment applies it too."""
        now_ms = self._now_ms()
        for topic, partition in list(self._logs):
            try:
                self.log(topic, partition).retain(now_ms)
            except (Rejected, OSError):
                continue

    def close(self) -> None:
        for log in self._logs.values():
            log.close()
        self._logs.clear()
        self._current.clear()
        self.files.close()


def then(answers: Answers, respond: Callable[[list[Answer]], Any]) -> Any:
    """What `respond` makes of the answers: now if they are there, else a coroutine that returns it."""
    return respond(answers) if isinstance(answers, list) else _then(answers, respond)


async def _then(answers: Coroutine[Any, Any, list[Answer]], respond: Callable[[list[Answer]], Any]) -> Any:
    return respond(await answers)


def require_epoch(epoch: int) -> None:
    """A client that knows of a later leader than there is has seen another cluster. Raises Rejected."""
    if epoch > LEADER_EPOCH:
        raise Rejected(codes.UNKNOWN_LEADER_EPOCH, "The leader epoch in the request is newer than the broker's.")
