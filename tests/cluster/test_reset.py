"""`POST /v1/reset`: a cluster that was used is as one that has just started, but for its counters and its journal."""

import os

from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from harness import admitted, connect, running

IP = "127.1.0.1"
RATE = "connection_creation_rate"


def until_refused(cluster):
    """How many connections of IP get in before one is refused."""
    for count in range(200):
        with connect(cluster.address, IP) as sock:
            if not admitted(sock):
                return count
    raise AssertionError("nothing limits the address")


def reset(cluster):
    return cluster.client.post("/v1/reset")["config_version"]


def test_settings_quotas_users_and_topics_are_those_of_the_start(tmp_path):
    options = ("--set", "kafka_connections_max_per_ip=7", "--topic", "kept:3")
    with running(tmp_path / "data", *options) as cluster:
        cluster.set("kafka_connections_max", 100)
        cluster.put("/v1/quotas", {"alter": [{"entity": {"user": "alice"}, "set": {"producer_byte_rate": 1000.0}}]})
        cluster.put("/v1/users", {"name": "alice", "password": "secret"})
        admin = AdminClient({"bootstrap.servers": cluster.bootstrap, "log_level": 0})
        admin.create_topics([NewTopic("gone", 2, 1)])["gone"].result(10)
        before = cluster.get("/v1/cluster_config?key=kafka_connections_max_per_ip")
        version = reset(cluster)
        assert {shard["config_version"] for shard in cluster.get("/v1/shards")["shards"]} == {version}
        assert cluster.get("/v1/cluster_config?key=kafka_connections_max") == {"kafka_connections_max": None}
        assert cluster.get("/v1/cluster_config?key=kafka_connections_max_per_ip") == before
        assert cluster.get("/v1/quotas") == {"quotas": []} and cluster.get("/v1/users") == {"users": []}
        topics = AdminClient({"bootstrap.servers": cluster.bootstrap}).list_topics(timeout=10).topics
        assert {name: len(topic.partitions) for name, topic in topics.items()} == {"kept": 3}


def test_records_and_committed_offsets_are_gone(tmp_path):
    with running(tmp_path / "data", "--topic", "t") as cluster:
        producer = Producer({"bootstrap.servers": cluster.bootstrap, "log_level": 0})
        producer.produce("t", b"before", partition=0)
        assert producer.flush(10) == 0
        options = {"bootstrap.servers": cluster.bootstrap, "group.id": "g", "log_level": 0}
        with Consumer(options) as consumer:
            consumer.commit(offsets=[TopicPartition("t", 0, 1)], asynchronous=False)
            reset(cluster)
            with Consumer(options) as after:
                assert after.get_watermark_offsets(TopicPartition("t", 0), timeout=10) == (0, 0)
                assert after.committed([TopicPartition("t", 0)], timeout=10)[0].offset < 0


def test_connections_are_closed_and_what_they_were_counted_for_is_free(tmp_path):
    with running(tmp_path / "data", "--set", "kafka_connections_max_per_ip=5") as cluster:
        held = [connect(cluster.address, IP) for _ in range(5)]
        assert all(map(admitted, held)) and until_refused(cluster) == 0
        pids = [cluster.shard_pid(shard) for shard in (0, 1)]
        reset(cluster)
        assert [sock.recv(1) for sock in held] == [b""] * 5
        again = [connect(cluster.address, IP) for _ in range(5)]
        assert all(map(admitted, again)) and until_refused(cluster) == 0
        assert cluster.get("/v1/refusals?by=ip")["refusals"][0]["count"] == 1, "talkers are counted anew"
        assert [cluster.shard_pid(shard) for shard in (0, 1)] == pids and all(map(os.getpgid, pids))
        for sock in held + again:
            sock.close()


def test_rates_begin_anew(tmp_path):
    """Two windows of ten seconds at 2 a second: 20 at once, more if that takes a while; and again after a reset."""
    window = ("--set", "quota.window.num=2", "--set", "quota.window.size.seconds=10")
    quota = {"alter": [{"entity": {"ip": IP}, "set": {RATE: 2.0}, "remove": []}]}
    with running(tmp_path / "data", *window) as cluster:
        cluster.put("/v1/quotas", quota)
        assert until_refused(cluster) >= 20
        assert until_refused(cluster) < 20
        reset(cluster)
        cluster.put("/v1/quotas", quota)
        assert until_refused(cluster) >= 20
