"""The end of each partition's log, in memory that all shards of the cluster share, with a lock for each log.

words_change_under_the_lock  A shard changes the words of a log only while it holds the log's lock; WANTED alone is written without
    it. When a process dies, the kernel releases its locks.
dirty_until_files_agree  A shard sets DIRTY before it changes anything of a log, and clears DIRTY when the files and the words agree
    again. A shard that takes the lock and finds DIRTY set knows that the last holder died in the middle: it opens the log anew.
generations_never_return  GENERATION rises with each change that a shard can't follow by reading on: a repair, a deletion, a
    cleaning, another topic. It never falls, even when another log gets the place. So a shard notices that its view is outdated.
deletions_are_heard_first  A log is opened for another topic id only by a shard whose configuration is as new as the last deletion
    of a log (`deleted_at`).
appenders_yield_the_lock  A shard that releases the lock while another one has waited for a millisecond does not take it again at
    once: it waits until the other one has taken it, for 5 ms at most. The kernel keeps no queue of waiters: without that, a shard
    that appends without end would nearly always get the lock again.
freed_places_end_in_used_ones  No freed place is followed by an empty one. So a lookup takes as many steps as there are logs whose
    keys collide, however many logs were deleted.

A word is 8 bytes that are stored at once, so a shard that reads without the lock finds the old value or the new one. The supervisor
makes the memory before it forks. It belongs to no file of a disk that could be full, and it is empty when the cluster starts: all
that must last is in the logs. It takes one page for each partition in use, and MOST_LOGS * 128 bytes at most.
"""

from __future__ import annotations

import fcntl
import mmap
import os
import struct
import time
import weakref
from hashlib import blake2b
from pathlib import Path
from typing import Final
from uuid import UUID

from broker.storage.records import Rejected
from broker.wire import codes

MOST_LOGS: Final = 1 << 19
KEY: Final = 0
"""A hash of broker, topic and partition of the log that has this place; 0: no log ever had it; FREED: that log was deleted."""
GENERATION: Final = 1
DIRTY: Final = 2
BASE: Final = 3
"""The base offset of the last segment; -1 without one."""
SIZE: Final = 4
"""Bytes of the last segment that are whole batches."""
END: Final = 5
"""The offset of the next record."""
START: Final = 6
WAITING: Final = 7
"""A bit for each shard that waits to be told of the next append."""
CLAIMED_AT: Final = 8
"""The version of the configuration under which TOPIC_ID was written."""
TOPIC_ID: Final = 9  # two words
CLEANINGS: Final = 11
"""The number of changes of GENERATION by which a cleaned segment replaced others, and nothing else changed."""
WANTED: Final = 12
"""1: a shard has waited for the lock for a millisecond (appenders_yield_the_lock). A hint, written without the lock."""
_WORDS: Final = 16
FREED: Final = 1
_TABLE: Final = 0  # the place whose lock is that of all keys; its first word is `deleted_at`
_ID = struct.Struct(">qq")
_LOOK_AFTER_S = 0.1
_PATIENCE_S = 0.25  # far below shard_watchdog.LATE_S, as a shard serves no client while it waits
_PAUSE_S = 0.00005
_GIVE_WAY_S = 0.001
_GIVING_WAY_S = 0.005
_FLOCK = struct.Struct("hhqqi0q")  # struct flock: type, whence, start, length, pid
BUSY = Rejected(codes.NOT_LEADER_OR_FOLLOWER, "Another shard holds the partition's log.")
FULL = Rejected(codes.KAFKA_STORAGE_ERROR, f"The cluster holds {MOST_LOGS} partitions with records already.")


