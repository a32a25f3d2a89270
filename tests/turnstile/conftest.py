"""One SparkSession for all tests of the pipeline and of the fleet: starting one takes longer than any of them."""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

ON_SPARK = tuple(f"{Path(__file__).parent / folder}{os.sep}" for folder in ("pipeline", "fleet"))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Spark 4 warns of any pandas from 3.0 on, which nothing here hands to it."""
    for item in items:
        if str(item.path).startswith(ON_SPARK):
            item.add_marker(
                pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas:FutureWarning")
            )


@pytest.fixture(scope="session")
def spark() -> Iterator[object]:
    if shutil.which("java") is None and not os.environ.get("JAVA_HOME"):
        pytest.skip("no JDK: Spark can't start")
    from turnstile.pipeline.session import session

    # The last: drivers of a load go on when one of them is lost (fleet/job.py).
    conf = {"spark.driver.memory": "1g", "spark.python.task.killTimeout": "30d"}
    with session("local[2]", app="turnstile-tests", small=True, conf=conf) as started:
        yield started
