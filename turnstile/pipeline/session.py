"""The SparkSession of a command: quiet, UTC, and told which Python and which modules its workers use.

Made in one place and passed into every job; importing this starts nothing.
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
import warnings
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pyspark.sql import SparkSession

from turnstile.pipeline.errors import PipelineError

LEAST_JAVA = 17
GIB = 1 << 30
_HERE = Path(__file__).resolve().parent
_JAVA_OPTIONS = f"-Dlog4j2.configurationFile=file:{_HERE / 'log4j2.properties'} -Duser.timezone=UTC"
SMALL = {
    "spark.sql.shuffle.partitions": "2",
    "spark.default.parallelism": "2",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.adaptive.enabled": "false",
    # The first compiler only: a job of seconds never earns back what the second one costs. Halves an audit's CPU time.
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
}
_SHIPPED = (
    "turnstile/__init__.py",
    "turnstile/pipeline",
    "shards/__init__.py",
    "shards/limits",
    "broker/__init__.py",
    "broker/journal/__init__.py",
    "broker/journal/schema.py",
)


@contextmanager
def session(master: str = "local[*]", *, app: str = "turnstile", small: bool = False) -> Iterator[SparkSession]:
    """A SparkSession on `master`, stopped at the end. Raises PipelineError without a JDK or a reachable master.

    `small`: for inputs of some megabytes on this machine, where compiling a query costs more than running it.
    """
    spark = start(master, app=app, conf=SMALL if small else None)
    try:
        yield spark
    finally:
        spark.stop()


def start(master: str, *, app: str = "turnstile", conf: dict[str, str] | None = None) -> SparkSession:
    """As `session`, for callers that stop it themselves (tests share one)."""
    check_java()
    # Spark 4 warns of any pandas from 3.0 on; the jobs here exchange Arrow with it, never pandas frames.
    warnings.filterwarnings("ignore", "PySpark does not yet fully support pandas", FutureWarning)
    if master.startswith("local"):
        # Workers are children of this process: the interpreter that runs us has what they need.
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    settings = {**_defaults(master), **(conf or {})}
    settings["spark.driver.extraJavaOptions"] = f"{_JAVA_OPTIONS} {settings.get('spark.driver.extraJavaOptions', '')}"
    builder = SparkSession.builder.master(master).appName(app)
    for name, value in settings.items():
        builder = builder.config(name, value)
    with _jvm_stderr() as said:
        try:
            spark = builder.getOrCreate()
        except Exception as error:
            raise PipelineError(f"Spark did not start on {master}: {_reason(error, said)}") from error
    if not master.startswith("local["):
        spark.sparkContext.addPyFile(str(package()))
    return spark


def check_java() -> None:
    """Raises PipelineError, with the command that helps, when there is no JDK that Spark can use."""
    home = os.environ.get("JAVA_HOME")
    java = shutil.which("java", path=str(Path(home) / "bin")) if home else shutil.which("java")
    install = "install one, e.g. `apt-get install openjdk-17-jre-headless`"
    if java is None:
        where = f"in JAVA_HOME ({home})" if home else "on the PATH"
        raise PipelineError(f"Spark needs Java {LEAST_JAVA} or later and there is none {where}: {install}.")
    banner = subprocess.run([java, "-version"], capture_output=True, text=True, check=False).stderr
    found = re.search(r'version "(\d+)', banner)
    if found is not None and int(found[1]) < LEAST_JAVA:
        raise PipelineError(f"Spark needs Java {LEAST_JAVA} or later and {java} is Java {found[1]}: {install}.")


def package() -> Path:
    """A zip of the modules that run on executors, for --py-files and for masters that aren't this machine."""
    target = Path(tempfile.mkdtemp(prefix="turnstile-")) / "turnstile_pipeline.zip"
    root = _HERE.parents[1]
    with zipfile.ZipFile(target, "w") as archive:
        for name in _SHIPPED:
            path = root / name
            for file in sorted(path.rglob("*.py")) if path.is_dir() else [path]:
                archive.write(file, file.relative_to(root))
    return target


def _defaults(master: str) -> dict[str, str]:
    half = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2
    settings = {
        "spark.sql.session.timeZone": "UTC",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.log.structuredLogging.enabled": "false",
        "spark.sql.execution.arrow.pyspark.enabled": "true",
        "spark.sql.execution.arrow.maxRecordsPerBatch": "100000",
        "spark.sql.shuffle.partitions": "32",
        "spark.driver.memory": f"{max(1, min(8, half // GIB))}g",
        "spark.sql.files.maxPartitionBytes": "64m",
    }
    if master.startswith("local"):
        settings["spark.driver.host"] = "127.0.0.1"
        settings["spark.driver.bindAddress"] = "127.0.0.1"
        # Shuffles and what no longer fits in memory go where TMPDIR says; SPARK_LOCAL_DIRS goes before it.
        settings["spark.local.dir"] = tempfile.gettempdir()
    return settings


@contextmanager
def _jvm_stderr() -> Iterator[Path]:
    """Give the JVM, which inherits it when it starts, a file as its stderr; ours comes back at the end.

    The JVM greets with warnings about its own modules that no setting silences.
    """
    handle, name = tempfile.mkstemp(prefix="turnstile-spark-", suffix=".log")
    sys.stderr.flush()
    ours = os.dup(2)
    os.dup2(handle, 2)
    os.close(handle)
    try:
        yield Path(name)
    finally:
        os.dup2(ours, 2)
        os.close(ours)


def _reason(error: Exception, said: Path) -> str:
    """The line of the JVM's log that says why, else the exception's first line."""
    lines = said.read_text(errors="replace").splitlines() if said.exists() else []
    causes = [line.strip() for line in lines if "Exception" in line or line.startswith("Error")]
    return (causes or str(error).splitlines() or [type(error).__name__])[-1 if causes else 0][:300]
