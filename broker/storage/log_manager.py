"""The logs that one shard of a broker has views of, and the files of deleted topics.

any_shard_opens_any_partition  any shard of the broker opens the files of any of its partitions, in turn with the others
    (broker/storage/shared_log.py)
deleted_topics_lose_their_logs  the log of a topic that was deleted, or created again under its name, is deleted by each
    shard that has a view of it, and by its home, `home_of_partition(topic, n)`, in any case; its waiters are told. What a
    shard that has heard more has made since then stays
"""

import os
import shutil
from collections.abc import Callable, Collection
from typing import Any, Protocol
from uuid import UUID

from broker.storage.disk_space import SETTING, DiskSpace
from broker.storage.files import OpenFiles, max_open
from broker.storage.log_config import LogConfig
from broker.storage.log_ends import CLAIMED_AT, DIRTY, LogEnds
from broker.storage.records import Rejected
from broker.storage.shared_log import SharedLog
from broker.wire import codes
from shards.ownership import home_of_partition

UNKNOWN = Rejected(codes.UNKNOWN_TOPIC_OR_PARTITION, "This server does not host this topic-partition.")
ELSEWHERE = Rejected(codes.NOT_LEADER_OR_FOLLOWER, "Another broker leads this partition.")


class HomedTopic(Protocol):
    """The part of shards.config.image.Topic that the log needs."""

    @property
    def name(self) -> str: ...
    @property
    def id(self) -> UUID: ...
    @property
    def leaders(self) -> list[int]: ...


class TopicImage(Protocol):
    """The part of a shards.config.image.ClusterImage that is needed here; `version` rises with every change."""

    version: int

    @property
    def topics(self) -> Any: ...
    def get(self, name: str) -> Any: ...
    def topic_get(self, topic: str, name: str) -> Any: ...


