"""Starting, stopping and the mistakes people make with it."""

import json
import os
import signal
import socket
import subprocess
from pathlib import Path

import pytest
from harness import TURNSTILE, Cluster, _alive, admitted, connect, running, until

from turnstile.admin_client import AdminClient, AdminRefused


def run_up(*options):
    return subprocess.run([TURNSTILE, "up", "--admin-port", "0", *options], capture_output=True, text=True, timeout=30)


def test_it_says_what_it_listens_on_and_what_limits_are_set(tmp_path):
    with running(tmp_path / "d", "--set", "kafka_connections_max=7", brokers=2, shards=2) as cluster:
        assert [each["broker"] for each in cluster.started["listeners"]] == [0, 1]
        assert cluster.started["limits"] == {"kafka_connections_max": "7"}
        assert len(cluster.processes()) == 1 + 2 * 2 + 2
        for address in cluster.listeners["PLAINTEXT"]:
            with connect(address) as sock:
                assert admitted(sock)


def test_a_port_in_use_is_one_sentence(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        run = run_up("--port", str(taken.getsockname()[1]), "--data-dir", str(tmp_path / "d"))
    assert run.returncode == 1
    assert "the port is in use" in run.stderr and run.stderr.count("\n") == 1


def test_a_port_of_the_admin_api_in_use_is_a_sentence_with_its_own_option(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        run = run_up("--port", "0", "--data-dir", str(tmp_path / "d"), "--admin-port", port)
    assert run.returncode == 1 and run.stderr.count("\n") == 1
    assert "--admin-port" in run.stderr and "in use" in run.stderr


def test_a_second_up_on_a_port_of_a_running_cluster_does_not_join_it(tmp_path):
    with running(tmp_path / "one") as cluster:
        run = run_up("--port", str(cluster.address[1]), "--data-dir", str(tmp_path / "two"))
    assert run.returncode == 1 and "in use" in run.stderr


def test_a_second_up_on_the_same_data_directory_is_one_sentence(tmp_path):
    with running(tmp_path / "d") as cluster:
        run = run_up("--port", "0", "--data-dir", str(tmp_path / "d"))
        assert f"pid {cluster.process.pid}" in run.stderr
    assert run.returncode == 1 and run.stderr.count("\n") == 1


def test_a_data_directory_that_cannot_be_used_is_one_sentence(tmp_path):
    (tmp_path / "file").write_text("")
    run = run_up("--port", "0", "--data-dir", str(tmp_path / "file" / "below"))
    assert run.returncode == 1 and "data directory" in run.stderr and run.stderr.count("\n") == 1


def test_an_unknown_setting_is_a_usage_error():
    run = run_up("--set", "kafka_conections_max=5")
    assert run.returncode == 2 and "kafka_connections_max" in run.stderr
    assert "Traceback" not in run.stderr


def test_kill_9_of_the_supervisor_leaves_no_process_behind(tmp_path):
    cluster = Cluster(tmp_path / "d")
    processes = cluster.processes()
    cluster.kill()
    until(lambda: not any(map(_alive, processes)), what="everything gone")
    with running(tmp_path / "d") as again, connect(again.address) as sock:
        assert admitted(sock)


def test_detached_it_answers_when_up_returns_and_ends_with_down(tmp_path):
    run = run_up("--detach", "--port", "0", "--json", "--data-dir", str(tmp_path / "d"))
    assert run.returncode == 0, run.stderr
    started = json.loads(run.stdout)
    env = {**os.environ, "TURNSTILE_ADMIN": started["admin"]}
    status = subprocess.run([TURNSTILE, "status"], env=env, capture_output=True, text=True, timeout=30)
    assert status.returncode == 0 and str(started["pid"]) in status.stdout
    down = subprocess.run([TURNSTILE, "down"], env=env, capture_output=True, text=True, timeout=30)
    assert (down.returncode, down.stdout) == (0, f"Stopped the cluster at {started['admin']}.\n"), down.stderr
    assert not _alive(started["pid"])
    again = subprocess.run([TURNSTILE, "down"], env=env, capture_output=True, text=True, timeout=30)
    assert again.returncode == 1 and "no cluster" in again.stderr.lower()


def test_sigterm_ends_it_as_ctrl_c_does(tmp_path):
    cluster = Cluster(tmp_path / "d")
    processes = cluster.processes()
    cluster.process.send_signal(signal.SIGTERM)
    assert cluster.process.wait(timeout=20) == 0
    cluster.stop()
    assert not any(map(_alive, processes))


@pytest.mark.parametrize("most_bytes", [0, 100, 2000, 20_000])
def test_a_full_disk_is_one_sentence(tmp_path, most_bytes):
    """RLIMIT_FSIZE is a disk that takes so much of each file."""
    command = [TURNSTILE, "up", "--admin-port", "0", "--port", "0", "--data-dir", str(tmp_path / "d")]
    limited = ["prlimit", f"--fsize={most_bytes}", *command]
    # Python would keep the bytecode of what it imports cut off, too.
    kept = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
    run = subprocess.run(limited, capture_output=True, text=True, timeout=60, env=kept)
    assert run.returncode == 1
    assert len(run.stderr.splitlines()) == 1 and "Traceback" not in run.stderr, run.stderr
    assert "File too large" in run.stderr or "full" in run.stderr or "disk" in run.stderr


def test_what_a_cluster_keeps_is_for_its_owner_alone(tmp_path):
    previous = os.umask(0o022)
    try:
        with running(tmp_path / "d", "--topic", "t:1") as cluster:
            cluster.set("kafka_connections_max", 5)
            kept = [path for path in (tmp_path / "d").rglob("*") if not path.is_symlink()]
            assert len(kept) > 5
            assert [path for path in kept if path.stat().st_mode & 0o077] == []
    finally:
        os.umask(previous)


def test_the_token_of_the_admin_api_is_in_no_list_of_processes(tmp_path):
    (tmp_path / "token").write_text("s3cret\n")
    with running(tmp_path / "d", "--admin-token-file", str(tmp_path / "token")) as cluster:
        with pytest.raises(AdminRefused, match="token"):
            cluster.get("/v1/shards")
        with_token = AdminClient(cluster.admin, "s3cret")
        assert len(with_token.get("/v1/shards")["shards"]) == 2
        commands = [Path(f"/proc/{pid}/cmdline").read_bytes() for pid in cluster.processes()]
        assert b"s3cret" not in b"".join(commands)


def test_an_empty_token_file_is_wrong_usage(tmp_path):
    (tmp_path / "token").write_text("\n")
    run = run_up("--admin-token-file", str(tmp_path / "token"))
    assert run.returncode == 2 and "no token on its first line" in run.stderr


def test_a_listener_whose_clients_can_create_users_is_named_where_it_is_started(tmp_path):
    listeners = ("--listener", "OPEN=127.0.0.1:0", "--listener", "LOGIN=127.0.0.1:0,sasl")
    with running(tmp_path / "d", *listeners) as cluster:
        (note,) = cluster.started["notes"]
    assert note == "clients of OPEN need no login, and can create the users that LOGIN asks for"
    with running(tmp_path / "e", *listeners[2:]) as cluster:
        assert cluster.started["notes"] == []


def test_a_cluster_that_cannot_start_says_why_as_json(tmp_path):
    (tmp_path / "file").write_text("")
    run = run_up("--json", "--port", "0", "--data-dir", str(tmp_path / "file" / "below"))
    assert run.returncode == 1
    assert "data directory" in json.loads(run.stdout)["error"]


def test_a_shard_that_keeps_dying_is_started_later_and_later_and_the_cluster_goes_on(tmp_path):
    deaths = 7
    with running(tmp_path / "d") as cluster:
        coordinator, other = cluster.get("/v1/cluster")["coordinator_pid"], cluster.shard_pid(1)

        def row():
            return cluster.get("/v1/shards")["shards"][0]

        for death in range(deaths):
            until(lambda: row()["state"] == "up", what="it is up again")
            killed = row()["pid"]
            os.kill(killed, signal.SIGKILL)
            if death == deaths - 1:
                until(lambda: (row()["restart_in_s"] or 0) > 1, what="its next start is told")
                assert "next in" in cluster.turnstile("status")
            until(lambda pid=killed: row()["pid"] != pid, what="it was started again")
        assert row()["restarts"] == deaths
        assert (cluster.get("/v1/cluster")["coordinator_pid"], cluster.shard_pid(1)) == (coordinator, other)
        assert "as it keeps ending" in cluster.errors.read_text()
        assert cluster.process.poll() is None
