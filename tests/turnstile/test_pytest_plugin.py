"""The plugin in a suite of another project's shape: pytest in a process of its own, in a folder of its own."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

CLIENTS = '''
import socket

def admitted(cluster, count, ip="127.1.0.1"):
    """How many of so many connections at once the cluster answers."""
    host, _, port = cluster.bootstrap.rpartition(":")
    socks = []
    for _ in range(count):
        sock = socket.socket()
        sock.settimeout(10)
        sock.bind((ip, 0))
        sock.connect((host, int(port)))
        socks.append(sock)
    answered = 0
    for sock in socks:
        try:
            sock.sendall(bytes.fromhex("00000011001200000000000100077465737469 6e67".replace(" ", "")))
            answered += bool(sock.recv(4))
        except (ConnectionResetError, BrokenPipeError):
            pass
    for sock in socks:
        sock.close()
    return answered
'''


def run(folder: Path, suite: str, *options: str) -> subprocess.CompletedProcess[str]:
    """pytest over a suite, with nothing of this repository's configuration; temporary files go to `folder`/tmp."""
    (folder / "tmp").mkdir()
    (folder / "clients.py").write_text(CLIENTS)
    (folder / "test_suite.py").write_text("import pytest\nfrom clients import admitted\n" + suite)
    (folder / "pytest.ini").write_text(
        "[pytest]\naddopts = --strict-markers -p no:cacheprovider\nfilterwarnings = error\n"
    )
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    environment |= {"TMPDIR": str(folder / "tmp"), "PYTHONDONTWRITEBYTECODE": "1"}
    return subprocess.run(
        [sys.executable, "-m", "pytest", *options],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
    )


def left_behind(folder: Path) -> list[str]:
    """Processes of a cluster of this folder, and temporary files that are not pytest's own."""
    mark = f"TMPDIR={folder / 'tmp'}".encode()
    found = [str(path) for path in (folder / "tmp").iterdir() if not path.name.startswith("pytest-of-")]
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if mark in (process / "environ").read_bytes():
                found.append((process / "cmdline").read_text().replace("\0", " "))
        except OSError:
            continue
    return found


def test_a_mark_limits_one_test_and_the_next_begins_with_nothing(tmp_path: Path) -> None:
    suite = """
@pytest.mark.limits(per_ip=3)
def test_limited(turnstile):
    assert admitted(turnstile, 5) == 3
    assert turnstile.refusals().by_reason == {"ip_cap": 2}

def test_free(turnstile):
    assert admitted(turnstile, 5) == 5
    assert turnstile.refusals().total == 0

@pytest.mark.limits({"kafka_connections_max": 4})
class TestOfAClass:
    @pytest.mark.limits(connections=2)
    def test_the_closest_mark_wins(self, turnstile):
        assert admitted(turnstile, 5) == 2

    def test_the_mark_of_the_class_holds(self, turnstile):
        assert admitted(turnstile, 5) == 4

@pytest.mark.quota("ip=127.1.0.1", connection_creation_rate=7)
def test_quota(turnstile):
    [rate] = turnstile.explain(ip="127.1.0.1")["brokers"][0]["rates"]
    assert rate["value"] == 7

def test_no_quota(turnstile):
    assert turnstile.explain(ip="127.1.0.1")["brokers"][0]["rates"] == []
"""
    done = run(tmp_path, suite)
    assert done.returncode == 0, done.stdout + done.stderr
    assert left_behind(tmp_path) == []


def test_a_failure_shows_what_was_refused_and_throttled(tmp_path: Path) -> None:
    suite = """
@pytest.fixture(scope="session")
def turnstile_options():
    return {"shards": 1, "limits": {"per_ip": 2}}

def test_fails(turnstile):
    assert admitted(turnstile, 5) == 5

def test_fails_without(request):
    assert False

def test_ends_the_cluster(turnstile):
    turnstile.stop()

def test_passes(turnstile):
    assert admitted(turnstile, 2) == 2

@pytest.fixture
def clients(turnstile):
    assert admitted(turnstile, 4) == 4

def test_its_fixture_fails(clients):
    pass
"""
    done = run(tmp_path, suite, "-p", "no:randomly")
    assert done.returncode == 1
    sections = re.findall(r"^-+ turnstile -+\n(.*?)(?=^[-_=]{5})", done.stdout, re.MULTILINE | re.DOTALL)
    assert "2 passed, 1 error" in re.sub(r"\d failed, ", "", done.stdout), (
        "another cluster is started for the next test"
    )
    assert len(sections) == 2, done.stdout
    for section, refused in zip(sections, (2, 3), strict=True):  # pytest shows the fixture's first
        assert "2 connections admitted" in section and f"refused 127.1.0.1: ip_cap {refused}; " in section
        assert re.search(r"[0-2] of 2 \(\d+ %\) open, cap of kafka_connections_max_per_ip", section), section


def test_a_failure_puts_what_a_throttled_client_used_beside_its_quota(tmp_path: Path) -> None:
    suite = """
@pytest.fixture(scope="session")
def turnstile_options():
    return {"topics": ["t"], "brokers": 2}

@pytest.mark.quota("client-id=app", producer_byte_rate=1000)
def test_fails(turnstile):
    from confluent_kafka import Producer
    producer = Producer({"bootstrap.servers": turnstile.bootstrap, "client.id": "app", "linger.ms": 0})
    producer.produce("t", bytes(15_000), on_delivery=lambda fault, record: None)
    assert producer.flush(20) == 0
    assert False
"""
    done = run(tmp_path, suite)
    told = re.search(
        r"^throttled client app on broker \d: producer_byte_rate (.*), delayed by (.*) on average", done.stdout, re.M
    )
    assert told and re.fullmatch(r"1\.\d+ kB/s of 1 kB/s \(\d+ %\)", told[1]), done.stdout
    assert re.search(r"^throttled by producer_byte_rate: 1 requests, [\d.]+ (s|ms) in all", done.stdout, re.M)


def test_a_mark_that_cannot_be_is_an_error_of_one_sentence(tmp_path: Path) -> None:
    done = run(tmp_path, "@pytest.mark.limits(per_ip='many')\ndef test_it(turnstile): pass\n", "--tb=line")
    assert done.returncode == 1 and "kafka_connections_max_per_ip cannot be 'many'" in done.stdout


def test_each_worker_of_xdist_has_a_cluster_and_nothing_is_left(tmp_path: Path) -> None:
    suite = """
import os

@pytest.mark.parametrize("number", range(40))
def test_it(turnstile, number):
    turnstile.set(per_ip=1 + number % 5)
    assert admitted(turnstile, 6) == 1 + number % 5
    ports = os.path.join(os.path.dirname(__file__), f"{os.environ['PYTEST_XDIST_WORKER']}.port")
    with open(ports, "w") as file:
        file.write(turnstile.bootstrap)
"""
    pytest.importorskip("xdist")
    done = run(tmp_path, suite, "-n", "4")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "40 passed" in done.stdout
    assert len({path.read_text() for path in tmp_path.glob("*.port")}) == len(list(tmp_path.glob("*.port"))) > 1
    assert left_behind(tmp_path) == []
