"""Views of one log as many processes would have them, and processes that end at any write."""

import os
import random
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar
from uuid import UUID

import pytest

from broker.storage.files import OpenFiles
from broker.storage.log_config import LogConfig
from broker.storage.log_ends import LogEnds
from broker.storage.shared_log import SharedLog

TOPIC = UUID(int=1)
SMALL = LogConfig(segment_bytes=600, retention_bytes=-1)
WRITES = ("pwritev", "pwrite", "ftruncate", "replace", "unlink", "open", "makedirs")
Item = TypeVar("Item")


class Shards:
    """Views of one log, as many processes would have them."""

    def __init__(self, directory: Path, count: int = 2, limits: LogConfig = SMALL) -> None:
        self.directory = directory / "t-0"
        self.ends = LogEnds(16)
        self.limits = limits
        self.version = [1] * 4
        self.told: list[tuple[int, int]] = []  # who tells whom
        self.views = [self.opened(shard) for shard in range(count)]
        self._killed: list[SharedLog] = []

    def killed(self, shard: int) -> None:
        """Another process takes the place of one that was killed."""
        self._killed.append(self.views[shard])
        self.views[shard] = self.opened(shard)

    @contextmanager
    def perhaps_killed(
        self, shard: int, choose: random.Random, likelihood: float, calls: Sequence[str] = WRITES
    ) -> Iterator[None]:
        """With that likelihood the process of the view ends within at one of the calls, or at a write to the shared words."""
        view = self.views[shard]
        with pytest.MonkeyPatch.context() as patch:
            if choose.random() < likelihood:
                view._words = view._end.words = DeadlyWords(view._end.words, Deadly(patch, choose, calls))
            try:
                yield
            except Killed:
                self.killed(shard)
            view._end.words = view._words = self.ends.end_of(0, "t", 0).words

    def appended(
        self, shard: int, sent: list[Item], items: Sequence[Item], append: Callable[[SharedLog], object]
    ) -> None:
        """The items, one an offset, are appended by the view; if it is killed, all of them may be there, or none."""
        try:
            append(self.views[shard])
        except Killed:
            other = self.views[(shard + 1) % len(self.views)]
            with other:
                pass
            if other.next_offset != len(sent):
                sent += items
            raise
        sent += items

    def close(self) -> None:
        """Closes the descriptors, as the kernel does for who was killed."""
        for view in (*self._killed, *self.views):
            view.close()

    def opened(self, shard: int, topic_id: UUID = TOPIC) -> SharedLog:
        return SharedLog(
            str(self.directory),
            topic_id,
            OpenFiles(max_open=3),
            self.ends.end_of(0, "t", 0),
            shard=shard,
            version=lambda: self.version[shard],
            notify=lambda bits: self.told.append((shard, bits)),
            limits=self.limits,
        )


def state(log: SharedLog) -> Any:
    log.refresh()
    log.check()
    return (
        log.start_offset,
        log.next_offset,
        log.last_stable_offset,
        log.producers.dump(),
        log.aborted.dump(0, 1 << 60),
        [
            (segment.base_offset, segment.size, segment.max_timestamp, list(segment.offsets))
            for segment in log._segments
        ],
    )


class Killed(BaseException):
    """The process ends here."""


class Deadly:
    """Ends the process at the n-th write to memory or to files from now on, perhaps in the middle of it."""

    def __init__(self, patch: pytest.MonkeyPatch, choose: random.Random, calls: Sequence[str] = WRITES) -> None:
        self.left = choose.randrange(40)
        self.fired = False
        self._choose = choose
        for name in calls:
            patch.setattr(os, name, self._deadly(name, getattr(os, name)))

    def _deadly(self, name: str, call: Callable[..., Any]) -> Callable[..., Any]:
        def instead(*args: Any, **more: Any) -> Any:
            if self.is_over():
                if name == "pwritev":
                    whole = b"".join(args[1])
                    os.write(self._at(args[0], args[2]), whole[: self._choose.randrange(len(whole) + 1)])
                elif self._choose.random() < 0.5:
                    call(*args, **more)
                raise Killed
            return call(*args, **more)

        return instead

    @staticmethod
    def _at(descriptor: int, position: int) -> int:
        os.lseek(descriptor, position, os.SEEK_SET)
        return descriptor

    def is_over(self) -> bool:
        if self.fired:
            return False
        self.left -= 1
        self.fired = self.left < 0
        return self.fired


class DeadlyWords:
    def __init__(self, words: Any, deadly: Deadly) -> None:
        self._words = words
        self._deadly = deadly

    def __getitem__(self, index: Any) -> Any:
        return self._words[index]

    def __setitem__(self, index: int, value: int) -> None:
        if self._deadly.is_over():
            raise Killed
        self._words[index] = value
