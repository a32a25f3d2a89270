"""`turnstile verdict` at its edges: what is wrong is said before a cluster is started, and nothing is left of a course."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from click.testing import CliRunner
from courses import throttled
from harness import TURNSTILE, until

from turnstile.cli import verdict as module
from turnstile.verdict.judge import judge
from turnstile.verdict.run import Verdict

CLIENT = str(Path(__file__).parents[1] / "verdict" / "clients" / "client.py")


def no_cluster(*arguments, **options):
    raise AssertionError("a cluster was started")


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--topic", "orders:many", "--", "true"], "'orders:many' is not a topic, such as orders or orders:6"),
        (["--user", "alice", "--", "true"], "'alice' is not NAME=PASSWORD"),
        (["--html", "/no/such/folder/page.html", "--", "true"], "can't be written: No such file or directory"),
        (["--", "/no/such/program", "{bootstrap}"], "/no/such/program is not a command that can be run"),
        (["--checks", "", "--", "true"], "'' is not a check"),
        (["--request-timeout", "nan", "--", "true"], "nan is not a number of seconds"),
        (["--request-timeout", "inf", "--", "true"], "inf is not in the range"),
    ],
)
def test_what_is_wrong_is_said_before_a_cluster_is_started(words, sentence, monkeypatch):
    monkeypatch.setattr("turnstile.cluster.ClusterProcess", no_cluster)
    done = CliRunner().invoke(module.verdict, words)
    assert done.exit_code == 2 and sentence in done.output


@pytest.fixture
def judged(monkeypatch):
    """The command finds that a client failed kip219, without a cluster; `judged(client)` names that client's command."""

    def judged(client="client"):
        seen = throttled()
        for number in range(3):
            seen.event("early", 4.2 + number / 2, took_ms=200)
        found = Verdict(client, judge(seen.timeline(), ["kip219"]), seen.timeline(), "")
        monkeypatch.setattr("turnstile.verdict.run.run", lambda *arguments, **named: found)

    monkeypatch.setattr("turnstile.verdict.running.RunningCluster.__init__", lambda self, admin: None)
    monkeypatch.setattr("turnstile.verdict.running.RunningCluster.journal", None, raising=False)
    judged()
    return judged


def test_a_page_that_cannot_be_written_costs_no_verdict(judged):
    done = CliRunner().invoke(module.verdict, ["--attach", "client-id=app", "--html", "/dev/full"])
    assert done.exit_code == 2 and "1 fail" in done.output
    assert "/dev/full can't be written: No space left on device" in done.output


def test_a_page_of_a_command_that_is_no_utf_8(judged, tmp_path):
    judged("client \udcff")
    done = CliRunner().invoke(module.verdict, ["--attach", "client-id=app", "--html", str(tmp_path / "page.html")])
    assert done.exit_code == 1 and "client ?" in (tmp_path / "page.html").read_text()


@pytest.mark.parametrize("options", [[], ["--json"]])
def test_the_exit_code_stays_when_discard(options, judged, monkeypatch):
    def closed(*arguments, **named):
        raise BrokenPipeError

    descriptors = []
    monkeypatch.setattr(module, "show_json", closed)
    monkeypatch.setattr(module, "_show", closed)
    monkeypatch.setattr(module, "discard", descriptors.append)
    done = CliRunner().invoke(module.verdict, ["--attach", "client-id=app", *options])
    assert (done.exit_code, descriptors) == (1, [1])


INT, TERM, HUP = signal.SIGINT, signal.SIGTERM, signal.SIGHUP


@pytest.mark.parametrize(
    ("phase", "signals"), [("waiting for the client", [HUP]), ("copies cut at one instant", [INT, INT, TERM])]
)
def test_however_it_is_ended_nothing_is_left(phase, signals, tmp_path):
    environment = {**os.environ, "TMPDIR": str(tmp_path), "MARK": str(tmp_path)}
    command = [
        TURNSTILE,
        "verdict",
        "--quick",
        "--checks",
        "herd",
        "--topic",
        "orders",
        "--",
        sys.executable,
        CLIENT,
        "good",
    ]
    with subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        assert any(phase in line for line in process.stderr)
        for each in signals:
            process.send_signal(each)
            time.sleep(0.02)  # long enough that the next comes while the first unwinds
        said = process.stderr.read()
    assert process.returncode == 130 and said.endswith("turnstile: interrupted\n")
    until(lambda: not left(f"MARK={tmp_path}"), what="the end of all processes")
    assert list(tmp_path.iterdir()) == []


def left(variable):
    """The processes that have inherited a variable of the environment."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if variable.encode() in (process / "environ").read_bytes().split(b"\0"):
                found.append(process.name)
        except OSError:
            continue
    return found
