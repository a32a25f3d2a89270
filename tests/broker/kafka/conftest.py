"""A coordinator and the handlers of three brokers with one shard each, as the tests of topics want them."""

from pathlib import Path

import pytest
from desk import Desk


@pytest.fixture
async def desk(tmp_path: Path) -> Desk:
    desk = Desk(tmp_path, brokers=3, num_partitions="2")
    await desk.start()
    return desk
