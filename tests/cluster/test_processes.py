"""Starting, stopping and the mistakes people make with it."""

import os
import signal
import socket
import subprocess

from harness import TURNSTILE, Cluster, _alive, admitted, connect, running, until


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
    import json

    started = json.loads(run.stdout)
    env = {**os.environ, "TURNSTILE_ADMIN": started["admin"]}
    status = subprocess.run([TURNSTILE, "status"], env=env, capture_output=True, text=True, timeout=30)
    assert status.returncode == 0 and str(started["pid"]) in status.stdout
    down = subprocess.run([TURNSTILE, "down"], env=env, capture_output=True, text=True, timeout=30)
    assert down.returncode == 0, down.stderr
    assert not _alive(started["pid"])
    again = subprocess.run([TURNSTILE, "down"], env=env, capture_output=True, text=True, timeout=30)
    assert again.returncode == 1 and "no cluster" in again.stderr.lower()


def test_a_second_ctrl_c_kills_what_has_not_ended(tmp_path):
    cluster = Cluster(tmp_path / "d")
    processes, stuck, other = cluster.processes(), cluster.shard_pid(0), cluster.shard_pid(1)
    os.kill(stuck, signal.SIGSTOP)
    cluster.process.send_signal(signal.SIGINT)
    until(lambda: not _alive(other), what="the other shard ended in good order")
    assert _alive(stuck)
    cluster.process.send_signal(signal.SIGINT)
    assert cluster.process.wait(timeout=20) == 0
    cluster.stop()
    assert not any(map(_alive, processes))
    assert "killing what has not ended" in cluster.errors.read_text()


def test_sigterm_ends_it_as_ctrl_c_does(tmp_path):
    cluster = Cluster(tmp_path / "d")
    processes = cluster.processes()
    cluster.process.send_signal(signal.SIGTERM)
    assert cluster.process.wait(timeout=20) == 0
    cluster.stop()
    assert not any(map(_alive, processes))
