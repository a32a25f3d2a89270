"""What goes wrong for reasons a user can act on, and Spark's exceptions as one sentence."""


class PipelineError(Exception):
    """One sentence that names the input or setting at fault and what to do about it."""


_SENTENCES = (
    ("No module named 'pyarrow'", "A worker's Python has no pyarrow: workers need Python with pyarrow and numpy."),
    ("No module named 'numpy'", "A worker's Python has no numpy: workers need Python with pyarrow and numpy."),
    ("PYTHON_VERSION_MISMATCH", "Workers run another Python than this one: point PYSPARK_PYTHON at the same version."),
    (
        "OutOfMemoryError",
        "Spark ran out of memory: give it more with --conf spark.driver.memory=8g (or executor.memory).",
    ),
    (
        "No space left on device",
        "The disk is full: SPARK_LOCAL_DIRS or TMPDIR can name a larger one for Spark's files.",
    ),
    ("Cannot run program", "Workers can't start their Python: set PYSPARK_PYTHON to one that every worker has."),
    ("All masters are unresponsive", "The Spark master does not answer."),
    ("SparkContext was shut down", "Spark was shut down while the job ran."),
    ("Master removed our application", "The Spark master removed the job."),
)
_GONE = ("Py4JNetworkError", "ConnectionRefusedError", "ConnectionResetError")


def sentence(error: BaseException) -> str | None:
    """What an exception of Spark's says, in one sentence; None for one that is not Spark's."""
    kinds = [kind.__name__ for kind in type(error).__mro__]
    if "PySparkException" not in kinds and "Py4JError" not in kinds and "PySparkRuntimeError" not in kinds:
        return None
    try:
        text = str(error)
    except Exception:  # the text of an exception is asked of the JVM, which may be gone
        return "Spark's JVM ended while the job ran."
    for sign, said in _SENTENCES:
        if sign in text:
            return said
    if any(kind in _GONE for kind in kinds):
        return "Spark's JVM ended while the job ran."
    return f"Spark failed: {cause(text)}"


def cause(text: str) -> str:
    """The line of an exception's text that says most: the last cause, else the first line."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    caused = [line for line in lines if line.startswith("Caused by")]
    return (caused or lines or ["no reason given"])[-1 if caused else 0][:300]
