"""A broker's shards in one process, as tests of the log and of the handlers over it want them."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from shards_in_process import Broker


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Broker]:
    broker = Broker(tmp_path)
    broker.put_topic("t", 64)
    yield broker
    broker.close()
