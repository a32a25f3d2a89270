"""A client quota whose home is stopped or killed again and again: its stand-ins go on by the same arithmetic.

A charge of a fiftieth of the quota's window or more is told to the others at once, so the meters of all shards hold the same
records, and each answer can be judged to the millisecond by one Kafka meter fed with the journal.
"""

import os
import signal
import threading
import time
from contextlib import ExitStack, contextmanager
from typing import NamedTuple

import pytest
from batches import batch
from harness import connect, running, until
from request_bytes import answer, create_topics, created, fetch, produce, produced, request

from broker.journal.reader import events
from shards.limits.bucket import TokenBucket
from shards.limits.client_quota_managers import FETCH, MUTATION, PRODUCE, REQUEST
from shards.limits.rate import Rate, Window
from shards.ownership import home_of

SAMPLES = 3
WINDOW = Window(SAMPLES, 1000)
OPTIONS = ("--set", f"quota.window.num={SAMPLES}", "--set", f"controller.quota.window.num={SAMPLES}", "--topic", "t:8")
PATIENT = ("--set", "turnstile.shard.timeout.ms=60000")
QUOTA = 100_000
MOST_IN_A_WINDOW = QUOTA * (SAMPLES + 1)
"""What one Kafka meter lets pass without a throttle in any span of SAMPLES seconds."""
LONGEST_WAIT_S = 0.25 + 1.75
"""A charge waits 250 ms for its home; the rest is for a busy machine. Before, it was five seconds."""


class Answered(NamedTuple):
    """A request: how long its answer took beyond what the connection was muted for, and its throttle."""

    waited_s: float
    throttle_ms: int


def client_of(home, kind=PRODUCE, shards=2):
    """A client id that is metered at this shard."""
    return next(name for name in map("client-{}".format, range(1000)) if home_of(f"{kind}\0\0{name}", shards) == home)


def limit(cluster, client_id, **quotas):
    set_ = {name: value for name, value in quotas.items() if value is not None}
    remove = [name for name, value in quotas.items() if value is None]
    cluster.put("/v1/quotas", {"alter": [{"entity": {"client-id": client_id}, "set": set_, "remove": remove}]})


def connect_to(cluster, stack, shard):
    """A connection that this shard accepted."""
    socks = {}
    for _ in range(40):
        sock = stack.enter_context(connect(cluster.address))
        socks[sock.getsockname()[1]] = sock

    def placed():
        said = events(cluster.data_dir / "journal")
        at = {each["port"]: each["shard"] for each in said if each["kind"] == "admitted"}
        return at if socks.keys() <= at.keys() else None

    at = until(placed, what="the journal of all connections")
    return next(sock for port, sock in socks.items() if at[port] == shard)


class Client:
    """Sends its next request as soon as the last one is answered; the broker mutes it."""

    def __init__(self, sock, frame, throttle_of):
        self._sock, self._frame, self._throttle_of = sock, frame, throttle_of
        self._muted_until_s = 0.0
        self.answers = []

    def ask(self):
        self._sock.sendall(self._frame)
        may_s = max(self._muted_until_s, time.monotonic())
        throttle_ms = self._throttle_of(answer(self._sock))
        now_s = time.monotonic()
        self.answers.append(Answered(now_s - may_s, throttle_ms))
        self._muted_until_s = now_s + throttle_ms / 1000
        return self.answers[-1]

    def run(self, seconds):
        until_s = time.monotonic() + seconds
        while time.monotonic() < until_s:
            self.ask()


def charged(cluster, client_id, count):
    """The journal's rows of a client, once there are so many: in order, with the ms they were recorded at."""

    def rows():
        told = events(cluster.data_dir / "journal")
        mine = [each for each in told if each["kind"] == "charge" and each.get("client_id") == client_id]
        return sorted(mine, key=lambda row: row["mono_ns"]) if len(mine) >= count else None

    found = until(rows, what=f"{count} rows in the journal")
    assert len(found) == count
    return found


