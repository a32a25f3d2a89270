"""The process that Spark forks a local session's Python workers from, with what their tasks need already imported.

`spark.python.daemon.module` names it. pyspark's own daemon imports nothing before it forks, so each worker imports numpy,
pyarrow and the jobs anew, which takes longer than its part of a job of seconds. Arrow and OpenBLAS start their threads anew
after a fork.

A worker collects garbage after each task: what was imported before the fork is frozen, so that no task looks at it, which takes
longer than a small task.
"""

import gc
import runpy
import sys
from collections.abc import Sequence
from importlib.abc import MetaPathFinder


class _WithoutPandas(MetaPathFinder):
    """No job uses pandas; where it is installed, pyarrow would import it for the first array that it is given."""

    def find_spec(self, fullname: str, path: Sequence[str] | None, target: object = None) -> None:
        if fullname == "pandas":
            raise ModuleNotFoundError("pandas is not used by workers", name=fullname)


if __name__ == "__main__":
    sys.meta_path.insert(0, _WithoutPandas())

    import pyspark.worker  # noqa: F401  which each worker would import after the fork

    import turnstile.pipeline.plan.outcomes  # noqa: F401  numpy and the limits with it

    gc.freeze()
    runpy.run_module("pyspark.daemon", run_name="__main__")
