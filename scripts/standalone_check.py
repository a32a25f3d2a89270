"""One line of standalone.py."""

from typing import NamedTuple


class Check(NamedTuple):
    """A trial, its fault (none: it is right), and the findings."""

    name: str
    fault: str
    found: str

    def __str__(self) -> str:
        return f"{self.name}: WRONG: {self.fault}" if self.fault else f"{self.name}: right: {self.found}"
