"""The Python API, with real processes: what a program that uses it sees."""

import asyncio
import json
import os
import resource
import signal
import subprocess
import sys
import threading
import time
from functools import partial
from pathlib import Path

import pytest
import trio
from click.testing import CliRunner
from confluent_kafka import Consumer, Producer
from harness import admitted, connect, until

import turnstile
from turnstile.cli.load import load
from turnstile.cluster_process import ClusterProcess
from turnstile.load import comparison

PER_IP = "kafka_connections_max_per_ip"
HEAVY = {"pyspark", "pandas", "pyarrow", "numpy", "trio", "confluent_kafka", "click", "rich"}


def address(cluster):
    host, _, port = cluster.bootstrap.split(",")[0].rpartition(":")
    return host, int(port)


@pytest.fixture(scope="module")
def shared():
    with turnstile.Cluster(topics={"orders": 3}) as cluster:
        yield cluster


@pytest.fixture
def cluster(shared):
    shared.reset()
    return shared


def test_import_loads_nothing_heavy():
    program = "import sys, turnstile; turnstile.Cluster, turnstile.KafkaContainer; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout.split()
    assert HEAVY & set(loaded) == set()
    with pytest.raises(AttributeError, match="no attribute 'Klaster'"):
        turnstile.Klaster  # noqa: B018
    assert set(turnstile.__all__) <= set(dir(turnstile)) and all(getattr(turnstile, name) for name in turnstile.__all__)


def test_a_client_produces_and_consumes(cluster):
    producer = Producer({"bootstrap.servers": cluster.bootstrap, "log_level": 0})
    producer.produce("orders", b"one")
    assert producer.flush(10) == 0
    with Consumer(
        {"bootstrap.servers": cluster.bootstrap, "group.id": "g", "auto.offset.reset": "earliest", "log_level": 0}
    ) as consumer:
        consumer.subscribe(["orders"])
        message = consumer.poll(20)
        assert message is not None and message.value() == b"one"


def test_a_limit_holds_when_set_returns_and_refusals_say_why(cluster):
    cluster.set(per_ip=2, overrides={"127.1.0.9": 3, "2001:db8::1": 1})
    socks = [connect(address(cluster), ip) for ip in ["127.1.0.1"] * 4 + ["127.1.0.9"] * 4]
    answers = list(map(admitted, socks))  # which of an address gets in, its shards decide
    assert (sum(answers[:4]), sum(answers[4:])) == (2, 3)
    refusals = cluster.refusals()
    assert (refusals.total, refusals.admitted, refusals.by_reason) == (3, 5, {"ip_cap": 3})
    assert refusals.by_ip == {"127.1.0.1": {"ip_cap": 2}, "127.1.0.9": {"ip_cap": 1}}
    assert (cluster.connections(), cluster.connections("127.1.0.9")) == (5, 3)
    cluster.set({"kafka_connections_max_per_ip": None})
    socks.append(connect(address(cluster), "127.1.0.1"))
    assert admitted(socks[-1])
    for sock in socks:
        sock.close()


def test_a_wrong_setting_is_one_sentence_and_changes_nothing(cluster):
    with pytest.raises(turnstile.AdminError, match="kafka_connections_max_per_ip cannot be 'many'"):
        cluster.set(per_ip="many")
    with pytest.raises(turnstile.AdminError, match="did you mean"):
        cluster.set({"max.conections": 1})
    with pytest.raises(ValueError, match="is not a quota entity"):
        cluster.quota("alice", producer_byte_rate=1)


def test_throttled_requests_are_counted_by_kind(cluster):
    cluster.quota("client-id=app", producer_byte_rate=100)
    producer = Producer({"bootstrap.servers": cluster.bootstrap, "client.id": "app", "log_level": 0})
    assert cluster.throttled() == {}
    producer.produce("orders", b"x" * 5000)
    assert producer.flush(10) == 0
    told = cluster.throttled()
    assert set(told) == {"producer_byte_rate"}
    assert told["producer_byte_rate"].requests == 1 and told["producer_byte_rate"].throttle_ms > 1000


