"""The coordinator's store: damaged, or its process killed; what was deleted stays deleted, and what was not, is kept."""

import os
import signal

from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from harness import running, until


def topics(cluster):
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap, "log_level": 0})
    return set(admin.list_topics(timeout=10).topics)


def first_record(cluster, topic, partition=0):
    with Consumer({"bootstrap.servers": cluster.bootstrap, "group.id": "g", "log_level": 0}) as consumer:
        consumer.assign([TopicPartition(topic, partition, 0)])
        message = consumer.poll(10)
    return message and message.value()


def partition_ends(cluster, topic, partition):
    """The first offset of a partition, and the one behind its last record."""
    with Consumer({"bootstrap.servers": cluster.bootstrap, "group.id": "g", "log_level": 0}) as consumer:
        ends = consumer.get_watermark_offsets(TopicPartition(topic, partition), timeout=10)
    return ends


def test_a_truncated_store_deletes_no_record(tmp_path):
    data_dir = tmp_path / "d"
    with running(data_dir, "--topic", "orders") as cluster:
        producer = Producer({"bootstrap.servers": cluster.bootstrap, "log_level": 0})
        producer.produce("orders", b"kept", partition=0)
        assert producer.flush(10) == 0
        cluster.set("kafka_connections_max", 100)
    store = data_dir / "cluster.sqlite"
    store.write_bytes(store.read_bytes()[:100])
    for log in data_dir.glob("cluster.sqlite-*"):
        log.write_bytes(log.read_bytes()[:100])
    with running(data_dir) as cluster:
        assert first_record(cluster, "orders") == b"kept"
        assert [path.name for path in data_dir.glob("cluster.sqlite.damaged-*")] != []
        assert cluster.started["notes"][0].startswith("cluster.sqlite is damaged"), "up says it where it was typed"
        assert "cluster.sqlite is damaged" in cluster.turnstile("status")
        cluster.set("kafka_connections_max", 50)


def flip(path, at):
    """Changes one bit of a file."""
    content = bytearray(path.read_bytes())
    content[at] ^= 1
    path.write_bytes(content)


def test_status_lists_each_damaged_file_that_was_set_aside(tmp_path):
    data_dir = tmp_path / "d"
    with running(data_dir, "--topic", "orders:2") as cluster:
        producer = Producer({"bootstrap.servers": cluster.bootstrap, "log_level": 0})
        producer.produce("orders", b"damaged", partition=0)
        producer.produce("orders", b"kept", partition=1)
        assert producer.flush(10) == 0
        with Consumer({"bootstrap.servers": cluster.bootstrap, "group.id": "g", "log_level": 0}) as consumer:
            consumer.commit(offsets=[TopicPartition("orders", 1, 1)], asynchronous=False)
        assert "set aside" not in cluster.turnstile("status")
    broker = data_dir / "b0"
    (offsets,) = (broker / "groups").glob("*.offsets")
    flip(broker / "topics" / "orders-0" / f"{0:020d}.log", -1)
    flip(broker / "topics" / "orders-1" / "partition.meta", 3)
    flip(offsets, -1)
    with running(data_dir) as cluster:
        assert first_record(cluster, "orders", partition=1) == b"kept"
        low_high = partition_ends(cluster, "orders", 0)
        told = cluster.get("/v1/damaged")["damaged"]
        names = [file["path"].partition(".damaged-")[0] for file in told]
        assert names == [
            f"b0/groups/{offsets.name}",
            f"b0/topics/orders-0/{0:020d}.log",
            "b0/topics/orders-1/partition.meta",
        ]
        assert all(file["size_bytes"] == (data_dir / file["path"]).stat().st_size > 0 for file in told)
        shown = cluster.turnstile("status")
        assert all(f"{file['path']}   {file['size_bytes']} bytes, set aside" in shown for file in told)
        said = cluster.errors.read_text()
        assert [said.count(f"{name}.damaged-") for name in names] == [1, 1, 1], "one log line each"
        assert low_high == (0, 0)


def test_a_deleted_topic_does_not_come_back_when_the_coordinator_restarts(tmp_path):
    with running(tmp_path / "d", "--topic", "orders", "--topic", "audit") as cluster:
        admin = AdminClient({"bootstrap.servers": cluster.bootstrap, "log_level": 0})
        admin.delete_topics(["orders"])["orders"].result(10)
        pid = cluster.get("/v1/cluster")["coordinator_pid"]
        os.kill(pid, signal.SIGKILL)

        def restarted():
            try:
                return cluster.get("/v1/cluster")["coordinator_pid"] != pid
            except Exception:
                return False

        until(restarted, what="another coordinator")
        assert topics(cluster) == {"audit"}


def test_values_that_would_not_read_back_are_refused_and_the_next_start_goes_well(tmp_path):
    data_dir = tmp_path / "d"
    with running(data_dir) as cluster:
        long = "Produce=" + "9" * 400 + "us"
        said = cluster.turnstile("config", "set", "metric.reporters", '["[x"]', expect=1)
        said += cluster.turnstile("config", "set", "turnstile.request.cost", long, expect=1)
        assert said.count("\n") == 2 and "Traceback" not in said
        said = cluster.turnstile("quota", "set", "user=a", "request_percentage=Infinity", expect=2)
        assert said.endswith("request_percentage cannot be 'Infinity': a quota is a number, such as 1000000 or 1MB/s\n")
        cluster.set("kafka_connections_max", 50)
    with running(data_dir) as cluster:
        assert cluster.get("/v1/cluster_config?key=kafka_connections_max") == {"kafka_connections_max": 50}
