"""The topic's configs that its logs obey."""

from typing import NamedTuple


class LogConfig(NamedTuple):
    """Bytes and milliseconds; `retention_*` -1: unlimited. The defaults are for tests."""

    max_message_bytes: int = 1_048_588
    retention_bytes: int = 1 << 30
    retention_ms: int = -1
    segment_bytes: int = 64 << 20
    log_append_time: bool = False  # message.timestamp.type
    compacted: bool = False
    roll_ms: int = (1 << 63) - 1  # segment.ms, or max.compaction.lag.ms of a compacted topic
    min_cleanable_ratio: float = 0.5
    min_compaction_lag_ms: int = 0
    max_compaction_lag_ms: int = (1 << 63) - 1
    delete_retention_ms: int = 86_400_000
    timestamp_before_max_ms: int = (1 << 63) - 1
    timestamp_after_max_ms: int = 3_600_000
