"""Shared by the commands that run a Spark job: the session, the journal made ready, and errors of one sentence.

Spark is imported when the job runs, not with the command.
"""

from __future__ import annotations

import functools
import os
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import click

from turnstile.cli.output import CommandFailed, InputMissing, is_of_output
from turnstile.cli.param_type import ParamType
from turnstile.cli.up_params import NamedText
from turnstile.pipeline import jvm
from turnstile.pipeline.paths_and_uris import is_uri, local_path, under

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from turnstile.pipeline.session import Starting

_LIBRARIES = ("numpy", "pandas", "pyarrow", "pyspark")
SMALL_BYTES = 64 << 20
"""Inputs below this are worked on without the parallelism that only pays off for more."""


class SparkOptions(NamedTuple):
    """The master of a job (None: the one of spark-submit, else this machine), and settings of Spark's own."""

    master: str | None
    conf: dict[str, str]

    @property
    def is_asked_for(self) -> bool:
        """True if Spark is wanted for a job that may do without."""
        return self.master is not None or bool(self.conf) or jvm.is_submitted()

    @property
    def is_local(self) -> bool:
        """True if it runs on this machine's cores, in a JVM of this process's own."""
        return self.master is None or self.master.startswith("local")


class SparkSetting(ParamType[NamedText]):
    """NAME=VALUE of Spark's own."""

    name = "NAME=VALUE"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> NamedText:
        if isinstance(value, NamedText):
            return value
        name, is_given, setting = str(value).partition("=")
        if not is_given or not name.startswith("spark."):
            self.fail(f"{value!r} is not of the form spark.sql.shuffle.partitions=64", param, ctx)
        return NamedText(name, setting)


def spark_options(command: Callable[..., None]) -> Callable[..., None]:
    """Gives a command --master and --conf, as its argument `on`."""

    @click.option(
        "--master",
        help="Spark master: local[N], spark://, yarn, k8s://.  [default: what spark-submit was told, else local[*]]",
    )
    @click.option("--conf", type=SparkSetting(), multiple=True, help="A setting of Spark's. May be given again.")
    @functools.wraps(command)
    def with_options(
        *arguments: object, master: str | None, conf: Sequence[tuple[str, str]], **options: object
    ) -> None:
        command(*arguments, on=SparkOptions(master, dict(conf)), **options)

    return with_options


@contextmanager
def failing_in_one_sentence(failure: type[CommandFailed] = CommandFailed) -> Iterator[None]:
    """Turns what a user can act on into `failure`: one sentence and its exit code."""
    from turnstile.pipeline.errors import NoInput, PipelineError

    missing = [name for name in _LIBRARIES if find_spec(name) is None]
    if missing:
        raise failure(f"This needs {', '.join(missing)}: pip install 'turnstile-kafka[pipeline]'.")
    try:
        yield
    except NoInput as error:
        raise InputMissing(str(error)) from None
    except BrokenPipeError:  # of standard output: cli/main.py ends the command
        raise
    except PipelineError as error:
        raise failure(str(error)) from None
    except OSError as error:
        if is_of_output(error):
            raise
        raise failure(_sentence(error)) from None


def _sentence(error: OSError) -> str:
    if error.filename is None:
        return str(error)
    return f"{error.filename}: {error.strerror}"


@contextmanager
def spark_starting(on: SparkOptions, inputs: Sequence[str], what: str) -> Iterator[Starting]:
    """A session for one job over `inputs`, which starts beside what is done inside, and a line of progress named `what`."""
    from turnstile.pipeline.progress import shown
    from turnstile.pipeline.session import starting

    small = on.is_local and not jvm.is_submitted() and _size(inputs) < SMALL_BYTES
    with (
        shown(what) as line,
        starting(on.master, app=f"turnstile {what}", small=small, conf=on.conf) as begun,
    ):
        line.watch(begun)
        yield begun


@contextmanager
def spark_session(
    on: SparkOptions, inputs: Sequence[str], what: str, *, in_python: bool = False
) -> Iterator[SparkSession]:
    """As `spark_starting`, once it has started. `in_python`: Spark's tasks are Python's alone."""
    from turnstile.pipeline.session import LITTLE

    is_little = in_python and on.is_local and not jvm.is_submitted()
    with spark_starting(on._replace(conf={**(LITTLE if is_little else {}), **on.conf}), inputs, what) as begun:
        yield begun.spark()


