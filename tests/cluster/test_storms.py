"""Storms while limits change and processes are killed: what the journal proves afterwards, and what the driver saw."""

import contextlib
import json
import os
import signal
import subprocess
import time
from collections import Counter
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from harness import TURNSTILE, admitted, connect, running, until

from broker.journal.reader import events

NAME = "kafka_connections_max_per_ip"


@pytest.fixture
def cluster(tmp_path):
    with running(tmp_path / "data", "--set", f"{NAME}=50", shards=2) as cluster:
        yield cluster


@contextlib.contextmanager
def storm(cluster, *options, cut=False):
    """`turnstile load` in the background; yields a dict that holds its report once the block has ended. `cut`: it is killed
    then, however much of it is left, and reports nothing."""
    command = [TURNSTILE, "load", "--json", "--bootstrap", cluster.bootstrap, "--sources", "127.1.0.0/29", *options]
    report = {}
    process = subprocess.Popen(
        command,
        env={**os.environ, "TURNSTILE_ADMIN": cluster.admin},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        yield report
        if cut:
            return
        out, errors = process.communicate(timeout=60)
        assert process.returncode == 0, errors
        report.update(json.loads(out))
    finally:
        if process.poll() is None:
            process.kill()
            process.communicate()


def journal(cluster):
    """Every event so far, by time."""
    return sorted(events(cluster.data_dir / "journal"), key=lambda event: event["mono_ns"])


def open_now(cluster):
    return sum(each["connections"] for each in cluster.get("/v1/shards")["shards"])


def journal_of_all(cluster):
    """Every event once each connection has ended: while shards go on, what one reads of several files is of several instants."""

    def ended():
        happened = journal(cluster)
        kinds = Counter(event["kind"] for event in happened)
        return happened if kinds["admitted"] == kinds["closed"] and open_now(cluster) == 0 else None

    return until(ended, what="the end of each connection")


def sweep(happened, cap_at):
    """The instants at which an address had more connections open than `cap_at(event)`, in the order of the clock.

    A token is journaled as taken after it is and as released before it is, so what this finds has really happened. The
    connections of a process that was lost count up to its last event: others may free its tokens before the coordinator says so.
    """
    now_open = Counter()
    of_process = {}
    beyond = []
    last = {place(event): event for event in happened}
    details = [json.loads(event["detail"]) for event in happened if event["kind"] == "shard_lost"]
    lost = {place(detail) for detail in details}
    for event in happened:
        key = place(event)
        if event["kind"] == "admitted":
            now_open[event["ip"]] += 1
            of_process.setdefault(key, {})[event["conn"]] = event["ip"]
            if now_open[event["ip"]] > cap_at(event):
                beyond.append(event)
        elif event["kind"] == "closed":
            now_open[event["ip"]] -= 1
            del of_process[key][event["conn"]]
        if key in lost and event is last[key]:
            now_open.subtract(of_process.pop(key, {}).values())
    return beyond


def place(where):
    """The process of an event, or that it tells of."""
    return where["broker"], where["shard"], where["epoch"]


@pytest.mark.parametrize("others", [0, 6000], ids=["few addresses", "and so many that a change visits them in pieces"])
def test_no_admission_beyond_a_cap_once_its_change_has_returned(cluster, others):
    changes = [(0, 0, 50)]  # asked, returned, value
    with contextlib.ExitStack() as stack:
        if others:
            crowd = ("--sources", "127.64.0.0/18", "--connections", "100000", "--rate", "3000", "--hold", "0")
            stack.enter_context(storm(cluster, *crowd, cut=True))
            cluster.until_decided(others)
        stack.enter_context(storm(cluster, "--connections", "100000", "--rate", "1000", "--hold", "0.3", cut=True))
        for value in (50, 5, 20, 2, 40, 1):
            cluster.until_decided(200)
            asked = time.monotonic_ns()
            cluster.set(NAME, str(value))
            changes.append((asked, time.monotonic_ns(), value))
        # On a busy machine the drivers open few at once, and the last cap may be the first to refuse any.
        until(lambda: cluster.metric("turnstile_connections_refused_total") > 100, what="refusals")

    def allowed(at):
        """The highest cap that may be in force: the last to have returned, or one that has been asked for since."""
        returned = max(index for index, change in enumerate(changes) if change[1] <= at)
        return max(value for asked, _, value in changes[returned:] if asked <= at)

    happened = journal_of_all(cluster)
    opened = Counter()
    beyond = []
    for event in happened:
        if event["kind"] == "admitted":
            opened[event["ip"]] += 1
            # Over a lowered cap many may still be open; no connection may come in.
            if opened[event["ip"]] > allowed(event["mono_ns"]):
                beyond.append(event)
        elif event["kind"] == "closed":
            opened[event["ip"]] -= 1
    assert beyond == []


def test_a_shard_killed_in_a_storm(cluster):
    with storm(cluster, "--connections", "4000", "--rate", "1000", "--hold", "0.2") as report:
        cluster.until_decided(800)
        pid = cluster.shard_pid(1)
        os.kill(pid, signal.SIGKILL)
        until(lambda: cluster.shard_pid(1) not in (pid, None), within_s=30, what="a successor")
    assert report["reconciled"], report
    until(lambda: open_now(cluster) == 0, what="all closed")
    assert sweep(journal(cluster), lambda event: 50) == []
    held = [connect(cluster.address, "127.1.0.1") for _ in range(120)]
    assert sum(map(admitted, held)) == 50, "its tokens are free again, no more and no fewer"
    for sock in held:
        sock.close()


def test_the_coordinator_killed_in_a_storm(cluster):
    held = [connect(cluster.address, "127.1.0.77") for _ in range(10)]
    assert all(map(admitted, held))
    cluster.set("kafka_connections_max_overrides", ["127.1.0.88:3"])
    with storm(cluster, "--connections", "3000", "--rate", "1000", "--hold", "0.2") as report:
        cluster.until_decided(400)
        before = cluster.get("/v1/cluster")["coordinator_pid"]
        os.kill(before, signal.SIGKILL)
        until(lambda: cluster.get("/v1/cluster")["coordinator_pid"] != before, what="a new coordinator")
    assert all(map(admitted, held)), "connections stay open"
    until(lambda: open_now(cluster) == len(held), what="the others closed")
    assert sweep(journal(cluster), lambda event: 50) == []
    assert cluster.get("/v1/cluster_config?key=kafka_connections_max_overrides") == {
        "kafka_connections_max_overrides": ["127.1.0.88:3"]
    }
    cluster.set(NAME, "3")
    more = [connect(cluster.address, "127.1.0.99") for _ in range(10)]
    assert sum(map(admitted, more)) == 3
    assert report["broken"] == 0
    for sock in held + more:
        sock.close()


def test_every_process_event_is_numbered_without_a_gap(cluster):
    with storm(cluster, "--connections", "2000", "--hold", "0"):
        pass
    by_process = {}
    for event in journal(cluster):
        by_process.setdefault((event["broker"], event["shard"], event["epoch"]), []).append(event["seq"])
    for numbers in by_process.values():
        assert sorted(numbers) == list(range(len(numbers)))
    assert Path(cluster.data_dir / "journal").is_dir()


def test_an_idempotent_producer_finds_every_acknowledged_record_exactly_once(cluster):
    count, acknowledged = 20_000, set()
    producer = Producer(
        {"bootstrap.servers": cluster.bootstrap, "enable.idempotence": True, "linger.ms": 2, "log_level": 0}
    )

    def delivered(error, message):
        if error is None:
            acknowledged.add(int(message.key()))

    for number in range(count):
        producer.produce("orders", b"x" * 100, key=str(number), on_delivery=delivered)
        producer.poll(0)
        if number in (5_000, 12_000):
            until(lambda: producer.poll(0.01) or len(acknowledged) > 1_000, what="some acknowledged")
            # It may be away still since it was killed before.
            until(lambda: os.kill(cluster.shard_pid(0), signal.SIGKILL) is None, what="shard 0 is there to be killed")
    assert producer.flush(60) == 0
    assert len(acknowledged) == count
    with Consumer(
        {"bootstrap.servers": cluster.bootstrap, "group.id": "g", "auto.offset.reset": "earliest", "log_level": 0}
    ) as consumer:
        consumer.subscribe(["orders"])
        seen = Counter()
        deadline = time.monotonic() + 60
        while len(seen) < count and time.monotonic() < deadline:
            seen.update(int(message.key()) for message in consumer.consume(5_000, 0.5) if message.error() is None)
        end = consumer.get_watermark_offsets(TopicPartition("orders", 0), timeout=10)[1]
    assert end == count, "no record is there twice"
    assert set(seen) == acknowledged and set(seen.values()) == {1}
