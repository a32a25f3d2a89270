"""Topics are known from their partitions' files, so that a lost configuration deletes none of them."""

from pathlib import Path
from uuid import UUID

from batches import batch
from shards_in_process import Broker

from broker.storage.topics_on_disk import topics_on_disk

NOW = 1_700_000_000_000


def written(data_dir: Path) -> None:
    """Broker 0 leads partitions 0 and 2 of topic `a-b`, and has records in number 2 alone."""
    broker = Broker(data_dir / "b0")
    broker.put_topic("a-b", topic_id=9, leaders=[0, 1, 0])
    home = broker.homes("a-b", 3)[2]
    broker.logs[home].log("a-b", 2).append(batch(b"kept"), NOW)
    broker.close()


def test_a_topic_has_its_id_and_the_leaders_of_the_partitions_that_have_files(tmp_path):
    written(tmp_path)
    assert topics_on_disk(tmp_path, 2) == {"a-b": {"id": UUID(int=9).hex, "leaders": [0, 1, 0], "configs": {}}}
    assert topics_on_disk(tmp_path / "other", 2) == {}


def test_a_topic_none_of_whose_ids_can_be_read_is_not_known(tmp_path):
    written(tmp_path)
    (tmp_path / "b0" / "topics" / "a-b-2" / "partition.meta").write_bytes(b"?")
    assert topics_on_disk(tmp_path, 2) == {}


def test_with_them_a_shard_keeps_the_files_that_it_would_sweep_without(tmp_path):
    written(tmp_path)
    found = topics_on_disk(tmp_path, 1)
    broker = Broker(tmp_path / "b0")
    broker._apply(("topic", "a-b", found["a-b"]))
    home = broker.homes("a-b", 3)[2]
    assert broker.logs[home].log("a-b", 2).next_offset == 1
    broker.close()
