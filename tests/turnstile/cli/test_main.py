"""The command as a whole: what every subcommand has in common."""

import json
import os
import signal
import socket
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

from turnstile.cli.param_type import ParamType

PROGRAM = [sys.executable, "-c", "from turnstile.cli.main import main; main()"]


def run(*arguments, **environment):
    return subprocess.run(
        [*PROGRAM, *arguments], env={**os.environ, **environment}, capture_output=True, text=True, timeout=60
    )


@pytest.mark.parametrize("words", [("config", "list"), ("top", "--json"), ("status",), ("quota", "list", "--json")])
def test_ctrl_c_is_one_quiet_line(words):
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        command = subprocess.Popen(
            [*PROGRAM, *words, "--admin", url], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        connection, _ = silent.accept()
        with connection:
            connection.recv(1)  # it has asked, and waits for an answer
            command.send_signal(signal.SIGINT)
            out, err = command.communicate(timeout=20)
    assert (command.returncode, out, err.strip()) == (130, "", "turnstile: interrupted")


def test_the_version_is_the_distributions():
    assert run("--version").stdout.startswith("turnstile, version 0.")


def test_types_of_options_need_no_release_of_click_that_has_them():
    for name in ("up", "load", "plan", "spark_job"):
        source = Path(import_module(f"turnstile.cli.{name}").__file__).read_text()
        assert "(click.ParamType" not in source and ParamType[int] is ParamType


def test_every_command_has_help_that_names_it():
    listed = run("--help").stdout
    for name in ("up", "config", "quota", "user", "top", "down", "status", "load", "replay", "audit", "report", "plan"):
        assert f"\n  {name} " in listed
        shown = run(name, "--help")
        assert shown.returncode == 0 and f"Usage: turnstile {name}" in shown.stdout


def test_a_command_that_is_none_is_wrong_usage():
    wrong = run("sttaus")
    assert wrong.returncode == 2 and "No such command" in wrong.stderr


def test_wrong_usage_is_json_where_json_was_asked_for(tmp_path):
    (tmp_path / "broker.py").write_text("raise SystemExit('a module of the user')")
    wrong = run("up", "--shards", "0", "--json", PYTHONPATH=str(tmp_path))
    assert (wrong.returncode, wrong.stderr) == (2, "")
    assert json.loads(wrong.stdout) == {"error": "Invalid value for '--shards': 0 is not in the range 1<=x<=64."}


@pytest.mark.parametrize("command", ["audit", "report"])
def test_a_journal_that_is_not_there_is_wrong_usage_and_no_verdict(command, tmp_path):
    missing = run(command, str(tmp_path / "nowhere"))
    assert (missing.returncode, missing.stdout) == (2, "")
    assert missing.stderr == f"There is no journal at {tmp_path / 'nowhere'}.\n"
    as_json = run(command, str(tmp_path / "nowhere"), "--json")
    assert (as_json.returncode, as_json.stderr) == (2, "")
    assert json.loads(as_json.stdout) == {"error": f"There is no journal at {tmp_path / 'nowhere'}."}
