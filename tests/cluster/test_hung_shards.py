"""A shard or the coordinator that hangs (SIGSTOP): seen at once, ended within its timeout, and nothing waits for it for longer."""

import json
import os
import signal
from contextlib import ExitStack

import raw_http
from harness import admitted, connect, running, until

from shards.ownership import home_of

TIMEOUT = ("--set", "turnstile.shard.timeout.ms=2500")


def health(cluster):
    answer = raw_http.ask(cluster.admin, "GET", "/healthz")
    return answer.status, json.loads(answer.text)


def state(cluster, shard):
    return next(row["state"] for row in cluster.get("/v1/shards")["shards"] if row["shard"] == shard)


def test_a_hung_shard_shows_at_once_and_is_replaced_and_its_clients_are_served(tmp_path):
    with running(tmp_path / "d", *TIMEOUT) as cluster, ExitStack() as stack:
        stopped = cluster.shard_pid(0)
        os.kill(stopped, signal.SIGSTOP)
        socks = [stack.enter_context(connect(cluster.address)) for _ in range(40)]
        until(lambda: state(cluster, 0) == "unresponsive", what="seen")
        status, said = health(cluster)
        assert (status, said["status"], said["states"]) == (503, "degraded", {"broker 0 shard 0": "unresponsive"})
        assert "unresponsive" in cluster.turnstile("status")
        until(lambda: cluster.shard_pid(0) != stopped and health(cluster)[0] == 200, what="another in its place")
        assert all(admitted(sock) for sock in socks), "those that waited in its backlog, too"
        assert "does not answer" in cluster.errors.read_text()
        assert [row["restarts"] for row in cluster.get("/v1/shards")["shards"]] == [1, 0]


def test_the_home_of_a_pool_may_die_while_another_shard_hangs(tmp_path):
    with running(tmp_path / "d", *TIMEOUT, "--set", "kafka_connections_max=100") as cluster:
        home = home_of("broker", 2)
        stopped = cluster.shard_pid(1 - home)
        os.kill(stopped, signal.SIGSTOP)
        os.kill(cluster.shard_pid(home), signal.SIGKILL)

        def lets_in():
            with connect(cluster.address) as sock:
                sock.settimeout(1)
                return admitted(sock)

        until(lets_in, within_s=20, what="admitted, though the stopped process was never resumed")


def test_a_shard_that_resumes_in_time_is_not_ended(tmp_path):
    with running(tmp_path / "d", "--set", "turnstile.shard.timeout.ms=60000") as cluster:
        pid = cluster.shard_pid(1)
        os.kill(pid, signal.SIGSTOP)
        until(lambda: state(cluster, 1) == "unresponsive", what="seen")
        os.kill(pid, signal.SIGCONT)
        until(lambda: state(cluster, 1) == "up", what="up again")
        assert cluster.shard_pid(1) == pid


def test_a_hung_coordinator_is_replaced_and_no_connection_notices(tmp_path):
    with running(tmp_path / "d", "--set", "turnstile.shard.timeout.ms=1000") as cluster, ExitStack() as stack:
        sock = stack.enter_context(connect(cluster.address))
        assert admitted(sock)
        pid = cluster.get("/v1/cluster")["coordinator_pid"]
        os.kill(pid, signal.SIGSTOP)
        until(lambda: "the coordinator" in cluster.errors.read_text(), within_s=20, what="its end")
        until(lambda: cluster.get("/v1/cluster")["coordinator_pid"] != pid, within_s=20, what="another in its place")
        assert admitted(sock), "the connection has gone on"
        cluster.set("kafka_connections_max", 5)
        assert f"the coordinator (pid {pid}) does not answer; ending it" in cluster.errors.read_text()
