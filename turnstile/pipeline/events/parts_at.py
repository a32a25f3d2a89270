"""The parts of a journal at a URI (parts.py), looked at through Spark's filesystems."""

import re
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from py4j.protocol import Py4JJavaError

from turnstile.pipeline.errors import NoInput
from turnstile.pipeline.events.parts import PART, Footer, Parts, Span, looked_at
from turnstile.pipeline.hadoop_files import HadoopFiles
from turnstile.pipeline.paths_and_uris import under

AT_ONCE = 16
"""Footers that are asked for side by side: each is two or three requests to a store that may be far."""
_COLUMN = re.compile(r"^  \w+ \S+ ([^\s;]+)", re.MULTILINE)


def journal_at(files: HadoopFiles, place: str) -> str:
    """A data directory's journal, or the folder itself. Raises NoInput when there is neither."""
    if not files.is_there(place):
        raise NoInput(f"There is no journal at {place}.")
    inside = under(place, "journal")
    return inside if files.is_there(inside) else place


def parts_at(files: HadoopFiles, folders: Sequence[str]) -> Parts:
    """The parts as `parts_in` has them; each folder may be a data directory."""
    found: dict[str, str] = {}
    for folder in (journal_at(files, each) for each in folders):
        for name in files.names(folder):
            if name.endswith(PART):
                found.setdefault(name, under(folder, name))
    with ThreadPoolExecutor(AT_ONCE) as pool:
        footers = dict(zip(found.values(), pool.map(lambda place: _footer(files, place), found.values()), strict=True))
    return looked_at(footers, footers.__getitem__)


def _footer(files: HadoopFiles, place: str) -> Footer | None:
    try:
        rows, schema, spans = files.footer(place, "mono_ns")
    except Py4JJavaError:
        return None
    return Footer(rows, frozenset(_COLUMN.findall(schema)), [Span(*span) for span in spans])