class LogEnds:
    """The words and locks of all logs of a cluster, shared with every process that is forked later."""

    def __init__(self, most: int = MOST_LOGS) -> None:
        self._most = most
        self._file = os.memfd_create("log-ends", os.MFD_CLOEXEC)
        os.ftruncate(self._file, most * _WORDS * 8)
        # A process loses all its locks of a file when it closes any descriptor of it, so this one stays open.
        weakref.finalize(self, os.close, self._file).atexit = False
        self._words = memoryview(mmap.mmap(self._file, most * _WORDS * 8)).cast("q")
        self._table = LogEnd(self, self._file, _TABLE, self._at(_TABLE), 0)

    @property
    def deleted_at(self) -> int:
        """The newest version of the configuration by which a log was deleted."""
        return self._words[0]

    def deleted(self, version: int) -> None:
        with self._table:
            self._words[0] = max(self._words[0], version)

    def end_of(self, broker: int, topic: str, partition: int) -> LogEnd:
        """The words of a log; a log that has no place yet gets one. Raises Rejected: FULL, or BUSY."""
        name = f"{broker}/{topic}/{partition}".encode()
        key = (int.from_bytes(blake2b(name, digest_size=8).digest(), "little") >> 1) | 2
        with self._table:
            place = self._find(key)
            self._words[place * _WORDS + KEY] = key
        return LogEnd(self, self._file, place, self._at(place), key)

    def free(self, end: LogEnd) -> None:
        """Frees the place of a log whose files are deleted. Call it with the lock of the log."""
        words = end.words
        words[GENERATION] += 1
        words[BASE], words[TOPIC_ID], words[TOPIC_ID + 1] = -1, 0, 0
        words[SIZE] = words[END] = words[START] = words[WAITING] = words[CLAIMED_AT] = 0
        with self._table:
            words[KEY] = FREED  # a lookup goes on behind a freed place
            behind = (end.place + 1) % self._most or _TABLE + 1
            if not self._words[behind * _WORDS + KEY]:
                self._forget_freed(end.place)
        words[DIRTY] = 0

    def _forget_freed(self, place: int) -> None:
        """Empties a freed place that is followed by an empty one, and those before it (freed_places_end_in_used_ones)."""
        while self._key_at(place) == FREED:
            if place != _TABLE:
                self._words[place * _WORDS + KEY] = 0
            place = (place - 1) % self._most

    def _key_at(self, place: int) -> int:
        return FREED if place == _TABLE else self._words[place * _WORDS + KEY]

    def _find(self, key: int) -> int:
        free = _TABLE
        for step in range(self._most):
            place = (key + step) % self._most
            found = self._key_at(place)
            if found == key:
                return place
            if found <= FREED and not free:
                free = place
            if not found:
                break
        if not free:
            raise FULL.with_traceback(None)
        return free

    def _at(self, place: int) -> memoryview[int]:
        return self._words[place * _WORDS : (place + 1) * _WORDS]


class LogEnd:
    """The words of one log, and its lock as a context manager.

    A holder is done in far less than a millisecond unless it waits for a CPU. So entering waits for the lock for up to
    _PATIENCE_S, or _LOOK_AFTER_S if the holder's process is stopped, and then raises BUSY. From then on it raises BUSY without
    a wait, until it finds the lock free.
    """

    __slots__ = ("_file", "_key", "_stuck", "ends", "place", "words")

    def __init__(self, ends: LogEnds, file: int, place: int, words: memoryview[int], key: int) -> None:
        self.ends = ends
        self.words = words
        self._file = file
        self.place = place
        self._key = key
        self._stuck = False

    @property
    def lost(self) -> bool:
        """True if the place was freed, or belongs to another log now."""
        return self.words[KEY] != self._key

    @property
    def topic_id(self) -> UUID:
        return UUID(bytes=_ID.pack(*self.words[TOPIC_ID : TOPIC_ID + 2]))

    def claim(self, topic_id: UUID, version: int) -> None:
        """Gives the log to a topic id, under a version of the configuration. Call it with the lock."""
        self.words[TOPIC_ID], self.words[TOPIC_ID + 1] = _ID.unpack(topic_id.bytes)
        self.words[CLAIMED_AT] = version

    def __enter__(self) -> None:
        try:
            self._lock()
        except OSError:
            self._wait()

    def __exit__(self, *_: object) -> None:
        self._stuck = False
        fcntl.lockf(self._file, fcntl.LOCK_UN, 1, self.place)
        if self.words[WANTED]:
            self._give_way()

    def _give_way(self) -> None:
        """Waits until another shard has taken the lock, for _GIVING_WAY_S at most: that shard may have died."""
        until_s = time.monotonic() + _GIVING_WAY_S
        while self.words[WANTED] and time.monotonic() < until_s:
            time.sleep(_PAUSE_S)
        self.words[WANTED] = 0

    def _lock(self) -> None:
        """Takes the lock. Raises OSError if another process has it."""
        fcntl.lockf(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, self.place)

    def _wait(self) -> None:
        """Waits for the lock, and takes it. Raises BUSY."""
        began = time.monotonic()
        while not self._stuck:
            time.sleep(_PAUSE_S)
            try:
                self._lock()
                self.words[WANTED] = 0  # another shard that waits sets it again
                return
            except OSError:
                waited_s = time.monotonic() - began
                if waited_s > _GIVE_WAY_S:
                    self.words[WANTED] = 1
                self._stuck = waited_s > _PATIENCE_S or (waited_s > _LOOK_AFTER_S and self._holder_is_stopped())
        raise BUSY.with_traceback(None)

    def _holder_is_stopped(self) -> bool:
        asked = _FLOCK.pack(fcntl.F_WRLCK, os.SEEK_SET, self.place, 1, 0)
        kind, *_, pid = _FLOCK.unpack(fcntl.fcntl(self._file, fcntl.F_GETLK, asked))
        try:
            state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        except (OSError, IndexError):
            return False
        return kind != fcntl.F_UNLCK and state in "Tt"
