"""The SparkSession of a command: quiet, UTC, and told which Python and which modules its workers use.

Made in one place and passed into every job; importing this starts nothing. The JVM starts in a thread, beside the imports
of the job and the first look at its input.
"""

from __future__ import annotations

import logging
import os
import shutil
import sys
import tempfile
import warnings
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from turnstile.pipeline import interrupts, jvm
from turnstile.pipeline.errors import PipelineError, known, sentence

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

GIB = 1 << 30
LOCAL = "local[*]"
_HERE = Path(__file__).resolve().parent
_JAVA_OPTIONS = f"-Dlog4j2.configurationFile=file:{_HERE / 'log4j2.properties'} -Duser.timezone=UTC"
LITTLE = {
    # The first compiler only: a job of seconds never earns back what the second one costs. Halves an audit's CPU time.
    jvm.OPTIONS: "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
}
"""Settings for a job whose work is done by Python: the JVM carries tables from task to task."""
SMALL = {
    **LITTLE,
    "spark.sql.shuffle.partitions": "2",
    "spark.default.parallelism": "2",
    # Each query runs once: compiling it takes longer than it saves. An eighth of the CPU time of small jobs.
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.adaptive.enabled": "false",
}
_SHIPPED = (
    "turnstile/*.py",
    "turnstile/pipeline/**/*",
    "shards/__init__.py",
    "shards/compiled.py",
    "shards/ownership.py",
    "shards/limits/**/*",
    "shards/settings/**/*",
    "broker/__init__.py",
    "broker/journal/__init__.py",
    "broker/journal/schema.py",
)
_SHIPPED_SUFFIXES = (".py", ".tsv")


class _Started(NamedTuple):
    """A session; its JVM, if it is one of ours; and a folder that goes with it."""

    spark: SparkSession
    machine: jvm.Jvm | None
    folder: Path


class Starting:
    """A session that is on its way."""

    def __init__(self, master: str | None, app: str, conf: Mapping[str, str], shipped: Sequence[str] = ()) -> None:
        self._started = interrupts.in_thread(partial(_start, master, app, conf, shipped))

    @property
    def is_ready(self) -> bool:
        """True if it has started."""
        return self._started.done() and self._started.exception() is None

    def spark(self) -> SparkSession:
        """The session, once it is there. Raises PipelineError when Spark did not start."""
        return self._started.result().spark

    def end(self, *, gently: bool) -> None:
        """Stops it; `gently`: what it still has to say is waited for. Waits for a start that is under way."""
        if self._started.exception() is not None:
            return
        from py4j.protocol import Py4JError  # there, as a session has started

        spark, machine, folder = self._started.result()
        try:
            if gently or machine is None:
                with suppress(OSError, Py4JError):  # its JVM may be gone
                    spark.stop()
        finally:
            if machine is not None:
                _disconnect()
                machine.end()
            shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def starting(
    master: str | None = None,
    *,
    app: str = "turnstile",
    small: bool = False,
    conf: Mapping[str, str] | None = None,
    shipped: Sequence[str] = (),
) -> Iterator[Starting]:
    """A session on `master` that starts beside what is done inside, and is ended with it.

    `master`: None for what spark-submit was told, else this machine. `conf`: goes before what is chosen here. `small`: for
    inputs of some megabytes on this machine, where compiling a query costs more than running it. `shipped`: patterns of files
    that executors need besides those of the pipeline. SIGTERM inside is a KeyboardInterrupt, too.
    Raises PipelineError, too, for what fails in Spark inside.
    """
    jvm.check_java()
    with interrupts.between_imports(), interrupts.withheld() as release:
        begun = Starting(master, app, {**(SMALL if small else {}), **(conf or {})}, shipped)
        with _ended(begun):
            release()
            yield begun


@contextmanager
def _ended(begun: Starting) -> Iterator[None]:
    """Ends the session with the block. Raises PipelineError for what failed in Spark inside."""
    gently = False
    try:
        yield
        gently = True
    except Exception as error:
        gently = True
        said = sentence(error)  # while the JVM can still be asked for the text
        if said is None:
            raise
        raise PipelineError(said) from error
    finally:
        begun.end(gently=gently)


@contextmanager
def session(
    master: str | None = None, *, app: str = "turnstile", small: bool = False, conf: Mapping[str, str] | None = None
) -> Iterator[SparkSession]:
    """As `starting`, once it has started. Raises PipelineError without a JDK or a reachable master."""
    with starting(master, app=app, small=small, conf=conf) as begun:
        yield begun.spark()


