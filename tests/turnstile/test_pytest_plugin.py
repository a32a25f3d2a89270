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
        sock.settimeout(60)
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
        assert re.search(r"[0-2] of 2 \(\d+ %\) open now, cap of kafka_connections_max_per_ip", section), section


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
    assert re.search(r"^throttled by producer_byte_rate: 1 request, [\d.]+ (s|ms) in all", done.stdout, re.M)


WRONG = """
@pytest.mark.limits(per_ip='many')
def test_value(turnstile): pass

@pytest.mark.limits(per_ipp=5)
def test_name(turnstile): pass

@pytest.mark.limits(quota_window_num=5)
def test_static(turnstile): pass

@pytest.mark.quota("ip=127.1.0.1", producer_byte_rate=5)
def test_key(turnstile): pass

@pytest.mark.quota("client-id=app", producer_byte_rat=5)
def test_mistyped(turnstile): pass
"""
SENTENCES = (
    "@pytest.mark.limits(per_ip='many'): per_ip cannot be 'many': it must be a whole number from 0 to 4294967295.",
    "@pytest.mark.limits(per_ipp=5): per_ipp is not a setting; did you mean per_ip?",
    "@pytest.mark.limits(quota_window_num=5): quota_window_num can't change while the cluster runs; give it to the cluster: "
    "limits in the fixture turnstile_options.",
    "@pytest.mark.quota('ip=127.1.0.1', producer_byte_rate=5): producer_byte_rate is not a quota of ip; an ip has "
    "connection_creation_rate.",
    "@pytest.mark.quota('client-id=app', producer_byte_rat=5): producer_byte_rat is not a quota of client-id; did you mean "
    "producer_byte_rate?",
)


def test_marks_that_cannot_be_end_the_run_before_it_begins_with_a_sentence_each(tmp_path: Path) -> None:
    done = run(tmp_path, WRONG, "-p", "no:randomly")
    assert done.returncode == pytest.ExitCode.USAGE_ERROR
    lines = [line.partition("::")[2].partition(": ")[2] for line in done.stderr.strip().splitlines()]
    assert tuple(lines) == SENTENCES, done.stdout + done.stderr


def test_in_a_worker_of_xdist_the_test_with_the_mark_fails_by_that_sentence(tmp_path: Path) -> None:
    pytest.importorskip("xdist")
    done = run(tmp_path, WRONG, "-n", "1", "-p", "no:randomly")
    assert done.returncode == pytest.ExitCode.TESTS_FAILED
    assert all(f"\n{sentence}\n" in done.stdout for sentence in SENTENCES), done.stdout
    assert "Traceback" not in done.stdout and "INTERNALERROR" not in done.stdout


def test_a_mark_that_this_cluster_will_not_have_is_one_sentence(tmp_path: Path) -> None:
    mark = "@pytest.mark.limits({'listener.name.edge.max.connections': 5})"
    done = run(tmp_path, f"{mark}\ndef test_it(turnstile): pass\n")
    assert f"\n{mark}: listener.name.edge.max.connections names no listener of this cluster" in done.stdout
    assert "Traceback" not in done.stdout and ">" not in done.stdout.partition("ERRORS")[2].partition("short test")[0]


def test_a_failed_test_is_told_how_much_of_its_rate_passes_at_once(tmp_path: Path) -> None:
    suite = """
@pytest.mark.quota("ip=127.1.0.1", connection_creation_rate=2)
def test_it(turnstile):
    assert admitted(turnstile, 20) == 2
"""
    done = run(tmp_path, suite)
    assert (
        "note: ip=127.1.0.1: after a pause 20 connections pass at once before connection_creation_rate=2" in done.stdout
    )


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
    done = run(tmp_path, suite, "-n", "2")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "40 passed" in done.stdout
    assert len({path.read_text() for path in tmp_path.glob("*.port")}) == len(list(tmp_path.glob("*.port"))) > 1
    assert left_behind(tmp_path) == []


def test_a_failure_says_that_journal_events_were_dropped(tmp_path: Path) -> None:
    suite = """
def test_fails(turnstile, tmp_path):
    import shutil, time
    from pathlib import Path
    spool = Path(turnstile.admin.get("/v1/cluster")["data_dir"], "journal", "spool")
    shutil.rmtree(spool)
    spool.touch()
    deadline = time.monotonic() + 20
    while turnstile.admin.get("/v1/live")["journal"]["events_dropped"] < 10 and time.monotonic() < deadline:
        admitted(turnstile, 3)
    assert False
"""
    done = run(tmp_path, suite)
    assert re.search(r"^journal: [\d,]+ events dropped since the start, and more are", done.stdout, re.MULTILINE), (
        done.stdout
    )