def test_explain_says_which_limit_holds_where_it_comes_from_and_who_has_the_tokens(cluster):
    cluster.set(per_ip=4, overrides={"127.1.0.0/24": 2}, core_rate=1000)
    cluster.quota("ip=127.1.0.7", connection_creation_rate=30)
    with connect(address(cluster), "127.1.0.7") as sock:
        assert admitted(sock)
        [broker] = cluster.explain(ip="127.1.0.7")["brokers"]
    of_broker, of_ip = broker["connections"]
    assert (of_broker["limit"], of_broker["value"], of_broker["in_use"]) == ("", None, 1)
    assert (of_ip["limit"], of_ip["value"], of_ip["in_use"]) == ("kafka_connections_max_overrides", 2, 1)
    assert sum(holder["in_use"] for holder in of_ip["holders"]) == 1 and of_ip["home"] in (0, 1)
    assert {(rate["of"], rate["limit"], rate["value"]) for rate in broker["rates"]} == {
        ("ip", "connection_creation_rate", 30),
        ("core", "kafka_connection_rate_limit", 1000),
    }
    cluster.quota("user=alice", producer_byte_rate=5000)
    client = cluster.explain(user="alice", client_id="app")["client"]
    assert client["quotas"] == {"producer_byte_rate": 5000} and client["matched"] == {
        "user": "alice",
        "client-id": None,
    }
    with pytest.raises(turnstile.AdminError, match="must be an IP address"):
        cluster.explain(ip="nowhere")


def test_load_runs_a_scenario_without_and_with_the_limits_that_it_suggests(cluster, tmp_path, monkeypatch):
    monkeypatch.setattr(comparison, "compare", partial(comparison.compare, wait=lambda seconds: None))
    cluster.set(per_ip=4)
    scenario = tmp_path / "six.toml"
    scenario.write_text(
        '[limits]\nkafka_connections_max_per_ip = 3\n[[group]]\nsources = "127.1.0.1"\nclients = 6\nhold_s = "end"\n'
    )
    options = ["--bootstrap", cluster.bootstrap, "--admin", cluster.admin.url, "--scenario", str(scenario), "--apply"]
    done = CliRunner().invoke(load, [*options, "--json", "--expect", "refused<=2"])
    both = json.loads(done.stdout)
    assert (both["without"]["refused"], both["with"]["refused"]) == (2, 3)
    assert done.exit_code == 99 and done.stderr.strip().endswith("missed: refused<=2: it was 3")
    assert cluster.explain(ip="127.1.0.1")["brokers"][0]["connections"][1]["value"] == 4


def test_a_killed_shard_is_back_when_kill_shard_returns(cluster):
    before = {row["shard"]: row["pid"] for row in cluster.admin.get("/v1/shards")["shards"]}
    cluster.kill_shard(1)
    after = {row["shard"]: row["pid"] for row in cluster.admin.get("/v1/shards")["shards"]}
    assert before[0] == after[0] and before[1] != after[1]
    with pytest.raises(turnstile.ClusterError, match="no shard 7"):
        cluster.kill_shard(7)


def test_what_it_was_started_with_holds_again_after_a_reset():
    quotas = {"user=alice,client-id=<default>": {"producer_byte_rate": 1000.0}}
    with turnstile.Cluster(
        limits={"per_ip": 3, "slots": None}, quotas=quotas, topics="orders", users={"alice": "secret"},
        listeners="S=127.0.0.1:0,sasl",
    ) as cluster:  # fmt: skip
        assert cluster.bootstrap == cluster.bootstrap_of("s")
        assert cluster.admin.get("/v1/cluster")["topics"] == {"orders": 1}
        started = [cluster.admin.get(path) for path in ("/v1/quotas", "/v1/users")]
        cluster.set(per_ip=9)
        cluster.quota("user=alice,client-id=<default>", producer_byte_rate=None)
        cluster.user("alice", None)
        cluster.reset()
        assert [cluster.admin.get(path) for path in ("/v1/quotas", "/v1/users")] == started
        assert cluster.explain(ip="127.0.0.1")["brokers"][0]["connections"][1]["value"] == 3


