"""Client quotas by Redpanda's semantics over the wire: one bucket on all shards, told at once, held at the next request."""

import subprocess
import time
from contextlib import ExitStack
from functools import partial

import pytest
from harness import TURNSTILE, connect, running, until
from request_bytes import THROTTLING_QUOTA_EXCEEDED, answer, create_topics, created, request
from throttle_times import SIZE, read, write

from broker.journal.reader import events
from shards.limits.client_quota_managers import FETCH, MUTATION, PRODUCE
from shards.limits.node_throughput import NODE_IN

REDPANDA = ("--set", "turnstile.quota.semantics=redpanda")
RATE = 100_000
CONNECTIONS = 4
UNKNOWN_SERVER_ERROR = 0xFFFF  # -1, as raw.created reads it
API_VERSIONS = partial(request, 18, 0, body=b"")


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    with running(tmp_path_factory.mktemp("redpanda") / "data", *REDPANDA, "--topic", "t", shards=2) as cluster:
        yield cluster


@pytest.fixture(autouse=True)
def unlimited_again(cluster):
    yield
    for row in cluster.get("/v1/quotas")["quotas"]:
        limit(cluster, row["entity"], **dict.fromkeys(row["values"]))
    cluster.unset("max_kafka_throttle_delay_ms")
    cluster.unset(NODE_IN)


def limit(cluster, entity, **quotas):
    set_ = {name: value for name, value in quotas.items() if value is not None}
    remove = [name for name, value in quotas.items() if value is None]
    cluster.put("/v1/quotas", {"alter": [{"entity": entity, "set": set_, "remove": remove}]})


def told_in_the_journal(cluster, quota):
    rows = events(cluster.data_dir / "journal")
    return {row["throttle_ms"] for row in rows if row["kind"] == "throttled" and row["limit"] == f"redpanda:{quota}"}


@pytest.mark.timed  # a home that does not answer within 250 ms leaves each shard to a bucket of its own
def test_all_clients_of_a_prefix_share_one_bucket_on_all_shards_and_a_hasty_one_is_held_at_its_next_produce(cluster):
    limit(cluster, {"client-id-prefix": "app-"}, producer_byte_rate=RATE)
    began_s = time.monotonic()
    with ExitStack() as opened:
        socks = [opened.enter_context(connect(cluster.address)) for _ in range(CONNECTIONS)]
        delays = [write(sock, f"app-{number}") for number, sock in enumerate(socks)]
        told_s = time.monotonic()
        assert delays[0] == 0, "a bucket begins full: a second's worth passes"
        least_s = CONNECTIONS * SIZE / RATE - 1 - (told_s - began_s) - 0.1
        assert delays[-1] / 1000 >= least_s, "it is told what all before it owe, too"
        hasty = socks[-1]
        hasty.sendall(API_VERSIONS("app-3"))
        assert answer(hasty) and read(hasty, "app-3")[0] == 0, "no request of another kind is held"
        write(hasty, "app-3", size=10)
        assert time.monotonic() - told_s >= delays[-1] / 1000 - 0.1
        assert write(socks[0], "other") == 0
    until(lambda: told_in_the_journal(cluster, PRODUCE) >= set(delays) - {0}, what="the journal's rows")
    assert cluster.metric("turnstile_throttled_requests_total", quota=PRODUCE) >= 2


def test_what_was_fetched_delays_the_next_fetch_which_keeps_its_records(cluster):
    limit(cluster, {"client-id": None}, consumer_byte_rate=1000)
    cluster.set("max_kafka_throttle_delay_ms", 40)
    with connect(cluster.address) as sock:
        assert write(sock) == 0
        assert read(sock)[0] == 0, "an answer is charged when it is there"
        throttle_ms, size = read(sock)
        assert throttle_ms == 40, "a minute is owed, and no delay is longer than the setting"
        assert size > SIZE
        assert write(sock, size=10) == 0


def test_the_longer_of_the_clients_delay_and_the_brokers_is_told(cluster):
    cluster.set("max_kafka_throttle_delay_ms", 50)
    cluster.set(NODE_IN, 1_000_000_000)
    limit(cluster, {"client-id": "app-1"}, producer_byte_rate=1)
    with connect(cluster.address) as sock:
        assert write(sock) == 50
    limit(cluster, {"client-id": "app-1"}, producer_byte_rate=10**9)
    cluster.set(NODE_IN, 1)
    with connect(cluster.address) as sock:
        assert write(sock) == 50


