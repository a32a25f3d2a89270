"""The JVM under a session: launched before pyspark is imported, and gone when the session is.

no_jvm_outlives_its_session  no JVM of ours outlives its session: it is asked to end, then killed; it ends by itself when this
    process is killed
files_of_a_session_go_with_it  what it writes besides results goes to a folder of its own, which is removed with it

pyspark would launch it too, but only after its own imports, without a handle to end it by, and with this process's stderr,
on which the JVM writes warnings that no setting silences.
"""

import os
import shlex
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

from turnstile.pipeline.errors import PipelineError
from turnstile.pipeline.interrupts import ENDING

PORT, SECRET = "PYSPARK_GATEWAY_PORT", "PYSPARK_GATEWAY_SECRET"
"""pyspark connects to the JVM that these name, as `spark-submit` sets them for its driver."""
OPTIONS = "spark.driver.extraJavaOptions"
MAKE_ARCHIVE = "-XX:ArchiveClassesAtExit"
LEAST_JAVA = 17
POLL_S = 0.02
END_S = 60.0
REMOVED_WITHIN_S = 5.0


class Jvm(NamedTuple):
    """A running JVM: its process, and the folder for its temporary files, where `stderr` has what it said."""

    process: subprocess.Popen[bytes]
    folder: Path

    @property
    def said(self) -> str:
        """The text that the JVM wrote to its stderr."""
        return (self.folder / "stderr").read_text(errors="replace")

    def end(self) -> None:
        """Ends it and its workers, and removes its folder. May be called again."""
        try:
            if self.process.stdin is not None:
                self.process.stdin.close()  # PythonGatewayServer exits when its stdin ends
            self.process.terminate()
            self.process.wait(END_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        except BaseException:
            self.process.kill()
            self.process.wait()
            raise
        finally:
            self._remove_folder()

    def _remove_folder(self) -> None:
        """Again, if a child of the JVM that ends a moment later has put something into it meanwhile."""
        deadline_s = time.monotonic() + REMOVED_WITHIN_S
        while True:
            shutil.rmtree(self.folder, ignore_errors=True)
            if not self.folder.exists() or time.monotonic() >= deadline_s:
                return
            time.sleep(POLL_S)


def is_submitted() -> bool:
    """True if `spark-submit` started this process: then the JVM, and what it was told, are already there."""
    return PORT in os.environ


def spark_home() -> Path:
    """SPARK_HOME, or the one inside the pyspark package; does not import it."""
    if "SPARK_HOME" in os.environ:
        return Path(os.environ["SPARK_HOME"])
    spec = find_spec("pyspark")
    if spec is None or not spec.submodule_search_locations:
        raise PipelineError("There is no pyspark: pip install 'turnstile-kafka[pipeline]'.")
    return Path(spec.submodule_search_locations[0])


def class_archive() -> Path:
    """The path of this environment's class-data archive, which may not exist yet (`class_archive.py` makes it)."""
    return Path(sys.prefix) / "share" / "turnstile" / "spark.jsa"


class LaunchedJvm(NamedTuple):
    """A JVM, and the variables by which pyspark finds it."""

    jvm: Jvm
    variables: dict[str, str]


def launch(conf: Mapping[str, str], java_options: str) -> LaunchedJvm:
    """A JVM with `conf`. Raises PipelineError when it does not start.

    Called with ENDING blocked (`interrupts.in_thread` blocks them): between fork and `_ignore_interrupt` a Ctrl-C would end the
    child with a traceback.
    """
    folder = Path(tempfile.mkdtemp(prefix="turnstile-spark-"))
    options = [f"-Djava.io.tmpdir={folder}", "-XX:-UsePerfData", "-Xlog:disable", java_options, conf.get(OPTIONS, "")]
    if MAKE_ARCHIVE not in conf.get(OPTIONS, ""):
        # An archive of another JVM, or a missing one, is ignored.
        options.append(f"-XX:SharedArchiveFile={class_archive()}")
    given = {"spark.local.dir": str(folder), **conf, OPTIONS: " ".join(options)}
    command = [str(spark_home() / "bin" / "spark-submit")]
    for name, value in given.items():
        command += ["--conf", f"{name}={value}"]
    command += shlex.split(os.environ.get("PYSPARK_SUBMIT_ARGS", "pyspark-shell"))
    address = folder / "address"
    environment = {**os.environ, "SPARK_CONNECT_MODE": "0", "_PYSPARK_DRIVER_CONN_INFO_PATH": str(address)}
    try:
        with (folder / "stderr").open("wb") as stderr:
            process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=stderr,
                stderr=stderr,
                env=environment,
                preexec_fn=_ignore_interrupt,
            )
    except OSError as error:
        shutil.rmtree(folder, ignore_errors=True)
        raise PipelineError(f"Spark's JVM can't be started: {error.filename}: {error.strerror}.") from None
    jvm = Jvm(process, folder)
    try:
        while not address.exists():
            if process.poll() is not None:
                raise PipelineError(f"Spark's JVM did not start: {_last_words(jvm.said)}")
            time.sleep(POLL_S)
        port, size = struct.unpack(">ii", (raw := address.read_bytes())[:8])
        return LaunchedJvm(jvm, {PORT: str(port), SECRET: raw[8 : 8 + size].decode()})
    except BaseException:
        jvm.end()
        raise


def check_java() -> None:
    """Raises PipelineError, with the command that helps, when there is no `java`; one that is too old is told by Spark's start."""
    home = os.environ.get("JAVA_HOME")
    java = shutil.which("java", path=str(Path(home) / "bin")) if home else shutil.which("java")
    if java is None:
        where = f"in JAVA_HOME ({home})" if home else "on the PATH"
        raise PipelineError(f"Spark needs Java {LEAST_JAVA} or later and there is none {where}: {_INSTALL}")


_INSTALL = "install one, e.g. `apt-get install openjdk-17-jre-headless`."


def _last_words(said: str) -> str:
    """The line that says why."""
    if "UnsupportedClassVersionError" in said:
        return f"Spark needs Java {LEAST_JAVA} or later, and the one found is older: {_INSTALL}"
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    causes = [line for line in lines if "Exception" in line or "Error" in line]
    return (causes or lines or ["it said nothing"])[-1][:300]


def _ignore_interrupt() -> None:
    """Ctrl-C reaches the whole foreground group; the driver decides what it means for the JVM."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, ENDING)
