"""The stored configuration of a cluster."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from shards.config.store import Store


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    opened = Store(tmp_path / "cluster.sqlite")
    yield opened
    opened.close()
