"""Consume, transform, produce in transactions while processes are killed: is each record's effect there exactly once, by key?

    python tests/clients/exactly_once.py --client java --records 100000 --brokers 1 --shards 6 --kill-every 2

One client, librdkafka's or Java's, reads `in` and writes `out`, with its offsets in the same transactions (KIP-447). The shards
are killed by SIGKILL in turn, one every so many seconds, and the coordinator process once. A shard that is killed again within ten
seconds is started after delays that double (shards/supervisor/backoff.py): six shards killed every two seconds live longer.
Prints what it found; exit code 1 if a key is missing, doubled or wrong, or if a transaction is still open when all is done.
"""

from __future__ import annotations

import argparse
import contextlib
import math
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from pathlib import Path
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))

from confluent_kafka import OFFSET_INVALID, Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from harness import Cluster, running

PARTITIONS = 4
BATCH = 200
# While its only broker is away, librdkafka 2.16 bootstraps anew, drops that broker, and keeps it as the group's coordinator:
# send_offsets_to_transaction then waits for it for ever, and asks nobody.
QUIET = {"log_level": 0, "metadata.recovery.strategy": "none"}
JAVA = Path(__file__).parent / "java" / "ExactlyOnce.java"
PATIENCE_S = 45.0
"""How long a step of a transaction is tried again before its producer is given up."""


class Outcome(NamedTuple):
    """`wrong`: keys that are not there exactly once, with how often they are; `aborted`: transactions that had to be."""

    records: int
    wrong: dict[bytes, int]
    transactions: int
    aborted: int
    producers: int
    kills: int
    seconds: float


class Killer(threading.Thread):
    """Kills the next shard every `every_s`, at most `most` times, and the coordinator after the second of them."""

    def __init__(self, cluster: Cluster, every_s: float, most: float) -> None:
        super().__init__(daemon=True)
        self.cluster, self.every_s, self.most = cluster, every_s, most
        self.kills = 0
        self.over = threading.Event()

    def run(self) -> None:
        while self.kills < self.most and not self.over.wait(self.every_s):
            with contextlib.suppress(Exception):  # the admin API is away while the coordinator is
                shards = self.cluster.get("/v1/shards")["shards"]
                os.kill(shards[self.kills % len(shards)]["pid"], signal.SIGKILL)
                self.kills += 1
                if self.kills == 2:
                    os.kill(self.cluster.get("/v1/cluster")["coordinator_pid"], signal.SIGKILL)


class Pipeline:
    """Moves every record of `in` to `out`, in transactions of up to BATCH records. Raises AssertionError after `within_s`."""

    def __init__(self, bootstrap: str, records: int, within_s: float) -> None:
        self.bootstrap, self.records = bootstrap, records
        self._within_s, self._until = within_s, time.monotonic() + within_s
        self.transactions = self.aborted = self.producers = 0
        self.consumer = Consumer(
            {
                "bootstrap.servers": bootstrap, "group.id": "g", "auto.offset.reset": "earliest", **QUIET,
                "isolation.level": "read_committed", "enable.auto.commit": False, "session.timeout.ms": 6000,
            }
        )  # fmt: skip
        self.consumer.subscribe(["in"])
        self.producer = self._new_producer()

    def _new_producer(self) -> Producer:
        self.producers += 1
        while True:
            self._check_time()
            made = Producer(
                {"bootstrap.servers": self.bootstrap, "transactional.id": "pipeline", "linger.ms": 0, **QUIET}
            )
            try:
                made.init_transactions(20)
                return made
            except KafkaException as fault:
                if not fault.args[0].retriable():
                    raise

    def run(self) -> None:
        with self.consumer:
            self._move_all()

    def _move_all(self) -> None:
        while self._committed() < self.records:
            self._check_time()
            messages = [each for each in self.consumer.consume(BATCH, timeout=0.2) if not each.error()]
            if not messages:
                continue
            try:
                self._move(messages)
                self.transactions += 1
            except KafkaException as fault:
                self._recover(fault)

    def _move(self, messages: list) -> None:
        self.producer.begin_transaction()
        for each in messages:
            self.producer.produce("out", b"effect of " + each.value(), key=each.key())
        places = self.consumer.position(self.consumer.assignment())
        _retried(lambda: self.producer.send_offsets_to_transaction(places, self.consumer.consumer_group_metadata(), 20))
        _retried(lambda: self.producer.commit_transaction(20))

    def _recover(self, fault: KafkaException) -> None:
        self.aborted += 1
        try:
            if fault.args[0].fatal() or not fault.args[0].txn_requires_abort():
                raise fault
            _retried(lambda: self.producer.abort_transaction(20))
        except KafkaException:
            self.producer = self._new_producer()
        self._rewind()

    def _rewind(self) -> None:
        """To what is committed."""
        while True:
            self._check_time()
            try:
                for each in self.consumer.committed(self.consumer.assignment(), timeout=10):
                    offset = 0 if each.offset == OFFSET_INVALID else each.offset
                    self.consumer.seek(TopicPartition(each.topic, each.partition, offset))
                return
            except KafkaException:
                self.consumer.poll(0.2)

    def _committed(self) -> int:
        places = [TopicPartition("in", number) for number in range(PARTITIONS)]
        try:
            return sum(max(each.offset, 0) for each in self.consumer.committed(places, timeout=10))
        except KafkaException:
            return 0

    def _check_time(self) -> None:
        if time.monotonic() > self._until:
            raise AssertionError(f"only {self._committed()} of {self.records} records in {self._within_s} s")


