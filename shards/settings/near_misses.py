"""Names near one that does not exist, for the sentence about it."""

from collections.abc import Collection


def near_misses(name: str, known: Collection[str], *, most: int = 1, cutoff: float = 0.6) -> list[str]:
    """At most `most` of the known names, the nearest first; `cutoff` from 0 (any name) to 1 (this very name)."""
    import difflib  # for a mistake alone: it would take a hundredth of the start

    return difflib.get_close_matches(name, known, most, cutoff)
