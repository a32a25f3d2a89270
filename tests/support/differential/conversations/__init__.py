"""The conversations, one module for each family of APIs; importing this package fills differential.table.ROWS."""

from differential.conversations import (  # noqa: F401
    consumer_groups,
    groups,
    offsets,
    records,
    topics,
)
