"""The topics of the cluster, as share groups and streams groups see them."""

from __future__ import annotations

from typing import Protocol


class GroupTopics(Protocol):
    """`version` is another one whenever an answer may be."""

    @property
    def version(self) -> int: ...

    def get(self, name: str) -> tuple[str, int] | None:
        """(id in hex, number of partitions)."""