def test_what_cannot_start_says_why_and_leaves_nothing():
    with pytest.raises(turnstile.ClusterError, match=r"^kafka_connections_max_per_ip cannot be '-1'.*\.$"):
        turnstile.Cluster(limits={"per_ip": -1}).start()
    cluster = turnstile.Cluster(quotas={"ip=nowhere": {"connection_creation_rate": 1}})
    with pytest.raises(turnstile.AdminError, match="not a valid IP"):
        cluster.start()
    with pytest.raises(turnstile.ClusterError, match="not running"):
        cluster.bootstrap  # noqa: B018
    cluster.stop()


def test_killed_from_outside_it_says_so():
    with turnstile.Cluster(shards=1) as cluster:
        pid = cluster.admin.get("/v1/cluster")["pid"]
        os.kill(pid, signal.SIGTERM)
        until(lambda: not cluster.is_running, what="the cluster has ended")
        with pytest.raises(turnstile.ClusterError, match="has ended"):
            cluster.set(per_ip=1)


def test_an_interrupted_start_leaves_no_process(monkeypatch):
    def interrupted(process):
        started.append(process._popen)
        raise KeyboardInterrupt

    started: list[subprocess.Popen[str]] = []
    monkeypatch.setattr(ClusterProcess, "_first_word", interrupted)
    with pytest.raises(KeyboardInterrupt):
        turnstile.Cluster().start()
    assert len(started) == 1 and started[0].returncode is not None


def test_killed_it_leaves_no_file():
    with turnstile.Cluster(shards=1) as cluster:
        os.kill(cluster.admin.get("/v1/cluster")["pid"], signal.SIGKILL)
    assert not cluster.data_dir.exists()


def test_neither_the_environment_nor_a_fork_nor_ctrl_c_changes_or_ends_it(tmp_path: Path):
    (tmp_path / "broker.py").write_text("raise SystemExit('a module of the user')")
    program = """
import os, signal, turnstile
with turnstile.Cluster(shards=1) as cluster:
    if os.fork() == 0:
        assert cluster.bootstrap and cluster.connections() == 0
        cluster.stop()
        os._exit(0)
    assert os.wait()[1] == 0
    try:
        os.killpg(0, signal.SIGINT)
        signal.pause()
    except KeyboardInterrupt:
        cluster.set(per_ip=1)
    print(cluster.data_dir.parent)
"""
    environment = {
        "PYTHONPATH": str(tmp_path),
        "TMPDIR": str(tmp_path),
        "TURNSTILE_UP_DATA_DIR": "/nowhere",
        "TURNSTILE_UP_DETACH": "1",
        "TURNSTILE_ADMIN_TOKEN": "secret",
    }
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        start_new_session=True,
    )
    assert (done.returncode, done.stdout.strip()) == (0, str(tmp_path)), done.stderr


def test_it_ends_with_the_program_that_started_it(tmp_path: Path):
    program = "import os, turnstile; c = turnstile.Cluster(shards=1).start(); print(c.admin.get('/v1/cluster'))"
    killed = subprocess.run(
        [sys.executable, "-c", f"{program}; import sys; sys.stdout.flush(); os.kill(os.getpid(), 9)"],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env={**os.environ, "TMPDIR": str(tmp_path)},
    )
    about = eval(killed.stdout)
    assert killed.returncode == -signal.SIGKILL
    until(lambda: not Path(f"/proc/{about['pid']}").exists(), what="the supervisor has ended")
    assert list(tmp_path.iterdir()) == [], "nor is its data left"


