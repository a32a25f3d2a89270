"""The topics that have files in a data directory, for a coordinator whose store was lost."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from uuid import UUID

from broker.storage.files import read_checked
from broker.storage.partition_meta import NAME


def topics_on_disk(data_dir: Path, brokers: int) -> dict[str, dict[str, object]]:
    """Topics by name, as the configuration has them: id, the broker that leads each partition, no configs.

    A partition without files is led by the broker that its number falls to. Of several ids of one topic the one of most
    partitions is taken; a directory whose id can't be read counts for the topic's number of partitions alone.
    """
    found: dict[str, list[tuple[int, int, UUID | None]]] = {}
    for broker in range(brokers):
        for directory in (data_dir / f"b{broker}" / "topics").glob("*-*"):
            topic, _, partition = directory.name.rpartition("-")
            if partition.isascii() and partition.isdigit() and directory.is_dir():
                found.setdefault(topic, []).append((int(partition), broker, _topic_id(directory)))
    return {topic: _topic(partitions, brokers) for topic, partitions in found.items() if any(p[2] for p in partitions)}


def _topic(partitions: list[tuple[int, int, UUID | None]], brokers: int) -> dict[str, object]:
    ids = Counter(topic_id for _, _, topic_id in partitions if topic_id is not None)
    led = {partition: broker for partition, broker, _ in partitions}
    leaders = [led.get(number, number % brokers) for number in range(max(led) + 1)]
    return {"id": ids.most_common(1)[0][0].hex, "leaders": leaders, "configs": {}}


def _topic_id(directory: Path) -> UUID | None:
    """The topic id of a partition's directory; None for one that can't be read, which the partition sets aside when it is
    opened."""
    try:
        topic_id, _ = read_checked(str(directory / NAME))
        return UUID(bytes=topic_id)
    except (OSError, ValueError, TypeError):
        return None