def by_one_meter(rows, quota):
    """The throttles that one Kafka meter answers to what the rows recorded."""
    meter = Rate(WINDOW)
    return [meter.charge(row["bytes"], quota, now_ms=row["mono_ns"] // 1_000_000) for row in rows]


def most_unthrottled(rows, span_ms=1000 * SAMPLES):
    """The most bytes without a throttle in any span."""
    passed = [(row["mono_ns"] // 1_000_000, row["bytes"]) for row in rows if not row.get("throttle_ms")]
    return max((sum(size for at, size in passed if end - span_ms < at <= end) for end, _ in passed), default=0)


def kill(cluster, shard):
    """kill -9, and waits until there is another process."""
    pid = cluster.shard_pid(shard)
    os.kill(pid, signal.SIGKILL)
    until(lambda: cluster.shard_pid(shard) not in (0, None, pid), what="another process")


@contextmanager
def killing(cluster, shard):
    """Kills a shard again and again, 300 ms after it came back."""
    ends = threading.Event()

    def kills():
        while not ends.wait(0.3):
            kill(cluster, shard)

    killer = threading.Thread(target=kills)
    killer.start()
    yield
    ends.set()
    killer.join()


@pytest.mark.timed
def test_a_stopped_homes_stand_in_answers_each_produce_as_one_meter_does(tmp_path):
    with running(tmp_path / "d", *OPTIONS, *PATIENT) as cluster, ExitStack() as stack:
        name = client_of(home=1)
        limit(cluster, name, producer_byte_rate=QUOTA)
        client = Client(
            connect_to(cluster, stack, shard=0), produce(name, "t", 0, batch(b"x" * 30_000)), lambda it: produced(it)[1]
        )
        client.run(1)
        home = cluster.shard_pid(1)
        for _ in range(2):
            os.kill(home, signal.SIGSTOP)
            try:
                client.run(2)
            finally:
                os.kill(home, signal.SIGCONT)
            client.run(1)
        assert max(each.waited_s for each in client.answers) < LONGEST_WAIT_S
        rows = charged(cluster, name, len(client.answers))
        assert [row.get("throttle_ms", 0) for row in rows] == [each.throttle_ms for each in client.answers]
        assert [each.throttle_ms for each in client.answers] == by_one_meter(rows, QUOTA)
        assert {row.get("reason") for row in rows} == {None, "stand_in"}, "the journal tells them apart"
        assert most_unthrottled(rows) <= MOST_IN_A_WINDOW


@pytest.mark.timed
def test_a_home_that_is_killed_again_and_again_forgets_nothing(tmp_path):
    with running(tmp_path / "d", *OPTIONS) as cluster, ExitStack() as stack:
        name = client_of(home=1)
        limit(cluster, name, producer_byte_rate=QUOTA)
        client = Client(
            connect_to(cluster, stack, shard=0), produce(name, "t", 0, batch(b"x" * 30_000)), lambda it: produced(it)[1]
        )
        with killing(cluster, 1):
            client.run(5)
        rows = charged(cluster, name, len(client.answers))
        assert [each.throttle_ms for each in client.answers] == by_one_meter(rows, QUOTA)
        assert {row.get("reason") for row in rows} == {None, "stand_in"}
        assert max(each.waited_s for each in client.answers) < LONGEST_WAIT_S


@pytest.mark.timed
def test_all_clients_of_a_broker_stay_within_the_bound_while_homes_stop_and_die(tmp_path):
    """Three shards, clients on all of them who come again when their shard dies."""
    with running(tmp_path / "d", *OPTIONS, *PATIENT, shards=3) as cluster:
        name = client_of(home=1, shards=3)
        limit(cluster, name, producer_byte_rate=QUOTA)
        frame = produce(name, "t", 0, batch(b"x" * 9000))
        ends, waits, count = threading.Event(), [], [0]

        def comes_again():
            while not ends.is_set():
                try:
                    with connect(cluster.address) as sock:
                        client = Client(sock, frame, lambda it: produced(it)[1])
                        while not ends.is_set():
                            waits.append(client.ask().waited_s)
                            count[0] += 1
                except OSError:
                    continue

        clients = [threading.Thread(target=comes_again) for _ in range(12)]
        for each in clients:
            each.start()
        began_s = time.monotonic()
        for _ in range(3):
            home = cluster.shard_pid(1)
            os.kill(home, signal.SIGSTOP)
            time.sleep(1.0)  # how long it is stopped is what is tested
            os.kill(home, signal.SIGCONT)
            time.sleep(0.5)
            kill(cluster, 1)
            time.sleep(0.5)
        ends.set()
        took_s = time.monotonic() - began_s
        for each in clients:
            each.join()
        told = events(cluster.data_dir / "journal")
        rows = [each for each in told if each["kind"] == "charge" and each.get("client_id") == name]
        assert most_unthrottled(rows) <= 3 * MOST_IN_A_WINDOW, "one more window for each shard"
        total = sum(row["bytes"] for row in rows)
        assert total <= QUOTA * (took_s + SAMPLES) * 1.5 + len(clients) * 9_100 * 3


@pytest.mark.timed
def test_a_stopped_homes_stand_in_withholds_fetches_beyond_the_quota(tmp_path):
    with running(tmp_path / "d", *OPTIONS, *PATIENT) as cluster, ExitStack() as stack:
        sock = connect_to(cluster, stack, shard=0)
        sock.sendall(produce("filler", "t", 0, batch(b"x" * 60_000)))
        assert produced(answer(sock)).error == 0
        name = client_of(home=1, kind=FETCH)
        limit(cluster, name, consumer_byte_rate=QUOTA)
        client = Client(sock, fetch(name, "t"), lambda it: int.from_bytes(it[4:8], "big"))
        client.run(0.5)
        home = cluster.shard_pid(1)
        os.kill(home, signal.SIGSTOP)
        try:
            client.run(3)
        finally:
            os.kill(home, signal.SIGCONT)
        client.run(1)
        assert max(each.waited_s for each in client.answers) < LONGEST_WAIT_S
        rows = charged(cluster, name, len(client.answers))
        assert {row.get("reason") for row in rows} == {None, "stand_in"}
        meter, expected = Rate(WINDOW), []
        for row in rows:
            at_ms, size = row["mono_ns"] // 1_000_000, row["bytes"]
            expected.append(meter.charge(size, QUOTA, now_ms=at_ms))
            if expected[-1]:
                meter.record(-size, now_ms=at_ms)
        assert [each.throttle_ms for each in client.answers] == expected
        assert any(row.get("reason") and row.get("throttle_ms") for row in rows)
        assert most_unthrottled(rows) <= MOST_IN_A_WINDOW


@pytest.mark.timed
def test_a_home_that_is_killed_again_and_again_lets_no_fetch_beyond_the_quota(tmp_path):
    with running(tmp_path / "d", *OPTIONS) as cluster, ExitStack() as stack:
        sock = connect_to(cluster, stack, shard=0)
        sock.sendall(produce("filler", "t", 0, batch(b"x" * 60_000)))
        assert produced(answer(sock)).error == 0
        name = client_of(home=1, kind=FETCH)
        limit(cluster, name, consumer_byte_rate=QUOTA)
        brought = []

        def throttle_of(response):
            brought.append({"mono_ns": time.monotonic_ns(), "bytes": len(response)})
            return int.from_bytes(response[4:8], "big")

        client = Client(sock, fetch(name, "t"), throttle_of)
        with killing(cluster, 1):
            client.run(4)
        assert max(each.waited_s for each in client.answers) < LONGEST_WAIT_S
        assert most_unthrottled(brought) <= 2 * MOST_IN_A_WINDOW, "one more window for the other shard"


@pytest.mark.timed
def test_a_killed_homes_stand_in_throttles_request_time(tmp_path):
    """`turnstile.request.cost` makes each request worth 100 ms of a quota of 5 %; a delay is a window at most."""
    cost = ("--set", "turnstile.request.cost=ApiVersions=100ms")
    with running(tmp_path / "d", *OPTIONS, *cost) as cluster, ExitStack() as stack:
        name = client_of(home=1, kind=REQUEST)
        limit(cluster, name, request_percentage=5)
        client = Client(
            connect_to(cluster, stack, shard=0), request(18, 2, name, b""), lambda it: int.from_bytes(it[-4:], "big")
        )
        for _ in range(4):
            client.ask()
            kill(cluster, 1)
            client.ask()
        client.run(2)
        assert max(each.waited_s for each in client.answers) < LONGEST_WAIT_S
        assert [each.throttle_ms for each in client.answers[1:]] == [1000] * (len(client.answers) - 1)
        rows = charged(cluster, name, sum(each.throttle_ms > 0 for each in client.answers))
        assert "stand_in" in {row.get("reason") for row in rows}


@pytest.mark.timed
@pytest.mark.parametrize("strict", [True, False], ids=["strict", "permissive"])
def test_a_stopped_homes_stand_in_limits_mutations(tmp_path, strict):
    with running(tmp_path / "d", *OPTIONS, *PATIENT) as cluster, ExitStack() as stack:
        name = client_of(home=1, kind=MUTATION)
        limit(cluster, name, controller_mutation_rate=2)  # a burst of 6
        sock = connect_to(cluster, stack, shard=0)
        home = cluster.shard_pid(1)

        def create(topic, partitions):
            began_s = time.monotonic()
            sock.sendall(create_topics(name, {topic: partitions}, strict=strict, validate_only=True))
            told = created(answer(sock), strict=strict)
            return told.errors[topic], told.throttle_ms, time.monotonic() - began_s

        assert create("first", 5)[:2] == (0, 0)
        os.kill(home, signal.SIGSTOP)
        try:
            error, throttle_ms, waited_s = create("second", 4)
            assert error == 0 and waited_s < LONGEST_WAIT_S
            assert strict or 500 < throttle_ms <= 1500, "three tokens too many, at two a second, and time has passed"
        finally:
            os.kill(home, signal.SIGCONT)
        until(lambda: cluster.get("/healthz")["status"] == "ok", what="the home is back")
        bucket = TokenBucket(WINDOW)
        for row in charged(cluster, name, 2):
            bucket.charge(row["bytes"], 2, now_ms=row["mono_ns"] // 1_000_000)
        error, throttle_ms, _ = create("third", 4)
        assert (error, throttle_ms > 0) == ((0, True) if not strict else (error, error == 89)), "the home knows of both"
