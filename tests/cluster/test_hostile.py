"""Hostile clients, and machines out of memory, disk or descriptors: other clients are served, and the cluster recovers."""

import contextlib
import json
import os
import resource
import signal
import struct
import subprocess
from contextlib import ExitStack

import pytest
import raw_http
from batches import batch
from harness import TURNSTILE, Cluster, _alive, admitted, connect, running, until
from request_bytes import answer, produce, request, string

from turnstile.admin_client import AdminRefused

_API_VERSIONS = bytes.fromhex("000000110012000000000001000774657374696e67")


def closed(sock):
    """Whether the other side ends the connection without an answer."""
    try:
        return sock.recv(1) == b""
    except ConnectionResetError:
        return True


def malformed(cluster):
    return cluster.metric("turnstile_malformed_total")


def refused_by(cluster):
    """Why connections were refused."""
    return {row["reason"] for row in cluster.get("/v1/refusals?by=reason")["refusals"] if row["count"]}


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    folder = tmp_path_factory.mktemp("hostile")
    with running(folder / "d", "--listener", "PLAIN=127.0.0.1:0", "--listener", "SASL=127.0.0.1:0,sasl") as cluster:
        pids = cluster.processes()
        yield cluster
        assert cluster.processes() == pids, "a process died"


@pytest.mark.parametrize(
    "sent",
    [
        b"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(100),
        struct.pack(">i", -1),
        struct.pack(">i", 0),
        struct.pack(">i", 104_857_601),
        struct.pack(">ihhih", 10, 999, 0, 1, -1),
        struct.pack(">ihhih", 10, 3, 99, 1, -1),
        struct.pack(">ihhihi", 14, 3, 1, 1, -1, 0x7FFFFFFF),
        struct.pack(">ihhih", 10, 3, 1, 1, 500),
    ],
    ids=["http", "tls", "negative", "empty", "oversized", "api", "version", "array", "client-id"],
)
def test_what_is_no_request_ends_its_connection_and_no_other(cluster, sent):
    with connect(cluster.listeners["PLAIN"][0]) as good, connect(cluster.listeners["PLAIN"][0]) as bad:
        assert admitted(good)
        before = malformed(cluster)
        bad.sendall(sent)
        assert closed(bad)
        assert admitted(good)
        until(lambda: malformed(cluster) == before + 1, what="counted")


def test_a_frame_that_stops_half_way_holds_up_nobody(cluster):
    with ExitStack() as stack:
        for _ in range(20):
            stack.enter_context(connect(cluster.listeners["PLAIN"][0])).sendall(
                struct.pack(">i", 100 << 20) + b"x" * 99
            )
        with connect(cluster.listeners["PLAIN"][0]) as good:
            assert admitted(good)


def test_large_requests_that_stop_half_way_hold_up_no_other_large_request(cluster):
    """Together they hold more than queued.max.request.bytes; what holds memory and sends nothing is closed for the others."""
    address = cluster.listeners["PLAIN"][0]
    large = produce("good", "unknown", 0, batch(b"x" * 200_000))
    with ExitStack() as stack:
        stopped = [stack.enter_context(connect(address)) for _ in range(12)]
        for sock in stopped:
            sock.settimeout(1)
            sock.sendall(struct.pack(">i", 99 << 20))
        for sock in stopped:
            with contextlib.suppress(OSError):  # the broker stops reading, or closes it
                for _ in range(20):
                    sock.sendall(b"x" * (1 << 20))
        for _ in range(4):  # on every shard, most likely
            good = stack.enter_context(connect(address))
            good.sendall(large[:150_000])
            assert admitted(stack.enter_context(connect(address)))
            good.sendall(large[150_000:])
            assert answer(good)


def test_an_unknown_client_gets_no_room_for_a_large_frame(cluster):
    with connect(cluster.listeners["SASL"][0]) as sock:
        sock.sendall(struct.pack(">i", (512 << 10) + 1))
        assert closed(sock)


def test_before_authentication_nothing_else_is_answered(cluster):
    with connect(cluster.listeners["SASL"][0]) as sock:
        assert admitted(sock)
        sock.sendall(struct.pack(">ihhihi", 14, 3, 1, 1, -1, -1))
        assert closed(sock)


