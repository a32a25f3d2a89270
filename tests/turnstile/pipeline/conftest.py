"""One SparkSession for all pipeline tests: starting one takes longer than any of them."""

import os
import re
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Spark 4 warns of any pandas from 3.0 on, which nothing here hands to it."""
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(
                pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas:FutureWarning")
            )


@pytest.fixture(scope="session")
def spark() -> Iterator[object]:
    if shutil.which("java") is None and not os.environ.get("JAVA_HOME"):
        pytest.skip("no JDK: Spark can't start")
    from turnstile.pipeline.session import session

    with session("local[2]", app="turnstile-tests", small=True, conf={"spark.driver.memory": "1g"}) as started:
        yield started


@pytest.fixture
def far(spark: Any, tmp_path: Path) -> str:
    """`tmp_path` as a URI of another filesystem, which only Spark reaches."""
    name = re.sub(r"[^a-z0-9]", "", tmp_path.as_posix().lower())
    spark._jsc.hadoopConfiguration().set(f"fs.viewfs.mounttable.{name}.link./data", f"file:{tmp_path}")
    return f"viewfs://{name}/data"
