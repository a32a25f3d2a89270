"""`turnstile verdict` at its edges: what is wrong is said before a cluster is started, and nothing is left of a course."""

import os
import signal
import subprocess
import sys
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
        (["--", "/no/such/program", "{bootstrap}"], "/no/such/program is no command that can be run"),
    ],
)
def test_what_is_wrong_is_said_before_a_cluster_is_started(words, sentence, monkeypatch):
    monkeypatch.setattr("turnstile.cluster.ClusterProcess", no_cluster)
    done = CliRunner().invoke(module.verdict, words)
    assert done.exit_code == 2 and sentence in done.output


@pytest.mark.parametrize("options", [[], ["--json"]])
def test_the_exit_code_stays_when_nobody_reads(options, monkeypatch):
    def closed(*arguments, **named):
        raise BrokenPipeError

    seen = throttled()
    for number in range(3):
        seen.event("early", 4.2 + number / 2, took_ms=200)
    found = Verdict("client", judge(seen.timeline(), ["kip219"]), seen.timeline(), "")
    descriptors = []
    monkeypatch.setattr("turnstile.verdict.run.run", lambda *arguments, **named: found)
    monkeypatch.setattr("turnstile.verdict.running.RunningCluster.__init__", lambda self, admin: None)
    monkeypatch.setattr("turnstile.verdict.running.RunningCluster.journal", None, raising=False)
    monkeypatch.setattr(module, "show_json", closed)
    monkeypatch.setattr(module, "_show", closed)
    monkeypatch.setattr(module, "nobody_reads", descriptors.append)
    done = CliRunner().invoke(module.verdict, ["--attach", "client-id=app", *options])
    assert (done.exit_code, descriptors) == (1, [1])


@pytest.mark.parametrize("phase", ["waiting for the client", "copies cut at one instant"])
def test_ctrl_c_leaves_nothing(phase, tmp_path):
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
        process.send_signal(signal.SIGINT)
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
