"""Errors for reasons that a user can act on, and Spark's exceptions as one sentence."""

import re


class PipelineError(Exception):
    """One sentence that names the input or setting at fault and what to do about it."""


class NoInput(PipelineError):
    """There is nothing where the input should be."""


_WORKERS_NEED = "workers need pyarrow and numpy; install both there, or let PYSPARK_PYTHON name a Python that has them"
JVM_GONE = "Spark's JVM ended while the job ran."
WORKERS_SEE_NO = (
    "Workers see no {name}: put it where this machine and all workers see it, or name it by a URI (hdfs://, s3a://)."
)
_SENTENCES = (
    (r"\AAn error occurred while calling [\w.:]+\s*\Z|Answer from Java side is empty", JVM_GONE),
    (r"errors\.(?:PipelineError|NoInput): (?P<said>.*)", "{said}"),
    (r"(?:No module named '|must be installed.*?|PACKAGE_NOT_INSTALLED\] )(?P<name>pyarrow|PyArrow|numpy)",
     "The Python{of} has no {name}: " + _WORKERS_NEED + "."),
    (r"UNSUPPORTED_PACKAGE_VERSION\] (?P<said>.*?);", "The libraries of the Python{of} are too old: {said}."),
    (r"PYTHON_VERSION_MISMATCH", "The Python{of} is of another version than this one: let PYSPARK_PYTHON name one of the same."),
    (r"Cannot run program \"(?P<name>[^\"]*)\"",
     "Workers can't start {name}: let PYSPARK_PYTHON name a Python that each of them has."),
    (r"OutOfMemoryError", "Spark ran out of memory: give it more with --conf spark.driver.memory=8g (or executor.memory)."),
    (r"bigger than spark\.driver\.maxResultSize",
     "What Spark's tasks found is larger than it may be: give it more with --conf spark.driver.maxResultSize=4g."),
    (r"No space left on device", "The disk is full: SPARK_LOCAL_DIRS or TMPDIR can name a larger one for Spark's files."),
    (r"ExecutorLostFailure \(executor \S+ exited [^)]*\) Reason: (?P<said>[^\n]*)",
     "Spark lost a worker while the job ran: {said}."),
    (r"All masters are unresponsive", "The Spark master does not answer."),
    (r"SparkContext was shut down",
     "Spark was shut down while the job ran: it was ended, or ran out of memory (--conf spark.driver.memory=8g gives it more)."),
    (r"Python worker exited unexpectedly|IOException: (?:Broken pipe|Connection reset)"
     r"|EOFException(?![\s\S]*(?:Unexpected end of input|hadoop\.io\.compress))",
     "A Python worker of Spark's ended while the job ran: it was killed, or ran out of memory."),
    (r"Master removed our application", "The Spark master removed the job."),
    (r"No FileSystem for scheme \"(?P<name>[^\"]*)\"", "Spark knows no filesystem {name}://."),
    (r"Class (?P<name>\S+FileSystem) not found",
     "Spark lacks {name}: add the package that has it with --conf spark.jars.packages=GROUP:ARTIFACT:VERSION."),
    (r"UnknownHostException: \"?(?P<name>[^\s\":]+)", "There is no host {name}."),
    (r"Call From \S+ to (?P<name>\S+) failed", "{name} can't be reached."),
    (r"File (?P<name>\S+) does not exist", WORKERS_SEE_NO),
)  # fmt: skip
"""Words of an exception's text, and what they mean. `{of}`: which worker failed, where that is told."""
_WORKER = re.compile(r"\(TID \d+\) \((?P<host>[^\s)]+) executor (?!driver)")
_GONE = {"Py4JNetworkError", "ConnectionRefusedError", "ConnectionResetError"}
_OF_SPARK = {"PySparkException", "PySparkRuntimeError", "Py4JError"}


def sentence(error: BaseException) -> str | None:
    """An exception of Spark's as one sentence; None for one that is not Spark's."""
    if not _kinds(error) & (_GONE | _OF_SPARK):
        return None
    text = text_of(error)
    if text is None:
        return JVM_GONE
    return known(text) or f"Spark failed: {cause(text)}"


def text_of(error: BaseException) -> str | None:
    """The text of an exception of Spark's, for which the JVM is asked; None where the JVM has ended."""
    if _kinds(error) & _GONE:
        return None
    try:
        return str(error)
    except Exception:
        return None


def _kinds(error: BaseException) -> set[str]:
    return {kind.__name__ for kind in type(error).__mro__}


def known(text: str) -> str | None:
    """The meaning of the text of an exception, if it is one of those that users meet."""
    for sign, said in _SENTENCES:
        found = re.search(sign, text)
        if found is not None:
            worker = _WORKER.search(text)
            return said.format(of=f" of worker {worker['host']}" if worker else " of a worker", **found.groupdict())
    return None


def cause(text: str) -> str:
    """The line of an exception's text that says most: the last cause, else the first line."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    caused = [line.removeprefix("Caused by: ") for line in lines if line.startswith("Caused by")]
    return (caused or lines or ["no reason given"])[-1 if caused else 0][:300]
