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
    timestamp_before_max_ms: int = (1 << 63) - 1
    timestamp_after_max_ms: int = 3_600_000
