"""A partition's log as one of several shards sees it, which all append to its files.

Everything that a shard knows of a log follows from its files, so a shard that was away reads on from where its view ends:
the headers of the batches that others appended, 61 bytes each. Where a log ends is in shared memory (log_ends.py), so a shard
whose view is current compares a few words.

changed_under_the_lock  A shard changes a log, its files and its words with the lock of the log, after it has read all that
    others appended. So offsets, sequence numbers and transactions are checked against the whole log, whichever shards its
    producer is or was connected to.
seen_once_whole  Other shards see a batch once its end is in the words, which is when all of it is in the file.
dirty_logs_are_reopened  Who finds that the last holder of the lock died in the middle opens the log as one does after a
    killed process: a batch that is whole in the file is kept, as its producer may send it again, and is known by its
    sequence number then; a torn one is cut off (recovery.py). Neither was acknowledged.
old_generations_are_reopened  A view is opened again, from the files, when its generation is over. A segment that others
    began, records that others deleted, are met in passing; so are cleaned segments that took the place of others
    (cleaned_in_place_by_rename).
logs_belong_to_topic_ids  A log belongs to the topic whose id is in the words. A shard that has not heard of that topic yet
    is refused until it has.
waiting_shards_are_told_once  A shard that waits for a log to grow leaves its bit in the words with the lock. Who appends
    takes all bits, and tells those shards once: a message that is lost costs that wait, and no record.
cleaned_in_place_by_rename  A cleaned segment takes the place of others by one rename, with the lock; their files go then.
    A shard that died before it has changed nothing; behind it the others are no longer in force, and go when the log is opened
    (segment_name.py, one_rename_replaces). A view that reads the old ones meanwhile reads them to their end, or finds no
    file of that name, and looks again.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable
from typing import TypeVar
from uuid import UUID

from broker.storage import recovery, validation
from broker.storage.control_records import EndTransactionMarker
from broker.storage.files import OpenFiles
from broker.storage.log_config import LogConfig
from broker.storage.log_ends import BASE, CLAIMED_AT, CLEANINGS, DIRTY, END, GENERATION, SIZE, START, WAITING, LogEnd
from broker.storage.log_segments import OutOfRange
from broker.storage.partition_log import ANY_BYTES, AppendInfo, AppendWaiter, PartitionLog
from broker.storage.records import Rejected
from broker.storage.recovery import Replay
from broker.storage.segment import DamagedSegment, LogSegment
from broker.wire import codes

BITS = 63  # in a word
NOT_YET = Rejected(codes.NOT_LEADER_OR_FOLLOWER, "This shard has not heard of the topic's last change yet.")

T = TypeVar("T")


class SharedLog(PartitionLog):
    """`with log:` holds its lock; it is the newest then. `version()` is that of this shard's configuration, `notify(bits)`
    tells the shards of these bits that the log has grown. Everything here may raise Rejected: a holder of the lock may be stopped.
    """

    def __init__(
        self,
        directory: str,
        topic_id: UUID,
        files: OpenFiles,
        end: LogEnd,
        *,
        shard: int = 0,
        version: Callable[[], int] = lambda: 0,
        notify: Callable[[int], None] = lambda bits: None,
        limits: LogConfig | None = None,
    ) -> None:
        self._end = end
        self._words = end.words
        self._bit = 1 << shard % BITS
        self._version = version
        self._notify = notify
        self._generation = -1
        self._cleanings = 0
        super().__init__(directory, topic_id, files, limits)

    @property
    def lost(self) -> bool:
        """True if its files were deleted: if there is such a topic now, its log is another one."""
        return self._end.lost

    # Taking turns

    def __enter__(self) -> None:
        """Takes the lock and catches up with the other shards (changed_under_the_lock)."""
        self._end.__enter__()
        try:
            words = self._words
            if words[GENERATION] != self._generation or words[DIRTY]:
                self._renew()
            elif words[END] != self.next_offset or words[START] != self.start_offset or words[BASE] != self._base():
                self._catch_up()
            words[DIRTY] = 1
        except BaseException:
            self._end.__exit__()
            raise

    def __exit__(self, _kind: object, fault: BaseException | None, _trace: object) -> None:
        """seen_once_whole. After what was not foreseen the words are left DIRTY."""
        words = self._words
        waiting = 0
        try:
            if fault is None or self._is_harmless(fault):
                if words[END] != self.next_offset:
                    waiting = words[WAITING] & ~self._bit
                    words[WAITING] &= self._bit
                self._publish()
                words[DIRTY] = 0
        finally:
            self._end.__exit__()
        if waiting:
            self._notify(waiting)

    def _base(self) -> int:
        return self._segments[-1].base_offset if self._segments else -1

    def _is_harmless(self, fault: BaseException) -> bool:
        """True if what was refused has left nothing in the files."""
        if not isinstance(fault, Rejected):
            return isinstance(fault, OutOfRange)
        if fault.code != codes.KAFKA_STORAGE_ERROR:
            return True
        if not self._segments:
            return False
        last = self._segments[-1]
        try:
            return os.stat(last.path).st_size == last.size
        except OSError:
            return False

    def _publish(self) -> None:
        words = self._words
        words[BASE] = self._base()
        words[SIZE] = self._segments[-1].size if self._segments else 0
        words[START] = self.start_offset
        words[END] = self.next_offset

    def refresh(self) -> None:
        """Reads what others appended. Raises Rejected, and OSError."""
        words = self._words
        if words[END] != self.next_offset or words[GENERATION] != self._generation or words[START] != self.start_offset:
            with self:
                pass

    # Reading on

    def _catch_up(self) -> None:
        words = self._words
        try:
            if not self._segments:
                raise FileNotFoundError  # another shard has begun the first
            heed = Replay(self.producers, self.aborted)
            while True:
                last = self._segments[-1]
                closed = last.base_offset != words[BASE]
                for piece in last.appended(os.stat(last.path).st_size if closed else words[SIZE]):
                    heed(piece)
                    self._wake_waiters(piece.batch.size if piece.marker is None else ANY_BYTES)
                if not closed:
                    break
                self._begin(LogSegment(self.directory, last.next_offset, self._files))
            if words[START] > self.start_offset:
                self._start_at(words[START])
        except (DamagedSegment, FileNotFoundError):
            self._reload()
        if words[END] != self.next_offset or words[START] != self.start_offset:
            self._reload()

    def _reload(self) -> None:
        """Opens the log anew from its files (dirty_logs_are_reopened, old_generations_are_reopened, logs_belong_to_topic_ids)."""
        words, end = self._words, self._end
        claimed, version = end.topic_id, self._version()
        if end.lost or (claimed != self.topic_id and version < max(words[CLAIMED_AT], end.ends.deleted_at)):
            raise NOT_YET.with_traceback(None)
        known = words[GENERATION], words[BASE], words[SIZE], words[START], words[END]
        goes_on = claimed == self.topic_id and not words[DIRTY]
        words[DIRTY] = 1
        if claimed != self.topic_id:
            if claimed.int:
                end.ends.deleted(version)
            end.claim(self.topic_id, version)
        self._load()
        with contextlib.suppress(OSError):
            self._drop_deleted()  # other shards then need no notice when the deletion is made up for
        self._publish()
        if not goes_on or known != (words[GENERATION], words[BASE], words[SIZE], words[START], words[END]):
            words[GENERATION] += 1
        self._generation, self._cleanings = words[GENERATION], words[CLEANINGS]
        self._wake_waiters(ANY_BYTES)

    # Cleaning

    def replace_segments(self, sources: list[LogSegment], cleaned: LogSegment, made: str) -> bool:
        """cleaned_in_place_by_rename: the file at path `made` becomes `cleaned`, in the place of `sources`. False, and
        nothing is done, if the log has changed meanwhile so that they are no longer there. Raises Rejected, and OSError."""
        with self:
            files = [(segment.path, segment.size) for segment in self.closed_segments]
            first, *_ = wanted = [(segment.path, segment.size) for segment in sources]
            at = files.index(first) if first in files else len(files)
            if files[at : at + len(wanted)] != wanted:
                return False
            os.rename(made, cleaned.path)
            self._words[GENERATION] += 1  # first: a shard that finds it alone opens the log again
            self._words[CLEANINGS] += 1
            recovery.delete_replaced(sources, [cleaned])
            self._take_cleaned()
        return True

    def _renew(self) -> None:
        """dirty_logs_are_reopened, old_generations_are_reopened; cleaned_in_place_by_rename: if nothing but cleaned
        segments and what was appended is new, no more than that is read."""
        words = self._words
        only_cleaned = words[GENERATION] - self._generation == words[CLEANINGS] - self._cleanings
        if words[DIRTY] or self._generation < 0 or not only_cleaned:
            self._reload()
            return
        self._catch_up()
        if words[GENERATION] != self._generation:
            self._take_cleaned()

    def _take_cleaned(self) -> None:
        taken = recovery.after_cleaning(self._segments, self.aborted, self._files) if self._segments else None
        if taken is None:
            self._reload()
            return
        before, start = self._segments, self.start_offset
        self._segments, self.aborted = taken
        for segment in before:
            if segment not in self._segments:
                self._files.forget(segment.path)
        self._resume.clear()
        self.aborted.drop_before(start)
        self._generation, self._cleanings = self._words[GENERATION], self._words[CLEANINGS]

    def mend(self, damaged: DamagedSegment) -> None:
        """Repairs a segment in which the cleaner met damage. Raises Rejected, and OSError."""
        self._repair(damaged)

    # What PartitionLog does, in turn

    def _open(self) -> None:
        with self:
            pass

    def append(self, batch_bytes: bytes | None, now_ms: int, verified_at: int | None = None) -> AppendInfo:
        batch, batch_bytes = validation.validate(batch_bytes, self.limits, now_ms)
        with self:
            return self._append(batch, batch_bytes, now_ms, verified_at)

    def end_transaction(self, producer_id: int, epoch: int, marker: EndTransactionMarker, now_ms: int) -> None:
        with self:
            super().end_transaction(producer_id, epoch, marker, now_ms)

    def delete_before(self, offset: int) -> int:
        with self:
            return super().delete_before(offset)

    def retain(self, now_ms: int) -> None:
        with self:
            super().retain(now_ms)

    def _reading(self, read: Callable[[], T]) -> T:
        try:
            return super()._reading(read)
        except FileNotFoundError:  # another shard has just dropped that segment
            with self:
                pass
            return super()._reading(read)

    def _repair(self, damaged: DamagedSegment) -> None:
        with self:
            super()._repair(damaged)
            self._words[GENERATION] += 1

    # Waiting

    def watch(self, waiter: AppendWaiter) -> None:
        """Tells `waiter` of all that comes behind `next_offset` as it is then. Raises Rejected, and OSError."""
        self.waiters.add(waiter)
        if self._words[WAITING] & self._bit:
            self.refresh()
        else:
            self.appended_elsewhere()

    def appended_elsewhere(self) -> None:
        """Another shard has appended (append_notices.py): reads what is new, and wakes the waiters."""
        if self.waiters:
            with self:
                self._words[WAITING] |= self._bit
