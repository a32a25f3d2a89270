"""Two brokers of two shards with the groups of all protocols."""

from pathlib import Path

import pytest
import trio
from desk import Desk


@pytest.fixture
async def desk(tmp_path: Path, nursery: trio.Nursery) -> Desk:
    """With a topic `t` of four partitions."""
    desk = Desk(tmp_path, brokers=2, shards=2)
    await desk.start(nursery)
    await desk.make_topic("t", 4)
    return desk
