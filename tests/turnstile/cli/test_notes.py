"""What a change's answer says beside that it is in force, and refusals that name what there is."""

import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from tests.support.harness import TURNSTILE, Cluster, running
from turnstile.cli.main import main

CAP = "kafka_connections_max_per_ip"


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with running(tmp_path_factory.mktemp("notes") / "data", shards=1) as cluster:
        yield cluster


def test_a_cap_that_locks_everybody_out_is_said_with_a_command_that_lets_them_in(cluster: Cluster) -> None:
    for dry_run in (["--dry-run"], []):
        said = cluster.turnstile("config", "set", CAP, "0", *dry_run)
        note = f"note: {CAP}=0 refuses every connection; to let them in: turnstile config set {CAP} 100 --admin {cluster.admin}"
        assert note in said.splitlines()
    command = note.partition("turnstile ")[2].split()
    assert subprocess.run([TURNSTILE, *command], capture_output=True, timeout=60).returncode == 0
    assert cluster.get("/v1/notes") == {"notes": []}
    assert "note" not in cluster.turnstile("config", "set", CAP, "5")
    cluster.unset(CAP)


def test_a_change_for_all_brokers_names_those_that_keep_a_value_of_their_own(tmp_path: Path) -> None:
    with running(tmp_path / "data", shards=1, brokers=3) as cluster:
        cluster.turnstile("config", "set", CAP, "20", "--broker", "1")
        assert "keeps" not in cluster.turnstile("config", "set", CAP, "30", "--broker", "2")
        notes = [f"note: broker {broker} keeps its own value {value} of {CAP}" for broker, value in ((1, 20), (2, 30))]
        for words in (
            ["set", CAP, "50", "--dry-run"],
            ["set", CAP, "50"],
            ["set", "--observe", CAP, "10"],
            ["unset", CAP],
        ):
            said = cluster.turnstile("config", *words).splitlines()
            assert [line for line in said if "keeps" in line] == notes
        held = [cluster.told("config", "get", CAP, "--broker", str(broker))[CAP] for broker in range(3)]
        assert held == [None, 20, 30]
        assert "keeps" not in cluster.turnstile("config", "set", "max.connections", "50")


def test_a_rate_is_set_with_the_burst_that_passes_first(cluster: Cluster) -> None:
    for words in (
        ["quota", "set", "ip=127.1.0.1", "connection_creation_rate=2"],
        ["config", "set", "max.connection.creation.rate", "2"],
    ):
        said = cluster.turnstile(*words)
        assert "after a pause 20 connections pass at once before " in said
        assert "`turnstile up --set quota.window.num=2` lets 2 pass." in said
    told = cluster.told("explain", "ip=127.1.0.1")["brokers"][0]["rates"]
    assert {(rate["of"], rate["value"], rate["burst"], rate["used"]) for rate in told} >= {
        ("ip", 2, 20, 0),
        ("broker", 2, 20, 0),
    }
    row = next(
        line for line in cluster.turnstile("explain", "ip=127.1.0.1").splitlines() if "new connections of 127" in line
    )
    assert "0/s of 2/s (0 %); 20 at once after a pause" in row
    cluster.turnstile("quota", "unset", "ip=127.1.0.1")
    cluster.unset("max.connection.creation.rate")


def test_a_quota_of_a_user_is_set_with_a_word_where_nobody_logs_in(cluster: Cluster, tmp_path: Path) -> None:
    said = cluster.turnstile("quota", "set", "user=alice", "producer_byte_rate=50000000")
    assert "note: the quota of user=alice limits no client: no listener asks for a login" in said
    assert any(
        note.startswith("the quota of user=alice limits no client") for note in cluster.get("/v1/notes")["notes"]
    )
    for reached in ("user=ANONYMOUS", "user=<default>", "client-id=app"):
        assert "no login" not in cluster.turnstile("quota", "set", reached, "producer_byte_rate=50000000")
        cluster.turnstile("quota", "unset", reached)
    assert "no login" not in cluster.turnstile("quota", "unset", "user=alice")
    with running(tmp_path / "data", "--listener", "SASL=127.0.0.1:0,sasl", shards=1) as with_login:
        assert "no login" not in with_login.turnstile("quota", "set", "user=alice", "producer_byte_rate=50000000")


