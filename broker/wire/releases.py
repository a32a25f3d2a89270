"""The API versions that brokers of each release announce: what is served in the place of that release.

A cluster serves what both have: `release_apis.tsv`, written from the jars of each release, and the versions known here (apis.py).
So versions older than those of Kafka 4 are not served in the place of an older release either.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import NamedTuple

_TABLE = Path(__file__).with_name("release_apis.tsv")


class VersionRange(NamedTuple):
    """`least` and `most` are both of it."""

    least: int
    most: int

    def within(self, other: VersionRange) -> VersionRange | None:
        """The versions that both have; None if there is none."""
        both = VersionRange(max(self.least, other.least), min(self.most, other.most))
        return both if both.least <= both.most else None


@cache
def ranges_of(release: str) -> Mapping[int, VersionRange]:
    """The versions of a release by API key. Raises KeyError for a release that the table does not have."""
    lines = [line.split("\t") for line in _TABLE.read_text().splitlines() if not line.startswith("#")]
    column = {name: at for at, name in enumerate(lines[0])}[release]
    return {int(line[0]): VersionRange(*map(int, line[column].split("-"))) for line in lines[1:] if line[column] != "-"}
