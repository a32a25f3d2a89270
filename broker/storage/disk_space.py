"""The guard on free disk space: while its volume has less than `storage_min_free_bytes`, nothing is appended to any log.

Redpanda refuses producers below that, too, with BROKER_NOT_AVAILABLE, which clients take as final; so does the setting here. Kafka
goes on until a write fails, and then takes the directory out of service: KAFKA_STORAGE_ERROR, which clients retry. While the
setting is unset, this broker answers the same. Consumers go on reading, and committing offsets.

full_as_last_looked  `full` tells what the last `look` found: bytes that arrive between two looks are still written.
"""

import os
from collections.abc import Callable
from typing import NamedTuple

from broker.runtime.logger import Logger
from broker.storage.records import Rejected
from broker.wire import codes

SETTING = "storage_min_free_bytes"
LOOK_EVERY_S = 0.25
_LEAST_FREE_BYTES = 1 << 30
_LEAST_SHARE = 20  # a twentieth of a small volume: /dev/shm of a container may have 64 MB

log = Logger()


class Volume(NamedTuple):
    """Bytes in all, and bytes free to us; -1 and -1 if the system does not say."""

    total_bytes: int
    free_bytes: int


def volume_of(directory: str) -> Volume:
    """The volume that a directory is on, or will be: nothing is made before there is something to write."""
    try:
        found = os.statvfs(directory)
    except FileNotFoundError:
        return volume_of(os.path.dirname(os.path.abspath(directory)))
    except OSError:
        return Volume(-1, -1)
    return Volume(found.f_blocks * found.f_frsize, found.f_bavail * found.f_frsize)


def least_free_bytes(setting: int | None, volume: Volume) -> int:
    """The bytes of a volume that are left free: as many as are set, else 1 GiB, or a twentieth of a small volume."""
    return min(_LEAST_FREE_BYTES, volume.total_bytes // _LEAST_SHARE) if setting is None else setting


def is_full(setting: int | None, volume: Volume) -> bool:
    """True if nothing more is appended. False where the system reports no size: a write that fails will show it."""
    return 0 <= volume.free_bytes < least_free_bytes(setting, volume)


class DiskSpace:
    """`full`: why a batch is refused now, or None. `setting()`: the setting in force. `tells`: whether it logs changes."""

    def __init__(self, directory: str, setting: Callable[[], int | None], *, tells: bool = True) -> None:
        self.full: Rejected | None = None
        self._directory = directory
        self._setting = setting
        self._tells = tells

    def look(self) -> None:
        """Looks at the free space; to be called every LOOK_EVERY_S."""
        setting = self._setting()
        volume = volume_of(self._directory)
        full, was_full = is_full(setting, volume), self.full is not None
        if not (full or was_full):
            return
        least = least_free_bytes(setting, volume)
        self.full = None
        if full:
            code = codes.KAFKA_STORAGE_ERROR if setting is None else codes.BROKER_NOT_AVAILABLE
            self.full = Rejected(code, f"The disk has less than {least} bytes free ({SETTING}).")
        if self._tells and full != was_full:
            write = log.warning if full else log.info
            event = (
                "the disk is nearly full: produce is refused" if full else "the disk has room: produce is taken again"
            )
            write(event, free_bytes=volume.free_bytes, least_free_bytes=least, setting=SETTING)