class JavaPipeline:
    """The same by Java's client, java/ExactlyOnce.java."""

    def __init__(self, bootstrap: str, records: int, within_s: float) -> None:
        from scripts.peers.jars import JVM_FLAGS, classpath

        self._command = [
            "java", *JVM_FLAGS, "-cp", classpath(), str(JAVA), bootstrap, str(records), str(PARTITIONS),
        ]  # fmt: skip
        self._within_s = within_s
        self.transactions = self.aborted = self.producers = 0

    def run(self) -> None:
        done = subprocess.run(self._command, stdout=subprocess.PIPE, text=True, timeout=self._within_s, check=True)
        self.transactions, self.aborted, self.producers = map(int, done.stdout.split()[-3:])


PIPELINES = {"librdkafka": Pipeline, "java": JavaPipeline}


def _retried(step) -> None:
    until = time.monotonic() + PATIENCE_S
    while True:
        try:
            step()
            return
        except KafkaException as fault:
            if not fault.args[0].retriable() or time.monotonic() > until:
                raise


def run(
    cluster: Cluster, records: int, *, client: str = "librdkafka", kill_every_s: float, kills: float = math.inf,
    within_s: float = 3600,
) -> Outcome:  # fmt: skip
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap})
    for made in admin.create_topics([NewTopic(name, PARTITIONS, 1) for name in ("in", "out")]).values():
        made.result(timeout=30)
    source = Producer({"bootstrap.servers": cluster.bootstrap, "enable.idempotence": True})
    for number in range(records):
        source.produce("in", b"%d" % number, key=b"%d" % number)
        source.poll(0)
    assert source.flush(60) == 0
    killer = Killer(cluster, kill_every_s, kills)
    killer.start()
    began_s = time.monotonic()
    try:
        pipeline = PIPELINES[client](cluster.bootstrap, records, within_s)
        pipeline.run()
    finally:
        killer.over.set()
        killer.join()
    seconds = time.monotonic() - began_s
    seen = _effects(cluster.bootstrap)
    expected = {b"%d" % number for number in range(records)}
    wrong = {key: seen[key] for key in expected | set(seen) if seen[key] != (1 if key in expected else 0)}
    return Outcome(records, wrong, pipeline.transactions, pipeline.aborted, pipeline.producers, killer.kills, seconds)


def _effects(bootstrap: str) -> Counter[bytes]:
    """How often each key is in `out` at read_committed; its end must be reached, so no transaction may be open."""
    ends: dict[int, int] = {}
    with Consumer(
        {"bootstrap.servers": bootstrap, "group.id": "ends", "isolation.level": "read_uncommitted", **QUIET}
    ) as every:

        def look() -> None:
            for number in range(PARTITIONS):
                ends[number] = every.get_watermark_offsets(TopicPartition("out", number), timeout=30)[1]

        _retried(look)
    seen: Counter[bytes] = Counter()
    reached: dict[int, int] = {}
    until = time.monotonic() + 90
    with Consumer(
        {
            "bootstrap.servers": bootstrap, "group.id": "judge", "auto.offset.reset": "earliest", **QUIET,
            "isolation.level": "read_committed", "enable.partition.eof": True,
        }
    ) as reader:  # fmt: skip
        reader.subscribe(["out"])
        while any(reached.get(n, 0) < ends[n] for n in range(PARTITIONS)):
            assert time.monotonic() < until, f"read_committed ends at {reached} of {ends}: a transaction is open"
            for each in reader.consume(1000, timeout=0.2):
                if each.error():
                    reached[each.partition()] = each.offset()
                else:
                    assert each.value() == b"effect of " + each.key()
                    seen[each.key()] += 1
    return seen


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--client", choices=PIPELINES, default="librdkafka")
    options.add_argument("--records", type=int, default=100_000)
    options.add_argument("--brokers", type=int, default=1)
    options.add_argument("--shards", type=int, default=6)
    options.add_argument("--kill-every", type=float, default=2.0)
    given = options.parse_args()
    with (
        tempfile.TemporaryDirectory() as directory,
        running(Path(directory) / "data", brokers=given.brokers, shards=given.shards) as cluster,
    ):
        outcome = run(cluster, given.records, client=given.client, kill_every_s=given.kill_every)
    print(outcome._replace(wrong=dict([*outcome.wrong.items()][:20])))
    print("every key exactly once" if not outcome.wrong else f"{len(outcome.wrong)} keys are not there exactly once")
    return bool(outcome.wrong)


if __name__ == "__main__":
    sys.exit(main())
