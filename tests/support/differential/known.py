"""The rows of docs/differences.md: which differences from Kafka are meant."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from fnmatch import fnmatchcase
from pathlib import Path
from typing import NamedTuple

from differential.compare import Difference

PAGE = Path(__file__).parents[3] / "docs" / "differences.md"


class Known(NamedTuple):
    """A row: `| API | versions | asked | field | why |`. The first four are patterns of a shell, versions "all" or "0-3"."""

    api: str
    versions: str
    asked: str
    field: str
    why: str

    def explains(self, found: Difference) -> bool:
        patterns = ((self.api, found.api), (self.asked, found.label), (self.field, found.field))
        return all(fnmatchcase(text, _literal(pattern)) for pattern, text in patterns) and self._has(found.version)

    def _has(self, version: int) -> bool:
        least, _, most = self.versions.partition("-")
        return self.versions == "all" or int(least) <= version <= int(most or least)


def _literal(pattern: str) -> str:
    """Only * is special: fields have brackets, labels question marks."""
    return pattern.replace("[", "[[]").replace("?", "[?]")


def rows(page: Path = PAGE) -> list[Known]:
    lines = (line.strip() for line in page.read_text(encoding="utf-8").splitlines() if line.startswith("| `"))
    return [Known(*(cell.strip().strip("`") for cell in line.strip("|").split(" | "))) for line in lines]


def unexplained(found: Iterable[Difference], known: list[Known]) -> Iterator[str]:
    """What is wrong, a line each: differences that no row explains, and rows that explain none."""
    used = set()
    for each in found:
        row = next((row for row in known if row.explains(each)), None)
        if row is None:
            yield str(each)
        used.add(row)
    yield from (f"docs/differences.md lists what does not differ: {row}" for row in known if row not in used)
