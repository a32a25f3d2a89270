"""Client quotas on real processes: one client over many connections and shards, mutations, precedence, muted channels.

Quota windows are 3 samples of a second, so that a test sees several of them within seconds.
"""

import itertools
import json
import threading
import time
from itertools import accumulate
from pathlib import Path

import pytest
from batches import batch
from harness import connect, running, until
from request_bytes import THROTTLING_QUOTA_EXCEEDED, answer, create_topics, created, produce, produced, request

from broker.journal.reader import events
from shards.limits.rate import Rate, Window

SAMPLES = 3
WINDOW = ("--set", f"quota.window.num={SAMPLES}", "--set", f"controller.quota.window.num={SAMPLES}")
CONNECTIONS, QUOTA, STEADY_S = 32, 400_000, 5.0


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    with running(tmp_path_factory.mktemp("quotas") / "data", *WINDOW, "--topic", "t:8", shards=4) as cluster:
        yield cluster


def limit(cluster, entity, **quotas):
    set_ = {name: value for name, value in quotas.items() if value is not None}
    remove = [name for name, value in quotas.items() if value is None]
    cluster.put("/v1/quotas", {"alter": [{"entity": entity, "set": set_, "remove": remove}]})


def throttled(cluster, client_id):
    """The delays that the journal says this client was told, in the order of the clock."""
    return of_client(cluster, client_id, "throttled")


def of_client(cluster, client_id, kind):
    """The journal's events of a kind and of this client, in the order of the clock."""
    happened = events(cluster.data_dir / "journal")
    mine = [each for each in happened if each["kind"] == kind and each.get("client_id") == client_id]
    return sorted(mine, key=lambda event: event["mono_ns"])


def charged_until_closed(cluster, client_id, connections):
    """What this client was charged, or None while the journal lacks the end of one of so many connections."""
    told = of_client(cluster, client_id, "charge")
    return told if len(of_client(cluster, client_id, "closed")) == connections else None


def most_within(recorded, window_s):
    """The most bytes in any window of so many seconds, of (ms, bytes) in order."""
    most, total, first = 0, 0, 0
    for at_ms, size in recorded:
        total += size
        while at_ms - recorded[first][0] >= window_s * 1000:
            total -= recorded[first][1]
            first += 1
        most = max(most, total)
    return most