def test_killed_the_program_takes_its_cluster_along_though_a_fork_of_it_lives():
    program = """
import os, sys, turnstile
cluster = turnstile.Cluster(shards=1).start()
worker = os.fork()
if not worker:
    sys.stdin.read()
    os._exit(0)
print(worker, cluster.admin.get("/v1/cluster")["pid"], flush=True)
sys.stdin.read()
"""
    running = subprocess.Popen(
        [sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    worker, supervisor = map(int, running.stdout.readline().split())
    pipe, of_worker = os.readlink(f"/proc/{supervisor}/fd/0"), Path(f"/proc/{worker}/fd")
    until(
        lambda: pipe not in [os.readlink(each) for each in of_worker.iterdir() if each.is_symlink()],
        what="the fork has closed its copy",
    )
    running.kill()
    running.wait()
    until(lambda: not Path(f"/proc/{supervisor}").exists(), what="the supervisor has ended")
    assert Path(f"/proc/{worker}").exists()
    running.stdin.close()
    running.stdout.close()
    until(lambda: not Path(f"/proc/{worker}").exists(), what="the worker has ended")


@pytest.mark.parametrize("run", [trio.run, lambda function: asyncio.run(function())], ids=["trio", "asyncio"])
def test_the_same_in_an_event_loop(run):
    async def use():
        async with turnstile.AsyncCluster(shards=1, topics=["a"]) as cluster:
            await cluster.set(per_ip=1)
            await cluster.quota("user=alice", producer_byte_rate=10)
            with connect(address(cluster), "127.1.0.1") as one, connect(address(cluster), "127.1.0.1") as other:
                assert (admitted(one), admitted(other)) == (True, False)
                assert (await cluster.refusals()).total == 1 and await cluster.connections() == 1
            assert (await cluster.explain(user="alice"))["client"]["quotas"] == {"producer_byte_rate": 10}
            await cluster.kill_shard()
            await cluster.reset()
            assert (await cluster.refusals()).total == 0 and await cluster.throttled() == {}
            pids.append(cluster.sync.admin.get("/v1/cluster")["pid"])

    pids: list[int] = []
    run(use)
    assert len(pids) == 1 and not Path(f"/proc/{pids[0]}").exists()


def test_a_start_that_asyncio_cancels_is_undone(monkeypatch):
    def first_word(process):
        started.append(process._popen)
        begun.set()
        assert cancelled.wait(60)  # or a machine that is busy elsewhere has the cluster started before it is cancelled
        return real(process)

    async def use():
        task = asyncio.create_task(turnstile.AsyncCluster(shards=1).start())
        assert await asyncio.to_thread(begun.wait, 60)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        cancelled.set()

    started: list[subprocess.Popen[str]] = []
    begun, cancelled = threading.Event(), threading.Event()
    real = ClusterProcess._first_word
    monkeypatch.setattr(ClusterProcess, "_first_word", first_word)
    asyncio.run(use())
    until(lambda: started[0].returncode is not None, within_s=60, what="the cluster has ended")


def test_a_suite_for_testcontainers_changes_its_import():
    with turnstile.KafkaContainer("confluentinc/cp-kafka:7.6.0").with_kraft() as kafka:
        server = kafka.get_bootstrap_server()
        assert server == f"{kafka.get_container_host_ip()}:{kafka.get_exposed_port(9093)}"
        producer = Producer({"bootstrap.servers": server, "log_level": 0})
        producer.produce("t", b"one")
        assert producer.flush(10) == 0


@pytest.mark.timed
def test_a_start_costs_less_than_two_seconds_of_cpu_and_a_reset_less_than_50_ms():
    """The start in CPU time of all its processes, so that a busy machine changes nothing."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    with turnstile.Cluster() as cluster:
        resets = []
        for _ in range(5):
            with connect(address(cluster)) as sock:
                assert admitted(sock)
            cluster.set(per_ip=5)
            began = time.monotonic()
            cluster.reset()
            resets.append(time.monotonic() - began)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime < 2.0
    assert min(resets) < 0.05, resets


def test_limits_of_a_program_overrule_what_an_earlier_run_has_stored(tmp_path):
    with turnstile.Cluster(shards=1, data_dir=tmp_path, topics={"orders": 4}) as first:
        first.set(per_ip=20)
    with turnstile.Cluster(shards=1, data_dir=tmp_path, limits={"per_ip": 50}, topics={"orders": 6}) as again:
        assert again.admin.get("/v1/cluster_config", key=PER_IP)[PER_IP] == 50
        assert again.admin.get("/v1/cluster")["topics"]["orders"] == 6
        [note] = again.notes
        assert note.startswith(f"{PER_IP}=50 replaces 20, which was set on ")


def test_what_was_asked_for_and_cannot_be_had_is_a_warning(tmp_path):
    with turnstile.Cluster(shards=1, data_dir=tmp_path, topics={"orders": 4}):
        pass
    with (
        pytest.warns(turnstile.ClusterWarning, match="orders has 4 partitions since an earlier run"),
        turnstile.Cluster(shards=1, data_dir=tmp_path, topics={"orders": 2}),
    ):
        pass
