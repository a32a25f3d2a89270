"""The cleaner of one shard: it compacts the logs whose home the shard is, one at a time, first the one with the largest
share of dirty bytes.

A cleaning (broker/storage/cleaning.py) runs in pieces of PIECE_S, each a turn among the large requests of the shard (shards/loop/
turns.py), and rests RESTS times as long behind each. What takes long by itself, an fsync or the compression of a large batch, is
done in a thread. The offset map is bounded by log.cleaner.dedupe.buffer.size, divided among the shards, while a log is cleaned.

Where Kafka has log.cleaner.threads, there is one cleaner for each shard. Source: LogCleaner, LogCleanerManager of Kafka 4.1.
"""

import time
from collections.abc import Callable, Iterator
from itertools import chain
from typing import NamedTuple
from uuid import UUID

import trio

from broker.runtime.logger import Logger
from broker.storage.cleaning import KEY_BYTES, Cleaning, CleaningAborted
from broker.storage.cleaning_filter import Aside, Steps
from broker.storage.log_manager import LogManager
from broker.storage.log_to_clean import LogToClean, has_dirty_segments, load_checkpoint, log_to_clean
from broker.storage.records import Rejected
from broker.storage.segment import DamagedSegment
from broker.storage.shared_log import SharedLog
from broker.storage.topic_partition import TopicPartition
from shards.loop.turns import Turns

PIECE_S = 0.002
RESTS = 3
LEAST_KEYS = 1000

log = Logger()


class LogCleaner:
    """`clean_one` is all that `run` does again and again."""

    def __init__(
        self, logs: LogManager, turns: Turns, now_ms: Callable[[], int] = lambda: time.time_ns() // 1_000_000
    ) -> None:
        self._logs = logs
        self._turns = turns
        self._now_ms = now_ms
        # Skipped until the next sleep of log.cleaner.backoff.ms: cleaning them failed or was given up, or a mistake came up in
        # looking at them.
        self._left_alone: set[TopicPartition] = set()
        self._best: tuple[float, TopicPartition, SharedLog, LogToClean] | None = None

    async def run(self) -> None:
        """Cleans logs until cancelled."""
        image = self._logs.image
        while True:
            if not (image.version and image.get("log.cleaner.enable") and await self.clean_one()):
                self._left_alone.clear()
                await trio.sleep(image.get("log.cleaner.backoff.ms") / 1000)

    async def clean_one(self) -> bool:
        """Cleans the dirtiest log that is to be cleaned, if there is one; whether to look for another at once."""
        self._best = None
        await self._work(self._look())
        if self._best is None:
            return False
        _, place, found_log, found = self._best
        self._best = None
        try:
            await self._work(self._clean(place, found_log, found))
        except DamagedSegment as damaged:
            self._left_alone.add(place)
            self._mend(place, damaged)
        except (CleaningAborted, Rejected, OSError) as fault:
            self._left_alone.add(place)
            log.info("a log was not cleaned this time", topic=place[0], partition=place[1], why=repr(fault))
        except Exception as fault:
            self._left_alone.add(place)
            log.error("a mistake in cleaning a log", topic=place[0], partition=place[1], exc_info=fault)
        return True

    def _look(self) -> Steps:
        """Finds the dirtiest log."""
        for topic in list(self._logs.image.topics):
            yield None
            for place in self._logs.homed_and_compacted(topic):
                if place not in self._left_alone:
                    self._look_at(place, topic.id)
                    yield None

    def _look_at(self, place: TopicPartition, topic_id: UUID) -> None:
        try:
            if not has_dirty_segments(self._logs.directory_of(*place), topic_id):
                return
            found_log = self._logs.log(*place)
            checkpoint = load_checkpoint(found_log.directory, found_log.topic_id)
            found = log_to_clean(found_log, checkpoint, self._now_ms())
        except DamagedSegment as damaged:
            self._mend(place, damaged)
            return
        except (Rejected, OSError):
            return
        except Exception as fault:
            self._left_alone.add(place)
            log.error("a mistake in looking at a log to clean", topic=place[0], partition=place[1], exc_info=fault)
            return
        if found is not None and (self._best is None or found.ratio > self._best[0]):
            self._best = found.ratio, place, found_log, found

    def _clean(self, place: TopicPartition, found_log: SharedLog, found: LogToClean) -> Steps:
        logs = self._logs
        most_keys = max(logs.image.get("log.cleaner.dedupe.buffer.size") // logs.shards // KEY_BYTES, LEAST_KEYS)
        cleaning = Cleaning(found_log, found, most_keys=most_keys, now_ms=self._now_ms())
        began = time.monotonic()
        yield from self._while_there(place, found_log, cleaning.steps())
        log.info(
            "a log was cleaned", topic=place[0], partition=place[1], bytes_before=cleaning.bytes_before,
            bytes_after=cleaning.bytes_after, seconds=round(time.monotonic() - began, 3),
        )  # fmt: skip

    def _while_there(self, place: TopicPartition, found_log: SharedLog, steps: Steps) -> Steps:
        """Takes steps as long as the log is the topic's, and compacted: the view of a topic that is gone is not to be touched."""
        version = -1
        for aside in chain([None], steps):
            yield aside
            if version != self._logs.image.version:
                version = self._logs.image.version
                if self._logs.view(*place) is not found_log or not found_log.limits.compacted:
                    raise CleaningAborted

    def _mend(self, place: TopicPartition, damaged: DamagedSegment) -> None:
        viewed = self._logs.viewed(*place)
        if viewed is None:
            return
        try:
            viewed.mend(damaged)
        except (Rejected, OSError) as fault:
            log.warning("a damaged segment was not repaired", file=damaged.path, why=repr(fault))

    async def _work(self, steps: Steps) -> None:
        """A piece at a time."""
        ended = False
        while not ended:
            async with self._turns.turn():
                began_s = time.perf_counter()
                aside, ended = _take(steps, began_s + PIECE_S)
                took_s = time.perf_counter() - began_s
            if aside is not None:
                await trio.to_thread.run_sync(aside)
            await trio.sleep((RESTS - 1) * took_s)  # a turn has rested once already


class _Taken(NamedTuple):
    """The step that is to be done aside, None if there is none; `ended`: there are no more steps."""

    aside: Aside | None = None
    ended: bool = False


def _take(steps: Iterator[Aside | None], until_s: float) -> _Taken:
    """Takes steps until that time, or until one is to be done aside."""
    for aside in steps:
        if aside is not None:
            return _Taken(aside)
        if time.perf_counter() > until_s:
            return _Taken()
    return _Taken(ended=True)