def _start(master: str | None, app: str, conf: Mapping[str, str], shipped: Sequence[str] = ()) -> _Started:
    if jvm.is_submitted():
        folder = Path(tempfile.mkdtemp(prefix="turnstile-spark-"))
        try:
            settings = {**_NEEDED, **conf, **({"spark.master": master} if master else {})}
            return _Started(_connect(app, settings, folder, shipped), None, folder)
        except BaseException:
            shutil.rmtree(folder, ignore_errors=True)
            raise
    where = master or LOCAL
    settings = {**_NEEDED, **_defaults(where), **conf, "spark.master": where}
    machine, variables = jvm.launch(settings, _JAVA_OPTIONS)
    try:
        os.environ.update(variables)
        return _Started(_connect(app, {}, machine.folder, shipped), machine, machine.folder)
    except Exception as error:
        said = machine.said  # which goes with its folder
        machine.end()
        raise PipelineError(f"Spark did not start on {where}: {_reason(error, said)}") from error
    except BaseException:
        machine.end()
        raise
    finally:
        for name in variables:
            os.environ.pop(name, None)


def _connect(app: str, conf: Mapping[str, str], folder: Path, shipped: Sequence[str]) -> SparkSession:
    """pyspark's session in a JVM that runs; `folder`: for what executors are sent."""
    from pyspark.sql import SparkSession

    # Spark 4 warns of any pandas from 3.0 on; the jobs here exchange Arrow with it, never pandas frames.
    warnings.filterwarnings("ignore", "PySpark does not yet fully support pandas", FutureWarning)
    # py4j logs what interrupts a call (Ctrl-C, the JVM's end) with a traceback, through the root logger, too; pyspark logs each
    # query that it can't resolve with the JVM's traceback. All of these are raised as well.
    logging.getLogger().addFilter(_is_not_of_py4j)
    for name in ("py4j", "DataFrameQueryContextLogger", "SQLQueryContextLogger"):
        logging.getLogger(name).setLevel(logging.CRITICAL + 1)
    builder = SparkSession.builder.appName(app)
    for name, value in conf.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    context = spark.sparkContext
    python = context.getConf().get("spark.pyspark.python")  # read by spark-submit alone, and by nothing in a program
    if python:
        context.pythonExec = python
    elif "PYSPARK_PYTHON" not in os.environ and is_local(context.master):
        context.pythonExec = sys.executable  # which has what workers need
    if not is_local(context.master):
        context.addPyFile(str(package(folder, shipped)))
    return spark


def _is_not_of_py4j(record: logging.LogRecord) -> bool:
    return "py4j" not in Path(record.pathname).parts


def is_local(master: str | None) -> bool:
    """True if workers run on this machine, with its folders and interpreters (local[2], local-cluster[2,1,1024])."""
    return master is not None and master.startswith("local")


def _disconnect() -> None:
    """Forgets the JVM, so that pyspark connects to the next one."""
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    SparkSession._instantiatedSession = None
    SparkContext._active_spark_context = None
    if SparkContext._gateway is not None:
        with suppress(Exception):
            SparkContext._gateway.shutdown()
    SparkContext._gateway = SparkContext._jvm = None


def package(folder: Path, shipped: Sequence[str] = ()) -> Path:
    """A zip, made in `folder`, of the modules that run on executors of masters that aren't this machine.

    `shipped`: patterns of more of them, beneath the folder of the packages.
    """
    target = folder / "turnstile_pipeline.zip"
    root = _HERE.parents[1]
    with zipfile.ZipFile(target, "w") as archive:
        for pattern in (*_SHIPPED, *shipped):
            top, _, below = pattern.partition("/")
            for file in sorted(_home(top).glob(below)):
                if file.suffix in _SHIPPED_SUFFIXES:
                    archive.write(file, file.relative_to(root))
    return target


def _home(top: str) -> Path:
    """The folder of a package: a wheel has `broker` and `shards` in `turnstile` (setup.py), the tree beside it."""
    inside = _HERE.parent / top
    return inside if inside.is_dir() else _HERE.parents[1] / top


_NEEDED = {
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "100000",
}
"""The settings of Spark that the jobs rely on, on any master."""


def _defaults(master: str) -> dict[str, str]:
    half = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2
    settings = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.log.structuredLogging.enabled": "false",
        "spark.sql.shuffle.partitions": "32",
        "spark.driver.memory": f"{max(1, min(8, half // GIB))}g",
        # What slices of a journal say of each other comes together here: its bound is driver.memory, not a gibibyte.
        "spark.driver.maxResultSize": "0",
        "spark.sql.files.maxPartitionBytes": "64m",
    }
    if is_local(master):
        settings["spark.driver.host"] = "127.0.0.1"
        settings["spark.driver.bindAddress"] = "127.0.0.1"
    if is_local(master) and "PYSPARK_PYTHON" not in os.environ:
        settings["spark.python.daemon.module"] = "turnstile.pipeline.worker_daemon"
    return settings


def _reason(error: Exception, said: str) -> str:
    """The meaning of the JVM's log or of the exception; else the line of the log that says why, or the exception's first line."""
    meant = known(said) or known(str(error))
    if meant is not None:
        return meant
    causes = [line.strip() for line in said.splitlines() if "Exception" in line or line.startswith("Error")]
    return (causes or str(error).splitlines() or [type(error).__name__])[-1 if causes else 0][:300]
