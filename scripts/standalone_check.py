"""One line of standalone.py."""

from typing import NamedTuple


class Check(NamedTuple):
    """What was tried, what is wrong with it (nothing: it is right), and what was found."""

    name: str
    fault: str
    found: str

    def __str__(self) -> str:
        return f"{self.name}: WRONG: {self.fault}" if self.fault else f"{self.name}: right: {self.found}"