def test_a_cap_of_users_is_set_with_a_word_where_nobody_logs_in(cluster: Cluster) -> None:
    name = "turnstile.max.connections.per.user"
    said = cluster.turnstile("config", "set", name, "3")
    assert f"note: {name} limits no client: no listener asks for a login" in said
    assert any(note.startswith(f"{name} limits no client") for note in cluster.get("/v1/notes")["notes"])
    tls = cluster.turnstile("config", "set", "turnstile.max.ssl.connections", "3", "--dry-run")
    assert "turnstile.max.ssl.connections limits no client: no listener has TLS" in tls
    assert "no login" not in cluster.turnstile("config", "unset", name)
    assert not any(note.startswith(name) for note in cluster.get("/v1/notes")["notes"])


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ("quota set ip=127.1.0.1 producer_byte_rate=5",
         "producer_byte_rate is a quota of users and client ids; an ip has connection_creation_rate."),
        ("quota set user=alice connection_creation_rate=5", "connection_creation_rate is a quota of an ip; users and client ids "
         "have producer_byte_rate, consumer_byte_rate, request_percentage, controller_mutation_rate."),
        ("quota set user=alice producer_byte_rat=5", "producer_byte_rat is not a quota; did you mean producer_byte_rate?"),
    ],
)  # fmt: skip
def test_a_quota_that_an_entity_has_not_is_answered_with_those_it_has(
    cluster: Cluster, words: str, sentence: str
) -> None:
    assert cluster.turnstile(*words.split(), expect=1).strip() == sentence


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ("error", "--error is missing: a fault of kind error needs it, such as REQUEST_TIMED_OUT."),
        ("delay", "--delay-ms is missing: a fault of kind delay needs it, in milliseconds."),
        ("delay --delay-ms 5 --reset", "--reset is for faults of kind disconnect, and this is a delay."),
        ("disconnect --once --times 4", "--times can't be together with --once: a fault has one trigger at most."),
        ("error --error REQUEST_TIMED_OU", "--error cannot be 'REQUEST_TIMED_OU': it is not an error of Kafka; did you mean "
         "REQUEST_TIMED_OUT?"),
    ],
)  # fmt: skip
def test_a_wrong_fault_is_answered_by_the_names_of_options(cluster: Cluster, words: str, sentence: str) -> None:
    said = cluster.turnstile("fault", "add", *words.split(), expect=2)
    assert said.splitlines()[-1] == f"Error: {sentence}"


@pytest.mark.parametrize(
    ("words", "code", "sentence"),
    [
        ("user remove nobody", 1, "there is no user 'nobody'; users: there is none."),
        ("fault remove slow", 1, "there is no fault 'slow'; faults: none is set."),
        ("quota set usr=a producer_byte_rate=1", 2, "Error: 'usr=a' is not an entity; did you mean user?"),
        ("quota set user= producer_byte_rate=1", 2,
         "Error: user= has no name; user=<default> is every user without a quota of its own"),
        ("quota set ip=10.0.0.1 user=a connection_creation_rate=1", 2,
         "Error: an entity with ip= has neither user= nor client-id="),
        ("explain usr=a", 2, "Error: 'usr=a' is not ip=..., user=..., client-id=...; did you mean user?"),
        ("fault add error --error NONE", 2, "Error: --error cannot be 'NONE': it is not an error of Kafka."),
    ],
)  # fmt: skip
def test_a_mistake_is_answered_with_what_there_is(cluster: Cluster, words: str, code: int, sentence: str) -> None:
    assert cluster.turnstile(*words.split(), expect=code).splitlines()[-1] == sentence


def test_the_list_of_scenarios_fits_a_terminal(tmp_path: Path) -> None:
    listed = subprocess.run([TURNSTILE, "load", "--list"], capture_output=True, text=True, timeout=60).stdout
    assert "noisy-producer" in listed and max(map(len, listed.splitlines())) <= 80


def test_a_mistyped_scenario_is_answered_with_the_one_that_was_meant() -> None:
    wrong = subprocess.run([TURNSTILE, "load", "--scenario", "nta"], capture_output=True, text=True, timeout=60)
    assert (wrong.returncode, wrong.stderr.splitlines()[-1]) == (
        2,
        "Error: There is no scenario 'nta': did you mean nat?",
    )


def test_a_byte_rate_below_what_one_fetch_brings_is_said(cluster: Cluster) -> None:
    said = cluster.turnstile("quota", "set", "client-id=slow", "consumer_byte_rate=20000")
    assert "note: client-id=slow: as in Kafka, a batch of more than 200,000 bytes is never delivered" in said
    assert "never delivered" not in cluster.turnstile("quota", "set", "client-id=slow", "consumer_byte_rate=200000")
    cluster.turnstile("quota", "unset", "client-id=slow")


COMMANDS = (
    "config get num.partitions", "config list", "config export", "config set num.partitions 2", "config unset num.partitions",
    "config history", "quota list", "quota set user=a producer_byte_rate=5", "quota unset user=a", "quota explain user=a",
    "explain ip=127.1.0.1", "user list", "user add a --password b", "user remove a", "fault list", "fault add blackhole",
    "fault remove --all", "telemetry", "telemetry abc", "status", "down", "top --once",
)  # fmt: skip


@pytest.mark.parametrize("answer", [b'{"hello": 1}', b"[]", b"<html>"])
def test_another_program_at_the_address_is_one_sentence_of_each_command(
    answer: bytes, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """By the command's entry, in this process: its start costs more than what is asked here, 66 times."""

    class Other(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()
            self.wfile.write(answer)

        do_PUT = do_POST = do_GET

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Other) as server:
        serving = threading.Thread(target=server.serve_forever, args=(0.01,))
        serving.start()
        url = f"http://127.0.0.1:{server.server_port}"
        try:
            for words in COMMANDS:
                monkeypatch.setattr(sys, "argv", [TURNSTILE, *words.split(), "--admin", url])
                with pytest.raises(SystemExit) as ended:
                    main()
                said = capsys.readouterr().err
                assert ended.value.code == 1, words
                assert f"{url} is not an admin API of Turnstile" in said and "Traceback" not in said, words
        finally:
            server.shutdown()
            serving.join()
