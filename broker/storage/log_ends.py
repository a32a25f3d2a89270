"""Where each partition's log ends, in memory that all shards of the cluster share, and a lock for each log.

words_change_under_the_lock  Only who holds the lock of a log changes its words, but for WANTED. The kernel takes the lock
    from a process that dies.
dirty_until_files_agree  DIRTY is set before anything of a log is changed, and cleared when its files and its words agree
    again. So who takes the lock and finds it set knows that its last holder died in the middle, and reads the files anew.
generations_never_return  GENERATION changes with all that reading on can't tell: a repair, a deletion, a cleaning, another
    topic. It never returns to what it was, nor does a place when another log gets it; so a shard that knew the log before
    notices.
deletions_are_heard_first  A shard that has not heard of the last deletion takes no log over that it does not know yet:
    `deleted_at`.
appenders_yield_the_lock  A shard that goes on appending leaves the lock to one that has waited for a millisecond: it does
    not take it again before that one has had it, or 5 ms are over. The kernel has no queue for that: who takes the lock
    again at once nearly always gets it.
freed_places_end_in_empty_ones  No freed place is followed by an empty one: to look a log up takes as many steps as there
    are logs whose keys collide, and does not become slow by logs that were deleted.

A word is 8 bytes that are stored at once, so who reads without the lock finds the old value or the new one. The memory is
made by the supervisor before it forks. It has no file that a full disk could keep from growing, and is empty when the
cluster starts: what lasts is in the logs. It takes a page of memory for each partition that is used, MOST_LOGS * 128 bytes at
most.
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
"""The log that has this place: a hash of its broker, topic and partition; 0: none has, and none had; FREED."""
GENERATION: Final = 1
DIRTY: Final = 2
BASE: Final = 3
"""The base offset of the last segment; -1 without one."""
SIZE: Final = 4
"""Bytes of it that are whole batches."""
END: Final = 5
"""The offset behind the last record."""
START: Final = 6
WAITING: Final = 7
"""A bit for each shard that is to be told of the next append."""
CLAIMED_AT: Final = 8
"""The version of the configuration by which its topic id was written."""
TOPIC_ID: Final = 9  # and the word behind it
CLEANINGS: Final = 11
"""The number of changes of GENERATION that were but a cleaned segment in the place of others."""
WANTED: Final = 12
"""1: a shard has waited for the lock for a while (appenders_yield_the_lock). Written without the lock: it is a hint."""
_WORDS: Final = 16
FREED: Final = 1
_TABLE: Final = 0  # the place whose lock is that of all keys; its first word is `deleted_at`
_ID = struct.Struct(">qq")
_LOOK_AFTER_S = 0.1
_PATIENCE_S = 0.25  # a shard that waits serves nobody: far below heartbeat.LATE_S
_PAUSE_S = 0.00005
_GIVE_WAY_S = 0.001
_GIVING_WAY_S = 0.005
_FLOCK = struct.Struct("hhqqi0q")  # struct flock: type, whence, start, length, pid
BUSY = Rejected(codes.NOT_LEADER_OR_FOLLOWER, "Another shard holds the partition's log.")
FULL = Rejected(codes.KAFKA_STORAGE_ERROR, f"The cluster holds {MOST_LOGS} partitions with records already.")


class LogEnds:
    """One for the cluster. Processes that are forked later share it."""

    def __init__(self, most: int = MOST_LOGS) -> None:
        self._most = most
        self._file = os.memfd_create("log-ends", os.MFD_CLOEXEC)
        os.ftruncate(self._file, most * _WORDS * 8)
        # Locks are a process's, and go when it closes any descriptor of the file.
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
        """That log's place, which it gets if it has none. Raises Rejected."""
        name = f"{broker}/{topic}/{partition}".encode()
        key = (int.from_bytes(blake2b(name, digest_size=8).digest(), "little") >> 1) | 2
        with self._table:
            place = self._find(key)
            self._words[place * _WORDS + KEY] = key
        return LogEnd(self, self._file, place, self._at(place), key)

    def free(self, end: LogEnd) -> None:
        """The log's files are gone. To be called with its lock."""
        words = end.words
        words[GENERATION] += 1
        words[BASE], words[TOPIC_ID], words[TOPIC_ID + 1] = -1, 0, 0
        words[SIZE] = words[END] = words[START] = words[WAITING] = words[CLAIMED_AT] = 0
        with self._table:
            words[KEY] = FREED  # logs behind it are found over it
            behind = (end.place + 1) % self._most or _TABLE + 1
            if not self._words[behind * _WORDS + KEY]:
                self._forget_freed(end.place)
        words[DIRTY] = 0

    def _forget_freed(self, place: int) -> None:
        """Empties a freed place that is followed by an empty one, and those before it (freed_places_end_in_empty_ones)."""
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
    """`words` of one log, and its lock as a context. A holder is done in far less than a millisecond, unless it waits for a CPU:
    so it is waited for, but not one that is stopped. Then who wants the lock is told BUSY, at once when the one before was, too.
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
        """True if another log has the place, or none."""
        return self.words[KEY] != self._key

    @property
    def topic_id(self) -> UUID:
        return UUID(bytes=_ID.pack(*self.words[TOPIC_ID : TOPIC_ID + 2]))

    def claim(self, topic_id: UUID, version: int) -> None:
        """To be called with the lock."""
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
        """Until another shard has taken the lock; not for long, as that may have died."""
        until_s = time.monotonic() + _GIVING_WAY_S
        while self.words[WANTED] and time.monotonic() < until_s:
            time.sleep(_PAUSE_S)
        self.words[WANTED] = 0

    def _lock(self) -> None:
        """Raises OSError if another process has it."""
        fcntl.lockf(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, self.place)

    def _wait(self) -> None:
        """Until the lock is free. Raises Rejected."""
        began = time.monotonic()
        while not self._stuck:
            time.sleep(_PAUSE_S)
            try:
                self._lock()
                self.words[WANTED] = 0  # another one that waits says so again
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
