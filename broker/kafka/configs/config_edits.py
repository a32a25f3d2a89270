"""The edits of AlterConfigs and IncrementalAlterConfigs, and the changes that the coordinator is asked for in turn."""

from typing import NamedTuple

SET, DELETE, APPEND, SUBTRACT = range(4)
"""Source: AlterConfigOp.OpType."""


class ConfigChange(NamedTuple):
    """One setting as the coordinator is asked to change it; `value` None: back to the inherited value."""

    resource: str
    """A broker id as text, "" for all brokers; or a topic."""
    name: str
    value: str | None


class Edit(NamedTuple):
    name: str
    operation: int
    value: str | None
