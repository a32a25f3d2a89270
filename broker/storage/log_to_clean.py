"""The part of a compacted log that may be cleaned, and the time at which it is.

Source: LogCleanerManager.cleanableOffsets, maxCompactionDelay and grabFilthiestCompactedLog, LogToClean of Kafka 4.1.
"""

import os
from typing import NamedTuple
from uuid import UUID

from broker.storage.files import read_checked, replace_checked
from broker.storage.partition_log import PartitionLog
from broker.storage.segment import LogSegment
from broker.storage.segment_name import in_force

CHECKPOINT = "cleaner.checkpoint"


class LogToClean(NamedTuple):
    """`segments`: all that may be cleaned, those in front of `first_dirty` again. `ratio`: dirty bytes of all bytes of these.
    `is_late`: max.compaction.lag.ms is over for a dirty segment."""

    segments: list[LogSegment]
    first_dirty: int
    ratio: float
    is_late: bool


def log_to_clean(log: PartitionLog, checkpoint: int, now_ms: int) -> LogToClean | None:
    """None if nothing is to be done. `checkpoint`: up to which offset it is clean. Raises DamagedSegment, and OSError."""
    limits, closed = log.limits, log.closed_segments
    first_dirty = checkpoint if log.start_offset <= checkpoint <= log.next_offset else log.start_offset
    dirty = [segment for segment in closed if segment.next_offset > first_dirty]
    uncleanable = log.last_stable_offset
    if limits.min_compaction_lag_ms > 0:
        young = [each.base_offset for each in dirty if each.max_timestamp > now_ms - limits.min_compaction_lag_ms]
        uncleanable = min([uncleanable, *young[:1]])
    segments = [segment for segment in closed if segment.next_offset <= uncleanable]
    cleanable_bytes = sum(segment.size for segment in segments if segment.next_offset > first_dirty)
    clean_bytes = sum(segment.size for segment in segments if segment.base_offset < first_dirty)
    if not cleanable_bytes:
        return None
    ratio = cleanable_bytes / (clean_bytes + cleanable_bytes)
    first_timestamps = [timestamp for each in dirty if (timestamp := each.first_batch_timestamp()) > 0]
    is_late = min(first_timestamps, default=now_ms) < now_ms - limits.max_compaction_lag_ms
    if not is_late and ratio <= limits.min_cleanable_ratio:
        return None
    return LogToClean(segments, first_dirty, ratio, is_late)


def has_dirty_segments(directory: str, topic_id: UUID) -> bool:
    """True if closed segments are not clean, by the names of the files alone: the log need not be opened. Raises OSError."""
    try:
        names, _ = in_force(os.listdir(directory))
    except FileNotFoundError:
        return False
    return len(names) > 1 and load_checkpoint(directory, topic_id) != names[-1].base_offset


def load_checkpoint(directory: str, topic_id: UUID) -> int:
    """Up to which offset the log of that topic was cleaned; -1 if that is not known: all of it is dirty then."""
    try:
        kept_id, offset = read_checked(os.path.join(directory, CHECKPOINT))
    except (OSError, TypeError, ValueError):
        return -1
    return int(offset) if kept_id == topic_id.bytes else -1


def save_checkpoint(directory: str, topic_id: UUID, offset: int) -> None:
    """Raises OSError."""
    replace_checked(os.path.join(directory, CHECKPOINT), [topic_id.bytes, offset])
