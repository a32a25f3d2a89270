"""The contents of a log, before anything is replayed."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from turnstile.pipeline.errors import PipelineError
from turnstile.pipeline.inputs.entities import USER, EntityType

ANOTHER_LAYOUT = "a header with other fields"


class Contents(NamedTuple):
    """The contents of a log: how many connections, when the first and the last were opened (epoch microseconds), and how many rows
    were put aside, by reason."""

    total: int
    first_us: int
    last_us: int
    reasons: dict[str, int]


def usable(total: int, reasons: Mapping[str, int], paths: Sequence[str], format: str, by: EntityType) -> None:
    """Raises PipelineError when there is nothing in a log that can be used."""
    if total:
        return
    where = ", ".join(paths)
    if reasons:
        reason, worst = max(reasons.items(), key=lambda item: item[1])
        raise PipelineError(
            f"None of the {sum(reasons.values())} rows of {where} can be used as {format}; {worst} of them: {reason}."
        )
    is_journal = format == "journal"  # its paths are of this run, as live segments are copied aside: not told
    if by.name == USER.name:
        raise PipelineError(f"No user logs in, in {'this journal' if is_journal else where}.")
    if is_journal:
        raise PipelineError("There is no connection in this journal.")
    raise PipelineError(f"There is nothing in {where}: no file, or files without a row.")
