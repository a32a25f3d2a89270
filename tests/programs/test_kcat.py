"""kcat as Debian packages it: records from one kcat to another, through a quota, a cap and the death of a shard."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from harness import Cluster, running, until
from programs import Desk, Program, capped, connections, copy, throttled

from scripts.peers import fetching, kcat

CONNECTIONS = 2
"""The most of a kcat that produces: that to the broker, and one by its bootstrap address before it."""


@pytest.fixture(scope="module")
def found() -> kcat.Found:
    """Skips where it can't be had."""
    try:
        return kcat.kcat()
    except fetching.Missing as missing:
        pytest.skip(str(missing))


def produce(found: kcat.Found, cluster: Cluster, desk: Desk, numbers: range, folder: Path) -> Program:
    """A kcat that is given all of its input at once, which it reads in blocks."""
    # Without -E it ends when its only broker is away.
    command = [found.path, "-P", "-E", "-b", cluster.bootstrap, "-t", "lines", "-X", "enable.idempotence=true"]
    producer = Program(command, folder / f"producer-{numbers.start}.log", env=found.env)
    desk.said.update(f"record-{number}" for number in numbers)
    producer.write("".join(f"record-{number}\n" for number in numbers))
    return producer


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    with running(tmp_path / "data", "--set", "group.initial.rebalance.delay.ms=0", shards=2) as cluster:
        yield cluster


def test_records_are_produced_exactly_once(found: kcat.Found, cluster: Cluster, tmp_path: Path) -> None:
    with Desk(cluster.bootstrap, {"lines": 4}) as desk:
        produce(found, cluster, desk, range(300), tmp_path).end()
        desk.until_exact("lines", copy)
        with throttled(cluster, 2000), produce(found, cluster, desk, range(300, 2300), tmp_path) as producer:
            throttles = "turnstile_throttled_requests_total"
            until(lambda: cluster.metric(throttles), within_s=30, what="a throttled request")
            assert 0 < connections(cluster)[0] <= CONNECTIONS
            for shard in (0, 1):
                os.kill(cluster.shard_pid(shard), signal.SIGKILL)
            producer.end()
        desk.until_exact("lines", copy)
        with capped(cluster, 1, refusals=3):  # the one is the desk's
            producer = produce(found, cluster, desk, range(2300, 2600), tmp_path)
        with producer:
            producer.end()
        desk.until_exact("lines", copy)


def test_a_group_of_two_reads_each_record(found: kcat.Found, cluster: Cluster, tmp_path: Path) -> None:
    """One of the two is killed: what it had not committed comes once more, and nothing is lost."""
    with Desk(cluster.bootstrap, {"lines": 4}) as desk:
        command = [found.path, "-G", "readers", "-b", cluster.bootstrap, "-u", "-X", "auto.offset.reset=earliest",
                   "-X", "session.timeout.ms=6000", "lines"]  # fmt: skip
        first, second = (Program(command, tmp_path / f"{name}.log", env=found.env) for name in ("first", "second"))
        try:
            first.until_said("assigned"), second.until_said("assigned")

            def say(numbers: range) -> None:
                for number in numbers:
                    desk.said[f"record-{number}"] += 1
                    desk.produce("lines", f"record-{number}")
                desk.flush()

            def missing() -> set[str]:
                got = first.log.splitlines() + second.log.splitlines()
                return desk.said.keys() - set(got)

            say(range(500))
            until(lambda: not missing(), within_s=60, what="the first records")
            with throttled(cluster, 300):
                say(range(500, 1000))
            first.kill()
            say(range(1000, 1500))
            until(lambda: not missing(), within_s=60, what="all records, by one member")
        finally:
            first.kill()
            second.end(by_signal=True)
        assert set(second.log.splitlines()) & set(desk.said)