class LogManager:
    """`directory` is the broker's, shared by its shards; `shard` is this one's number of `shards`.

    `on_append(topic, partition, bits)`: a log has grown for which the shards of these bits wait.
    """

    def __init__(
        self,
        *,
        broker: int,
        shard: int,
        shards: int,
        directory: str,
        image: TopicImage,
        ends: LogEnds,
        on_append: Callable[[str, int, int], None],
    ) -> None:
        self.broker = broker
        self.shard = shard
        self.directory = directory
        self.image = image
        self.space = DiskSpace(directory, lambda: image.get(SETTING), tells=shard == 0)
        self.shards = shards
        self._on_append = on_append
        self._files = OpenFiles(max_open())
        self._ends = ends
        self._logs: dict[tuple[str, int], SharedLog] = {}
        self._current: dict[tuple[str, int], SharedLog] = {}  # checked against this version of the image
        self._seen_version = -1
        self._known: dict[str, UUID] = {}
        self._swept = False

    # Where a partition is

    def log(self, topic: str, partition: int) -> SharedLog:
        """The log of a partition of this broker, as it is now. Raises Rejected, and OSError."""
        log = self.view(topic, partition)
        log.refresh()
        return log

    def view(self, topic: str, partition: int) -> SharedLog:
        """As `log`, perhaps without what other shards have just appended. Raises Rejected, and OSError."""
        if self._seen_version != self.image.version:
            self._follow_image()
        log = self._current.get((topic, partition))
        if log is None or log.lost:
            found = self._require(topic, partition)
            log = self._logs.get((topic, partition))
            if log is None or log.lost:
                log = self._logs[topic, partition] = self._open(topic, partition, found.id)
            log.limits = self._limits(topic)
            self._current[topic, partition] = log
        return log

    def viewed(self, topic: str, partition: int) -> SharedLog | None:
        """The view of a partition's log; None if this shard has not opened it."""
        return self._logs.get((topic, partition))

    def _open(self, topic: str, partition: int, topic_id: UUID) -> SharedLog:
        return SharedLog(
            self.directory_of(topic, partition),
            topic_id,
            self._files,
            self._ends.end_of(self.broker, topic, partition),
            shard=self.shard,
            version=lambda: self.image.version,
            notify=lambda bits: self._on_append(topic, partition, bits),
        )

    def _home_of(self, topic: str, partition: int) -> int:
        return home_of_partition(topic, partition, self.shards)

    def _require(self, name: str, partition: int) -> HomedTopic:
        topic: HomedTopic | None = self.image.topics.get(name)
        if topic is None or not 0 <= partition < len(topic.leaders):
            raise UNKNOWN.with_traceback(None)
        if topic.leaders[partition] != self.broker:
            raise ELSEWHERE.with_traceback(None)
        return topic

    def directory_of(self, topic: str, partition: int) -> str:
        return os.path.join(self.directory, "topics", f"{topic}-{partition}")

    def _limits(self, topic: str) -> LogConfig:
        get = self.image.topic_get
        policy = get(topic, "cleanup.policy")
        compacted, deleted = "compact" in policy, "delete" in policy
        max_lag_ms = get(topic, "max.compaction.lag.ms")
        return LogConfig(
            max_message_bytes=get(topic, "max.message.bytes"),
            retention_bytes=get(topic, "retention.bytes") if deleted else -1,
            retention_ms=get(topic, "retention.ms") if deleted else -1,
            segment_bytes=get(topic, "segment.bytes"),
            log_append_time=get(topic, "message.timestamp.type") == "LogAppendTime",
            compacted=compacted,
            roll_ms=min(get(topic, "segment.ms"), max_lag_ms) if compacted else get(topic, "segment.ms"),
            min_cleanable_ratio=get(topic, "min.cleanable.dirty.ratio"),
            min_compaction_lag_ms=get(topic, "min.compaction.lag.ms"),
            max_compaction_lag_ms=max_lag_ms,
            delete_retention_ms=get(topic, "delete.retention.ms"),
            timestamp_before_max_ms=get(topic, "message.timestamp.before.max.ms"),
            timestamp_after_max_ms=get(topic, "message.timestamp.after.max.ms"),
        )

    def homed_and_compacted(self, topic: HomedTopic) -> list[tuple[str, int]]:
        """The partitions of a topic whose home this shard is; none unless the topic is compacted."""
        if "compact" not in self.image.topic_get(topic.name, "cleanup.policy"):
            return []
        led = [partition for partition, leader in enumerate(topic.leaders) if leader == self.broker]
        return [(topic.name, partition) for partition in led if self._home_of(topic.name, partition) == self.shard]

    # Change and time

    def image_changed(self, kinds: Collection[str]) -> None:
        """The image has another version, in which records of `kinds` differ: the logs of deleted topics are deleted."""
        if "topic" in kinds:
            self._follow_image()

    def _follow_image(self) -> None:
        image = self.image
        self._seen_version = image.version
        self._current.clear()
        for key, log in list(self._logs.items()):
            topic = image.topics.get(key[0])
            if topic is None or topic.id != log.topic_id or not self._led_here(topic, key[1]):
                del self._logs[key]
                log.close()
                self._delete(*key)
        topics = {name: image.topics.get(name).id for name in image.topics.names()}
        if image.version and (not self._swept or any(topics.get(name) != old for name, old in self._known.items())):
            self._sweep()
        self._known = topics

    def _led_here(self, topic: HomedTopic, partition: int) -> bool:
        return partition < len(topic.leaders) and topic.leaders[partition] == self.broker

    def _sweep(self) -> None:
        """Deletes files of topics that are gone, which may be from before this process."""
        self._swept = True
        for topic, partition, _ in self._directories():
            if self._home_of(topic, partition) == self.shard and self._id_of(topic, partition) is None:
                self._delete(topic, partition)

    def _id_of(self, topic: str, partition: int) -> UUID | None:
        """The topic id of a partition; None if this broker leads no such partition."""
        found = self.image.topics.get(topic)
        return found.id if found is not None and self._led_here(found, partition) else None

    def _delete(self, topic: str, partition: int) -> None:
        """Deletes the directory of a log whose topic is gone (deleted_topics_lose_their_logs)."""
        try:
            end = self._ends.end_of(self.broker, topic, partition)
            with end:
                if end.words[CLAIMED_AT] > self.image.version or end.topic_id == self._id_of(topic, partition):
                    return
                self._ends.deleted(self.image.version)
                end.words[DIRTY] = 1
                shutil.rmtree(self.directory_of(topic, partition), ignore_errors=True)
                self._ends.free(end)
        except Rejected:  # a shard was stopped in the middle of an append: another time
            self._swept = False

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

    def retain(self, *, now_ms: int) -> None:
        """Applies retention; to be called every log.retention.check.interval.ms. A full segment applies it too."""
        if self.image.version and not self._swept:
            self._sweep()
        for topic, partition in list(self._logs):
            try:
                self.view(topic, partition).retain(now_ms)
            except (Rejected, OSError):
                continue

    def close(self) -> None:
        for log in self._logs.values():
            log.close()
        self._logs.clear()
        self._current.clear()
        self._files.close()
