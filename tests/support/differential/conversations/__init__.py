"""The conversations, one module for each family of APIs; importing this package fills differential.table.ROWS."""

from differential.conversations import (  # noqa: F401
    acls,
    cluster,
    configs,
    consumer_groups,
    delegation_tokens,
    groups,
    offsets,
    quotas,
    records,
    topics,
    transactions,
)
