"""Who opens which files, and what happens to the logs of topics that go."""

from pathlib import Path

import pytest
from batches import batch
from shards_in_process import Broker

from broker.storage.records import Rejected

NOW = 1_700_000_000_000


def append(broker: Broker, topic: str, number: int, *values: bytes) -> None:
    home = broker.homes(topic, 64)[number]
    broker.logs[home].log(topic, number).append(batch(*values), NOW)


def directories(broker: Broker) -> set[str]:
    return {path.name for path in (broker.directory / "topics").glob("*")}


def test_only_partitions_that_were_written_to_have_files(broker: Broker) -> None:
    here = broker.at("t", 0)
    broker.logs[0].log("t", here).read(0, 100, True)
    assert directories(broker) == set()
    append(broker, "t", here, b"a")
    assert directories(broker) == {f"t-{here}"}


def test_the_log_of_a_deleted_topic_is_deleted_and_one_created_again_is_empty(broker: Broker) -> None:
    for number in range(4):
        append(broker, "t", number, b"a")
    broker.drop_topic("t")
    assert directories(broker) == set()
    with pytest.raises(Rejected):
        broker.logs[0].log("t", broker.at("t", 0))
    broker.put_topic("t", 64, topic_id=2)
    assert broker.logs[0].log("t", broker.at("t", 0)).next_offset == 0


def test_a_topic_that_changed_its_id_at_once_is_another(broker: Broker) -> None:
    here = broker.at("t", 0)
    append(broker, "t", here, b"a")
    broker.put_topic("t", 64, topic_id=2)
    assert broker.logs[0].log("t", here).next_offset == 0


def test_what_was_deleted_while_a_shard_was_down_is_swept(broker: Broker) -> None:
    for number in range(4):
        append(broker, "t", number, b"a")
    broker.put_topic("kept-1", 1, topic_id=5)
    append(broker, "kept-1", 0, b"a")
    broker.image.apply(broker.image.version + 1, [("topic", "t", None)])
    for shard in range(2):
        broker.start_again(shard)
        broker.logs[shard].image_changed({"topic"})
    assert directories(broker) == {"kept-1-0"}


def test_a_shard_that_knows_nothing_yet_sweeps_nothing(tmp_path: Path) -> None:
    broker = Broker(tmp_path)
    (tmp_path / "topics" / "t-0").mkdir(parents=True)
    broker.logs[0].image_changed({"topic"})
    assert directories(broker) == {"t-0"}


def test_retention_is_applied_to_logs_that_get_no_records(broker: Broker) -> None:
    broker.put_topic("short", topic_id=9, retention_ms="1000")
    home = broker.homes("short", 1)[0]
    append(broker, "short", 0, b"a")
    broker.logs[home].retain(now_ms=NOW + 1_000_000)
    assert broker.logs[home].log("short", 0).start_offset == 1