def _size(inputs: Sequence[str]) -> int:
    """Bytes of local inputs; a glob or an address elsewhere counts as large."""
    total = 0
    for path in map(local_path, inputs):
        if path.is_dir():
            total += sum(file.stat().st_size for file in path.rglob("*") if file.is_file())
        else:
            with suppress(OSError):
                total += path.stat().st_size
                continue
            total += SMALL_BYTES
    return total


def check_writable(place: str | None, failure: type[CommandFailed] = CommandFailed) -> None:
    """Raises `failure` when a file can't be written there: before the job, not after it. Of a URI, Spark will say it."""
    if place is None or is_uri(place):
        return
    path = local_path(place)
    if not path.parent.is_dir():
        raise failure(f"{path} can't be written: there is no folder {path.parent}.")
    if path.is_dir():
        raise failure(f"{path} can't be written: it is a folder.")
    if not os.access(path if path.exists() else path.parent, os.W_OK):
        raise failure(f"{path} can't be written: no permission.")


def write_page(page: str, place: str, spark: SparkSession | None) -> None:
    """A page at a path of this machine, or at a URI, which needs a session."""
    _write(page.encode(), place, spark)


def write_files(files: Mapping[str, bytes], folder: str, spark: SparkSession | None) -> None:
    """Name -> content, in a folder, which is made."""
    if not is_uri(folder):
        local_path(folder).mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        _write(content, under(folder, name), spark)


def _write(content: bytes, place: str, spark: SparkSession | None) -> None:
    if not is_uri(place):
        _write_whole(content, local_path(place).resolve())
        return
    from turnstile.pipeline.hadoop_files import HadoopFiles

    assert spark is not None  # a job that is given a URI begins one
    HadoopFiles(spark).write(place, content)


def _write_whole(content: bytes, path: Path) -> None:
    """The file has all of it, or is as it was: also where the disk is full or this process is killed in the middle. Raises
    OSError with the file's name."""
    try:
        if path.exists() and not path.is_file():  # a terminal, a pipe
            path.write_bytes(content)
        else:
            _replace(content, path)
    except OSError as fault:
        raise OSError(fault.errno, f"can't be written: {fault.strerror}", str(path)) from None


def _replace(content: bytes, path: Path) -> None:
    aside = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        aside.write_bytes(content)
        os.replace(aside, path)
    except PermissionError:  # of the folder, perhaps not of the file
        path.write_bytes(content)
    finally:
        aside.unlink(missing_ok=True)


class PreparedJournal(NamedTuple):
    """A journal to be read: its folder or URI, a folder of what is not a part of it yet, and the mono_ns up to which both are
    complete for every process (None: all of it)."""

    place: str
    aside: Path | None
    until_ns: int | None

    @property
    def folders(self) -> list[Path]:
        """The folders of a journal's parts, for a journal on this machine."""
        return [local_path(self.place), *([self.aside] if self.aside is not None else [])]


def journal_folder(place: str) -> str:
    """A data directory's journal, or the folder itself; a URI as it is, which is looked at where it is read."""
    folder = local_path(place)
    return str(folder / "journal") if not is_uri(place) and (folder / "journal").is_dir() else place


@contextmanager
def prepared_journal(place: str) -> Iterator[PreparedJournal]:
    """A journal, or the one of a data directory, ready to be read.

    Segments of dead processes are made parts; those of live ones are copied aside as parts. Of a journal at a URI only the
    parts are read. Raises InputMissing when there is no such folder.
    """
    from broker.journal import converter, reader

    if is_uri(place):
        yield PreparedJournal(place, None, None)
        return
    folder = local_path(journal_folder(place))
    if not folder.is_dir():
        raise InputMissing(f"There is no journal at {place}.")
    with suppress(OSError):  # a journal that can't be written to is read as it is
        converter.finish(folder)
    with tempfile.TemporaryDirectory(prefix="turnstile-") as aside:
        until_ns = reader.snapshot(folder, Path(aside))
        yield PreparedJournal(str(folder), Path(aside), until_ns)
