"""Shared by the commands that run a Spark job: the session, the journal made ready, and errors of one sentence.

Spark is imported when the job runs, not with the command.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import click

from turnstile.cli.output import CommandFailed, InputMissing

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_LIBRARIES = ("numpy", "pandas", "pyarrow", "pyspark")
SMALL_BYTES = 64 << 20
"""Inputs below this are worked on without the parallelism that only pays off for more."""

master_option = click.option(
    "--master", default="local[*]", show_default=True, help="Spark master: local[N], spark://, yarn, k8s://."
)


@contextmanager
def failing_in_one_sentence(failure: type[CommandFailed] = CommandFailed) -> Iterator[None]:
    """Turns what a user can act on into `failure`: one sentence and its exit code."""
    from turnstile.pipeline.errors import PipelineError

    missing = [name for name in _LIBRARIES if find_spec(name) is None]
    if missing:
        raise failure(f"This needs {', '.join(missing)}: pip install 'turnstile-kafka[pipeline]'.")
    try:
        yield
    except (PipelineError, OSError) as error:
        raise failure(str(error)) from None


@contextmanager
def spark_session(master: str, inputs: list[Path], what: str, *, quiet: bool = False) -> Iterator[SparkSession]:
    """A session for one job over `inputs`, with a line of progress named `what`; it is stopped at the end."""
    from turnstile.pipeline.progress import shown
    from turnstile.pipeline.session import session

    small = master.startswith("local") and _size(inputs) < SMALL_BYTES
    with (
        session(master, app=f"turnstile {what}", small=small) as spark,
        shown(spark, what, enabled=False if quiet else None),
    ):
        yield spark


def _size(inputs: list[Path]) -> int:
    """Bytes of local inputs; a glob or an address elsewhere counts as large."""
    total = 0
    for path in inputs:
        if path.is_dir():
            total += sum(file.stat().st_size for file in path.rglob("*") if file.is_file())
        else:
            with suppress(OSError):
                total += path.stat().st_size
                continue
            total += SMALL_BYTES
    return total


def journal_folder(path: Path) -> Path:
    """A data directory's journal, or the folder itself."""
    return path / "journal" if (path / "journal").is_dir() else path


@contextmanager
def prepared_journal(path: Path) -> Iterator[tuple[list[Path], int | None]]:
    """The folders to read a journal from, complete for every process up to the mono_ns that comes with them.

    Segments of dead processes are made parts; those of live ones are copied aside as parts. Raises
    InputMissing when there is no such folder.
    """
    from broker.journal import converter, reader

    folder = journal_folder(path)
    if not folder.is_dir():
        raise InputMissing(f"There is no journal at {path}.")
    with suppress(OSError):  # a journal that can't be written to is read as it is
        converter.finish(folder)
    with tempfile.TemporaryDirectory(prefix="turnstile-") as aside:
        until_ns = reader.snapshot(folder, Path(aside))
        yield [folder, Path(aside)], until_ns