@pytest.mark.timed
def test_one_client_over_many_connections_on_all_shards_stays_within_its_quota(cluster):
    limit(cluster, {"client-id": "many"}, producer_byte_rate=QUOTA)
    until_s = time.monotonic() + (SAMPLES - 1) + STEADY_S
    failures = []

    def client(number):
        frame = produce("many", "t", number % 8, batch(b"x" * 1900))
        try:
            with connect(cluster.address) as sock:
                while time.monotonic() < until_s:
                    sock.sendall(frame)
                    error, _ = produced(answer(sock))
                    if error:
                        failures.append(error)
        except OSError as error:
            failures.append(error)

    threads = [threading.Thread(target=client, args=(number,)) for number in range(CONNECTIONS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []

    # A shard writes its rows in order: what a connection was charged is there once its end is.
    told = until(lambda: charged_until_closed(cluster, "many", CONNECTIONS), what="the journal of all connections")
    askers = {json.loads(event["detail"])["asker"] for event in told}
    assert askers == {0, 1, 2, 3}, "connections are spread over all shards"
    assert len({event["shard"] for event in told}) == 1, "and are charged at one"
    assert {(event["limit"], event["limit_value"]) for event in told} == {("producer_byte_rate", QUOTA)}
    (size,) = {event["bytes"] for event in told}

    seconds = (told[-1]["mono_ns"] - told[0]["mono_ns"]) / 1e9
    assert seconds > SAMPLES + 2, "it went on after the burst"

    # All connections of all shards are charged as by one meter of one Kafka broker, to the millisecond and in its order;
    # what was charged in the same millisecond has no order that the journal could tell.
    rate = Rate(Window(SAMPLES, 1000))
    at_ms = [event["mono_ns"] // 1_000_000 for event in told]
    due = sorted(zip(at_ms, [rate.charge(size, QUOTA, now_ms=each) for each in at_ms], strict=True))
    assert sorted(zip(at_ms, [event.get("throttle_ms", 0) for event in told], strict=True)) == due

    # And each of them waits for as long as it was told: in no time they get more than the quota, what a burst may take (a whole
    # window), and a request of each connection; whatever holds up the clients meanwhile.
    times = list(zip(at_ms, itertools.repeat(size)))
    for length_s in range(1, int(seconds)):
        assert most_within(times, length_s) <= QUOTA * (length_s + SAMPLES) + CONNECTIONS * size, f"{length_s} s"


def test_a_throttled_answer_comes_at_once_and_the_next_only_after_the_delay(cluster):
    limit(cluster, {"client-id": "slow"}, producer_byte_rate=2000)
    frame = produce("slow", "t", 0, batch(b"x" * 1000))
    with connect(cluster.address) as sock:
        started, at, told = time.monotonic(), [], []
        for _ in range(7):
            sock.sendall(frame)
            told.append(produced(answer(sock)).throttle_ms)
            at.append(time.monotonic())
    assert any(told)
    # From the start on, so that an answer that this client reads late can't make the next delay look short.
    for muted_ms, answered in zip(accumulate(told), at[1:], strict=False):
        assert answered - started >= muted_ms / 1000 - 0.005, "muted for as long as it was told"
    assert told[0] == 0


def test_a_strict_mutation_is_refused_topic_by_topic(cluster):
    limit(cluster, {"client-id": "strict"}, controller_mutation_rate=1)  # a burst of 3
    with connect(cluster.address) as sock:

        def create(topics):
            sock.sendall(create_topics("strict", topics, strict=True))
            return created(answer(sock), strict=True)

        began_s = time.monotonic()
        first = create({"s1": 5, "s2": 1})
        took_ms = (time.monotonic() - began_s) * 1000
        assert first.errors == {"s1": 0, "s2": THROTTLING_QUOTA_EXCEEDED}, "accepted in part"
        assert 2000 - took_ms - 1 <= first.throttle_ms <= 2000, "two partitions too many, at one a second"
        second = create({"s2": 1})
        assert second.errors == {"s2": 0}, "the channel was muted until there was a token"


def test_a_permissive_mutation_is_done_and_throttled(cluster):
    limit(cluster, {"client-id": "permissive"}, controller_mutation_rate=1)
    with connect(cluster.address) as sock:
        began_s = time.monotonic()
        sock.sendall(create_topics("permissive", {"p1": 5, "p2": 1}, strict=False))
        done = created(answer(sock), strict=False)
        took_ms = (time.monotonic() - began_s) * 1000
    assert done.errors == {"p1": 0, "p2": 0}
    assert 3000 - took_ms - 1 <= done.throttle_ms <= 3000


def test_request_time_is_charged_to_every_request_and_a_delay_is_one_window_at_most(cluster):
    limit(cluster, {"client-id": "busy"}, request_percentage=0.0001)
    with connect(cluster.address) as sock:
        for version in (2, 1):
            sock.sendall(request(18, version, "busy", b""))  # ApiVersions, whose throttle time is its last field
            response = answer(sock)
            assert (response[4:6], int.from_bytes(response[-4:], "big")) == (b"\0\0", 1000)
        sock.sendall(produce("busy", "t", 0, batch()))
        assert produced(answer(sock)) == (0, 1000)
    with connect(cluster.address) as sock:
        sock.sendall(request(18, 2, "idle", b""))
        assert answer(sock)[-4:] == b"\0\0\0\0"
    limit(cluster, {"client-id": "busy"}, request_percentage=None)


def test_produce_without_acknowledgement_is_exempt_from_request_time(cluster):
    limit(cluster, {"client-id": "exempt"}, request_percentage=0.0001)
    with connect(cluster.address) as sock:
        sock.sendall(produce("exempt", "t", 0, batch(), acks=0) + request(18, 2, "exempt", b""))
        assert answer(sock)[-4:] == (1000).to_bytes(4, "big")
    told = until(lambda: throttled(cluster, "exempt"), what="a journal entry")
    assert [event["api"] for event in told] == ["ApiVersions"]
    limit(cluster, {"client-id": "exempt"}, request_percentage=None)


LEVELS = [
    {"user": "ANONYMOUS", "client-id": "level"},
    {"user": "ANONYMOUS", "client-id": None},
    {"user": "ANONYMOUS"},
    {"user": None, "client-id": "level"},
    {"user": None, "client-id": None},
    {"user": None},
    {"client-id": "level"},
    {"client-id": None},
]


def test_the_most_specific_level_holds_and_the_next_one_when_it_is_gone(cluster):
    for rank, entity in enumerate(LEVELS):
        limit(cluster, entity, producer_byte_rate=1_000_000 + rank)
    found = []
    with connect(cluster.address) as sock:
        for entity in LEVELS:
            sock.sendall(produce("level", "t", 0, batch()))
            assert produced(answer(sock)) == (0, 0)
            found.append(until(lambda: of_client(cluster, "level", "charge")[len(found) :], what="a journal entry")[0])
            limit(cluster, entity, producer_byte_rate=None)
        sock.sendall(produce("level", "t", 0, batch()))
        assert produced(answer(sock)) == (0, 0)
    assert [event["limit_value"] for event in found] == [1_000_000 + rank for rank in range(len(LEVELS))]
    assert len(of_client(cluster, "level", "charge")) == len(LEVELS), "and none at last"


def test_muted_channels_cost_no_thread_and_are_counted_until_they_close(cluster):
    limit(cluster, {"client-id": "muted"}, producer_byte_rate=10)
    pids = {each["pid"] for each in cluster.get("/v1/shards")["shards"]}
    frame = produce("muted", "t", 0, batch(b"x" * 1000))

    def threads():
        return sum(len(list(Path(f"/proc/{pid}/task").iterdir())) for pid in pids)

    def muted():
        return cluster.metric("kafka_server_produce_queue_size")

    with connect(cluster.address) as first:
        first.sendall(frame)
        answer(first)
        before = threads()
        socks = [connect(cluster.address) for _ in range(100)]
        for sock in socks:
            sock.sendall(frame)
        assert all(produced(answer(sock)).throttle_ms > 60_000 for sock in socks)
        until(lambda: muted() >= 100, what="100 channels are muted")
        assert threads() <= before + len(pids), "a thread that turns journals into parts may have started"
        for sock in socks:
            sock.close()
        until(lambda: muted() <= 1, what="closed channels are forgotten")


SCENARIO = """
seconds = 3
[[traffic]]
topic = "t"
client_id = "impatient"
producers = 0
consumers = 0
impatient = 1
records_per_s = 100
size_bytes = 2000
[[traffic]]
topic = "made"
client_id = "creator"
producers = 0
consumers = 0
mutators = 1
topics_per_s = 20
partitions = 2
"""


@pytest.mark.timed
def test_the_load_driver_reports_throttle_times_as_its_clients_saw_them(cluster, tmp_path):
    limit(cluster, {"client-id": "impatient"}, producer_byte_rate=5000)
    limit(cluster, {"client-id": "creator"}, controller_mutation_rate=2)
    (tmp_path / "storm.toml").write_text(SCENARIO)
    said = cluster.turnstile(
        "load", "--json", "--bootstrap", cluster.bootstrap, "--scenario", str(tmp_path / "storm.toml")
    )
    report = json.loads(said.splitlines()[0])
    assert report["reconciled"], report["reconciliation"]
    traffic = report["traffic"]
    insisted = traffic["throttled"]["impatient producer that would not wait"]
    told = [event for event in throttled(cluster, "impatient") if event.get("throttle_ms")]
    assert (insisted["responses"], insisted["total_ms"]) == (len(told), sum(event["throttle_ms"] for event in told))
    assert 4 <= traffic["created"] < 12, "a burst of 6 partitions, the one that empties the bucket, and 2 a second"
    assert traffic["rejected"] > 10
