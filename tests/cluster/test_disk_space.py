"""Free disk space: a running cluster refuses Produce below storage_min_free_bytes, and says so wherever people look."""

from functools import partial

from batches import batch
from harness import Cluster, running, until
from wired import wired

from broker.wire import codes
from broker.wire.codec import Message


def produced(cluster: Cluster) -> Message:
    with wired(cluster.bootstrap) as connection:
        types = connection.types("produce", 9)
        partition = types.PartitionProduceData(index=0, records=batch(b"v"))
        data = (types.TopicProduceData(name="t", partition_data=(partition,)),)
        answered = connection.ask("produce", 9, acks=1, topic_data=data)
        return answered.responses[0].partition_responses[0]


def refusal(cluster: Cluster) -> str:
    """What a refused Produce was told; empty: it was not refused."""
    answer = produced(cluster)
    return answer.error_message if answer.error_code == codes.BROKER_NOT_AVAILABLE else ""


def test_below_the_limit_produce_fails_and_the_log_metrics_and_status_say_why(tmp_path):
    options = ("--topic", "t:1", "--set", "log.message.timestamp.before.max.ms=9223372036854775807")
    with running(tmp_path / "d", *options) as cluster:
        assert produced(cluster).error_code == codes.NONE
        assert "refuses Produce" not in cluster.turnstile("status")
        cluster.set("storage_min_free_bytes", 1 << 60)
        # Each shard looks at the disk by itself, and each connection may be another's.
        refused = [until(partial(refusal, cluster), what="Produce is refused") for _ in range(8)]
        assert all("storage_min_free_bytes" in message for message in refused)
        assert "broker 0 refuses Produce: less than the 1073741824.0 GiB" in cluster.turnstile("status")
        assert cluster.metric("turnstile_disk_full", broker="0") == 1
        assert cluster.metric("turnstile_disk_free_bytes") > 0
        until(lambda: "produce is refused" in cluster.errors.read_text(), what="the line in the log")
        cluster.unset("storage_min_free_bytes")
        until(lambda: produced(cluster).error_code == codes.NONE, what="Produce is taken again")
        assert cluster.metric("turnstile_disk_full", broker="0") == 0


def test_by_default_a_topic_keeps_what_kafkas_would(tmp_path):
    with running(tmp_path / "d", shards=1) as cluster:
        assert cluster.turnstile("config", "get", "log.retention.bytes").strip() == "-1"
        assert cluster.turnstile("config", "get", "log.retention.hours").strip() == "168"