@pytest.mark.parametrize(("strict", "code"), [(True, THROTTLING_QUOTA_EXCEEDED), (False, UNKNOWN_SERVER_ERROR)])
def test_topics_are_refused_while_partitions_are_owed_in_every_version_and_cost_theirs_all_the_same(
    cluster, strict, code
):
    client = f"mutating-{strict}"
    limit(cluster, {"client-id": client}, controller_mutation_rate=1)
    with connect(cluster.address) as sock:
        began_s = time.monotonic()
        sock.sendall(create_topics(client, {f"{client}-1": 5, f"{client}-2": 2, f"{client}-3": 1}, strict=strict))
        done = created(answer(sock), strict=strict)
        took_ms = (time.monotonic() - began_s) * 1000
        assert done.errors == {f"{client}-1": 0, f"{client}-2": code, f"{client}-3": code}
        assert 6000 - took_ms - 1 <= done.throttle_ms <= 6000, "four partitions too many, and the two that were refused"
        sock.sendall(API_VERSIONS(client))
        assert answer(sock), "and no connection is muted"
    until(lambda: done.throttle_ms in told_in_the_journal(cluster, MUTATION), what="the journal's row")


def test_a_client_that_has_not_logged_in_is_no_default_user(cluster):
    limit(cluster, {"user": None}, producer_byte_rate=1)
    limit(cluster, {"user": "ANONYMOUS"}, producer_byte_rate=1)
    with connect(cluster.address) as sock:
        assert write(sock) == 0
    assert "no quota holds" in cluster.turnstile("quota", "explain", "client-id=app-1")


def test_explain_list_and_set_know_prefixes_and_what_redpanda_lacks_is_refused(cluster):
    cluster.turnstile("quota", "set", "client-id-prefix=app-", "producer_byte_rate=1MB/s")
    assert "client-id-prefix=app-" in cluster.turnstile("quota", "list")
    told = cluster.turnstile("quota", "explain", "client-id=app-7")
    assert "client-id-prefix=app-" in told and "use not known" in told
    assert "client-id-prefix=app-" in cluster.turnstile("explain", "client-id=app-7")
    for words, why in (
        (("client-id=app", "request_percentage=50"), "Redpanda has no such quota"),
        (("client-id=app", "client-id-prefix=a", f"{FETCH}=5"), "exclude each other"),
        (("--observe", "client-id=app", f"{FETCH}=5"), "can be rehearsed"),
    ):
        assert why in cluster.turnstile("quota", "set", *words, expect=1), words
    assert "can't be <default>" in cluster.turnstile(
        "quota", "set", "client-id-prefix=<default>", f"{FETCH}=5", expect=2
    )
    assert "can't change while" in cluster.turnstile("config", "set", "turnstile.quota.semantics", "kafka", expect=1)


def planned(data_dir):
    """What is said of a plan of the journal's quotas."""
    command = [TURNSTILE, "plan", "--quotas", "--format", "journal", "--input", str(data_dir)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    return done.stdout + done.stderr


def test_a_data_directory_that_comes_back_under_kafkas_semantics_keeps_prefixes_and_none_is_in_force(tmp_path):
    with running(tmp_path / "data", *REDPANDA, "--topic", "t") as cluster:
        limit(cluster, {"client-id-prefix": "app-"}, producer_byte_rate=1)
        limit(cluster, {"client-id": "mine"}, producer_byte_rate=RATE)
        with connect(cluster.address) as sock:
            assert write(sock) > 0
    assert "held client quotas by Redpanda's rules" in planned(tmp_path / "data")
    with running(tmp_path / "data") as cluster:
        with connect(cluster.address) as sock:
            assert write(sock) == 0
            assert write(sock, "mine", 2 * RATE) == 0, "Kafka's window lets ten seconds of it pass"
        refused = cluster.turnstile("quota", "set", "client-id-prefix=b", f"{PRODUCE}=5", expect=1)
        assert "Unhandled client quota entity type: client-id-prefix" in refused
        cluster.turnstile("quota", "unset", "client-id-prefix=app-")
        assert [row["entity"] for row in cluster.get("/v1/quotas")["quotas"]] == [{"client-id": "mine"}]
    assert "is not in the journal, nor in this plan" in planned(tmp_path / "data")
