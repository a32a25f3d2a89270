"""What the pipeline's tests share, besides the session of ../conftest.py."""

import re
import sys
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture
def far(spark: Any, tmp_path: Path) -> str:
    """`tmp_path` as a URI of another filesystem, which only Spark reaches."""
    name = re.sub(r"[^a-z0-9]", "", tmp_path.as_posix().lower())
    spark._jsc.hadoopConfiguration().set(f"fs.viewfs.mounttable.{name}.link./data", f"file:{tmp_path}")
    return f"viewfs://{name}/data"
