"""The names of a log's segment files, and which of them are in force.

A segment as it was appended to is `<base offset>.log`. One that the cleaner made (broker/storage/cleaning.py) is
`<base offset>-<end>-<round>.log`: it holds what is left of all records in [base offset, end).

one_rename_replaces  A file is in force unless a file of a later round covers its base offset. So one rename puts a cleaned
    segment in the place of all that it was made of, whichever of those are still there.
names_are_not_reused  No name is ever used for other bytes, until the log is another one: who holds on to a name finds that
    file or none.
"""

import re
from collections.abc import Iterable
from typing import NamedTuple

_NAME = re.compile(r"([0-9]{20})(?:-([0-9]{20})-([0-9]{1,18}))?\.log")


class SegmentName(NamedTuple):
    """`end`: the offset behind a cleaned segment; `round`: how often its log had been cleaned. Both are 0 of what was appended."""

    base_offset: int
    end: int = 0
    round: int = 0

    @property
    def stem(self) -> str:
        """The name without its ending, which is that of the files beside it, too."""
        base = f"{self.base_offset:020d}"
        return f"{base}-{self.end:020d}-{self.round}" if self.round else base


class SegmentNames(NamedTuple):
    """The segments of a log that are in force, by their base offsets, and those that others have replaced."""

    in_force: list[SegmentName]
    replaced: list[SegmentName]


def in_force(files: Iterable[str]) -> SegmentNames:
    """Of the files of a directory: the segments in force by their base offsets, and those that others have replaced
    (one_rename_replaces)."""
    names = [
        SegmentName(*(int(number or 0) for number in found.groups())) for found in map(_NAME.fullmatch, files) if found
    ]
    kept: list[SegmentName] = []
    replaced: list[SegmentName] = []
    reaching: list[SegmentName] = []  # cleaned ones that end behind where we are
    for name in sorted(names, key=lambda each: (each.base_offset, -each.round)):
        reaching = [other for other in reaching if other.end > name.base_offset]
        (replaced if any(other.round > name.round for other in reaching) else kept).append(name)
        if name.round:
            reaching.append(name)
    return SegmentNames(kept, replaced)
