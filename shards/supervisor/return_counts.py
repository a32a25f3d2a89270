"""The returns of tokens (shards/tokens/full_pools.py), counted in memory that the shards of a broker, or of a cluster, share.

only_its_shard_writes  A number is written by one shard alone, and only rises, also over its restarts. So two equal sums mean
    that none of their numbers has changed in between.
the_kernel_tells_deaths  Each shard that lives holds a robust mutex (pthread_mutexattr_setrobust(3)), whose word has the id of its
    main thread. When that thread ends, however it ends, the kernel takes the id out before it closes the process's sockets:
    so a death is seen before anything that follows from it.
starts_count_before_they_live  A shard that starts counts its start before it takes its mutex.

The memory is made by the supervisor before it forks. Pools share numbers by their hash; a return of another pool only makes a
shard ask the home once more. A shard that can't have a robust mutex counts as dead: then every refusal asks the home.
"""

import ctypes
import mmap
import threading
from typing import Final

from shards.ownership import hash_of

PLACES: Final = 4096
_WORD: Final = 8
_MUTEX: Final = 64
"""Bytes for a pthread_mutex_t, which has 24 to 48 of them."""
_THREAD: Final = 0x3FFFFFFF
"""FUTEX_TID_MASK of linux/futex.h."""
_SHARED, _ROBUST = 1, 1  # PTHREAD_PROCESS_SHARED, PTHREAD_MUTEX_ROBUST
_taken: list[object] = []
"""The mutexes of this process: its thread has them in a list, so their memory must never be freed."""


class ReturnCounts:
    """The counts of returns that `shards` shards share."""

    def __init__(self, shards: int) -> None:
        self._shards: Final = shards
        self._starts_at: Final = PLACES * shards
        words = self._starts_at + shards
        self._mutexes_at: Final = -(-words * _WORD // _MUTEX) * _MUTEX
        self._memory = mmap.mmap(-1, self._mutexes_at + shards * _MUTEX)
        self._words = memoryview(self._memory)[: words * _WORD].cast("Q")
        self._owners = memoryview(self._memory)[self._mutexes_at :].cast("I")
        self._threads: tuple[int, ...] | None = None  # the place of each shard's thread in _owners, once `start` knows

    def start(self, shard: int) -> "ShardReturns":
        """The counts as one shard writes them. To be called once by its process, in the main thread."""
        self._words[self._starts_at + shard] += 1
        word = self._take_mutex(shard)
        if word is not None:
            self._threads = tuple(each * (_MUTEX // 4) + word for each in range(self._shards))
        return ShardReturns(self, shard)

    def of(self, key: str) -> int | None:
        """The number of returns of a pool, and of the starts of all shards. None while a shard is dead."""
        if self._threads is None:
            return None
        owners, words, shards = self._owners, self._words, self._shards
        for thread in self._threads:
            if not owners[thread] & _THREAD:
                return None
        first = hash_of(key) % PLACES * shards
        return sum(words[first : first + shards]) + sum(words[self._starts_at :])

    def add(self, shard: int, key: str) -> None:
        """A return of a pool on a shard, which is the one of this process."""
        self._words[hash_of(key) % PLACES * self._shards + shard] += 1

    def _take_mutex(self, shard: int) -> int | None:
        """Takes the mutex of a shard. Returns which of its words of four bytes has the thread's id, which depends on the C
        library; None: there are no robust mutexes."""
        at = self._mutexes_at + shard * _MUTEX
        mutex = (ctypes.c_char * _MUTEX).from_buffer(self._memory, at)
        _taken.append(mutex)
        attributes = (ctypes.c_char * _MUTEX)()
        words = memoryview(mutex).cast("B").cast("I")
        try:
            libc = ctypes.CDLL(None)
            if (
                libc.pthread_mutexattr_init(attributes)
                or libc.pthread_mutexattr_setpshared(attributes, _SHARED)
                or libc.pthread_mutexattr_setrobust(attributes, _ROBUST)
                or libc.pthread_mutex_init(mutex, attributes)
            ):
                return None
            before = list(words)
            if libc.pthread_mutex_lock(mutex):
                return None
        except AttributeError:  # a C library without one of them
            return None
        me = threading.get_native_id()
        taken = (place for place, word in enumerate(words) if word == me and not before[place])
        return next(taken, None)


class ShardReturns:
    """The counts as the tokens of one shard use them: ReturnCounts of full_pools.py."""

    def __init__(self, counts: ReturnCounts, shard: int) -> None:
        self._counts = counts
        self._shard = shard

    def of(self, key: str) -> int | None:
        """The number of returns of a pool; None while a shard is dead."""
        return self._counts.of(key)

    def add(self, key: str) -> None:
        """Counts a return of a pool on this shard."""
        self._counts.add(self._shard, key)
