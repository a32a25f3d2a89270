"""A group with its members as they were last written. Rows are made and read by the records.py of each protocol."""

from __future__ import annotations

from collections.abc import Mapping, Sequence


class StoredGroup:
    """`kind` is that of the records; `row` is of the group, `members` are the rows of its members."""

    def __init__(self, kind: int) -> None:
        self.kind = kind
        self.row: Sequence[object] = ()
        self.members: dict[str, Sequence[object]] = {}

    def apply(self, row: Sequence[object], members: Mapping[str, Sequence[object] | None]) -> None:
        """A row None: that member is gone."""
        self.row = row
        for member_id, each in members.items():
            if each is None:
                self.members.pop(member_id, None)
            else:
                self.members[member_id] = each