def test_a_wrong_password_is_answered_although_the_client_goes_on_talking(cluster):
    """What it has sent since is unread, and would turn a plain close into a reset."""
    with connect(cluster.listeners["SASL"][0]) as sock:
        sock.sendall(request(17, 1, "guesser", string("PLAIN")))
        assert answer(sock)
        guess = b"\0alice\0guess"
        sock.sendall(request(36, 0, "guesser", struct.pack(">i", len(guess)) + guess))
        sock.sendall(_API_VERSIONS)
        assert answer(sock)[4:6] == struct.pack(">h", 58), "SASL_AUTHENTICATION_FAILED"
        assert sock.recv(1) == b"", "and the end of the stream"


def test_a_client_that_never_reads_is_no_longer_read_either_and_gets_every_answer_when_it_does(cluster):
    with connect(cluster.listeners["PLAIN"][0]) as rude, connect(cluster.listeners["PLAIN"][0]) as good:
        rude.setblocking(False)
        requests, sent = _API_VERSIONS * 1000, 0
        while sent < 64 << 20:  # it is held up long before
            try:
                sent += rude.send(requests[sent % len(requests) :])  # on from where the last part ended
            except BlockingIOError:
                assert admitted(good)
                break
        else:
            raise AssertionError("everything was taken")
        rude.settimeout(60)
        with rude.makefile("rb") as answers:
            for _ in range(sent // len(_API_VERSIONS)):
                answers.read(int.from_bytes(answers.read(4), "big"))


@pytest.mark.parametrize("body", [b"[]", b"\xff", b'{"name":"\\ud800","password":"x"}', b"[" * 100_000])
def test_what_is_no_change_is_the_callers_mistake(cluster, body):
    for path in ("/v1/users", "/v1/quotas", "/v1/cluster_config"):
        answer = raw_http.ask(cluster.admin, "PUT", path, body)
        assert answer.status == 400
        json.loads(answer.text)


def test_out_of_descriptors_connections_are_refused_and_it_recovers(tmp_path):
    with running(tmp_path / "d", shards=1, descriptors=200) as limited:
        pids = limited.processes()
        with ExitStack() as stack:
            outcomes = [admitted(stack.enter_context(connect(limited.address))) for _ in range(150)]
            assert outcomes[0] and not outcomes[-1]
            until(lambda: refused_by(limited) == {"fd_limit"}, what="counted by its reason")
        until(lambda: limited.get("/v1/shards")["shards"][0]["connections"] == 0, what="all closed")
        with connect(limited.address) as sock:
            assert admitted(sock)
        assert limited.processes() == pids


def test_a_full_disk_refuses_changes_ends_nothing_and_keeps_nothing_from_coming_back(tmp_path):
    """RLIMIT_FSIZE, once everything runs, is a disk that takes nothing beyond what its files hold."""
    with running(tmp_path / "d") as cluster:
        coordinator = cluster.get("/v1/cluster")["coordinator_pid"]
        everybody = cluster.processes()
        for pid in everybody:
            resource.prlimit(pid, resource.RLIMIT_FSIZE, (0, resource.RLIM_INFINITY))
        with pytest.raises(AdminRefused) as caught:
            cluster.set("kafka_connections_max", 5)
        assert caught.value.status == 507
        with connect(cluster.address) as sock:
            assert admitted(sock)
        for killed in (cluster.shard_pid(0), coordinator, _converter(cluster), cluster.shard_pid(1)):
            _come_back_after_a_kill(cluster, killed)
            with ExitStack() as stack:
                clients = [stack.enter_context(connect(cluster.address)) for _ in range(10)]
                assert all(map(admitted, clients))
        for pid in cluster.processes():
            resource.prlimit(pid, resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        cluster.set("kafka_connections_max", 5)


def _converter(cluster):
    shards = [cluster.shard_pid(0), cluster.shard_pid(1)]
    supervisor, coordinator = (cluster.get("/v1/cluster")[name] for name in ("pid", "coordinator_pid"))
    (converter,) = set(cluster.processes()) - {supervisor, coordinator, *shards}
    return converter


def _come_back_after_a_kill(cluster, pid):
    before = cluster.processes()
    os.kill(pid, signal.SIGKILL)
    until(lambda: pid not in cluster.processes() and len(cluster.processes()) == len(before), what="another process")
    until(
        lambda: cluster.get("/healthz")["status"] == "ok" and pid not in (cluster.shard_pid(0), cluster.shard_pid(1)),
        what="all are well",
    )


def test_the_coordinator_dies_while_a_change_is_under_way(cluster_of_its_own):
    """The caller is told nothing, or the truth: what holds afterwards is the old value or the new one, everywhere."""
    cluster = cluster_of_its_own
    stopped = cluster.shard_pid(1)
    os.kill(stopped, signal.SIGSTOP)  # so that the change can't be acknowledged
    change = subprocess.Popen(
        [TURNSTILE, "config", "set", "kafka_connections_max_per_ip", "1"],
        env={**os.environ, "TURNSTILE_ADMIN": cluster.admin},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    until(
        lambda: (
            cluster.get("/v1/cluster_config?key=kafka_connections_max_per_ip") == {"kafka_connections_max_per_ip": 1}
        )
    )
    os.kill(cluster.get("/v1/cluster")["coordinator_pid"], signal.SIGKILL)
    assert change.wait(timeout=20) == 1
    os.kill(stopped, signal.SIGCONT)
    until(lambda: {each["config_version"] for each in cluster.get("/v1/shards")["shards"]} == {2}, what="in force")
    with connect(cluster.address, "127.0.0.7") as one, connect(cluster.address, "127.0.0.7") as two:
        assert sorted([admitted(one), admitted(two)]) == [False, True]


@pytest.fixture
def cluster_of_its_own(tmp_path):
    with running(tmp_path / "d") as cluster:
        yield cluster


@pytest.mark.parametrize("number", [signal.SIGUSR1, signal.SIGALRM, signal.SIGQUIT, signal.SIGHUP, signal.SIGRTMIN])
def test_a_signal_that_would_end_the_supervisor_ends_the_cluster_in_order(tmp_path, number):
    cluster = Cluster(tmp_path / "d", shards=1)
    with connect(cluster.address) as sock:
        assert admitted(sock)
        cluster.process.send_signal(number)
        assert cluster.process.wait(timeout=20) == 0
        assert sock.recv(1) == b""
    assert "Traceback" not in cluster.errors.read_text()
    cluster.stop()
    assert (cluster.data_dir / "epoch").read_text() == "3\n", "in order: the last epoch is noted"


def test_a_cluster_whose_processes_are_all_stopped_ends_in_order(tmp_path):
    cluster = Cluster(tmp_path / "d")
    for pid in cluster.processes()[1:]:
        os.kill(pid, signal.SIGSTOP)
    cluster.stop()
    assert (cluster.data_dir / "epoch").read_text() == "4\n"
    assert not list((cluster.data_dir / "journal").rglob("*.live")), "none was killed: their spools are closed"


def test_with_too_few_descriptors_to_start_it_says_so(tmp_path):
    for most in (8, 12, 20, 30):
        command = ["prlimit", f"--nofile={most}", TURNSTILE, "up", "--port", "0", "--admin-port", "0"]
        run = subprocess.run([*command, "--brokers", "4"], env={**os.environ, "TMPDIR": str(tmp_path)},
                             capture_output=True, text=True, timeout=60)  # fmt: skip
        assert run.returncode == 1 and "Traceback" not in run.stderr, run.stderr
        assert list(tmp_path.iterdir()) == []


def test_ctrl_c_while_it_starts_leaves_nothing_behind(tmp_path):
    """At any moment: the earlier ones end the command before it has done anything."""
    env = {**os.environ, "TMPDIR": str(tmp_path)}
    command = [TURNSTILE, "up", "--port", "0", "--admin-port", "0"]
    up = subprocess.Popen(command, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    until(lambda: list(tmp_path.iterdir()), what="its data directory")
    up.send_signal(signal.SIGTERM)
    _, said = up.communicate(timeout=20)
    assert up.returncode in (0, 143) and "Traceback" not in said
    assert list(tmp_path.iterdir()) == []
    assert not _alive(up.pid)


def test_why_it_cannot_start_is_said_although_processes_have_ended(tmp_path):
    (tmp_path / "cluster.sqlite").mkdir()
    command = [TURNSTILE, "up", "--port", "0", "--admin-port", "0", "--data-dir", str(tmp_path)]
    run = subprocess.run(command, capture_output=True, text=True, timeout=30)
    assert run.returncode == 1 and "cluster.sqlite can't be used" in run.stderr


def test_a_client_that_says_nothing_is_closed_after_a_while_and_its_token_is_free(tmp_path):
    options = ("--set", "connections.max.idle.ms=300", "--set", "kafka_connections_max_per_ip=1")
    with running(tmp_path / "data", *options) as cluster:
        with connect(cluster.address) as silent:
            assert silent.recv(1) == b"", "closed by the broker, which never answered it"
        with connect(cluster.address) as next_one:
            assert admitted(next_one)
