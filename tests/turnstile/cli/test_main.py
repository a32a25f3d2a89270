"""The command as a whole: what every subcommand has in common."""

import ast
import fcntl
import json
import os
import re
import signal
import socket
import subprocess
import sys
from importlib import import_module
from importlib.metadata import version
from pathlib import Path

import pytest

from tests.support.harness import until
from turnstile.cli.main import COMMANDS
from turnstile.cli.output import CommandFailed
from turnstile.cli.param_type import ParamType
from turnstile.cli.spark_job import failing_in_one_sentence, write_page

ROOT = Path(__file__).parents[3]
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


def test_the_version_is_the_distributions_with_the_commit_of_the_checkout():
    head = subprocess.run(
        ["git", "rev-parse", "HEAD"], cwd=Path(__file__).parent, capture_output=True, text=True, check=True
    )
    assert run("--version").stdout.startswith(
        f"turnstile, version {version('turnstile-kafka')} (commit {head.stdout[:12]}"
    )


def test_nothing_of_a_checkout_is_told_to_who_has_the_package():
    """Helps and messages name commands of the package; a docstring of a module is for who reads the code."""
    paths = (path for package in ("turnstile", "broker", "shards") for path in (ROOT / package).rglob("*.py"))
    told = {path: list(texts_of(path)) for path in paths}
    wrong = re.compile(r"\bmake (setup|demo|test|dist|image|docs|lint)\b|\bscripts/|\bdocs/|\.venv")
    assert [(str(path), text) for path, texts in told.items() for text in texts if wrong.search(text)] == []


def texts_of(path):
    """The texts of a module that can be shown: all but its docstrings, and those of click's commands."""
    tree = ast.parse(path.read_text())
    silent = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            shows = any(
                "command" in ast.unparse(each) or "group" in ast.unparse(each)
                for each in getattr(node, "decorator_list", ())
            )
            silent |= {each.value for each in node.body if isinstance(each, ast.Expr) and not shows}
    yield from (
        node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and node not in silent
    )


def test_types_of_options_need_no_release_of_click_that_has_them():
    for name in ("up", "load", "plan", "spark_job"):
        source = Path(import_module(f"turnstile.cli.{name}").__file__).read_text()
        assert "(click.ParamType" not in source and ParamType[int] is ParamType


def test_every_command_has_help_that_names_it():
    listed = run("--help").stdout
    for name in COMMANDS:
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


@pytest.mark.parametrize("words", ["presets", "--help", "up --help", "config --help", "--version"])
def test_output_that_a_pipe_does_not_take_ends_a_command_with_2_and_no_word(words):
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "wb") as closed:
        ended = subprocess.run([*PROGRAM, *words.split()], stdout=closed, stderr=subprocess.PIPE, timeout=60)
    assert (ended.returncode, ended.stderr) == (2, b"")


@pytest.mark.parametrize(
    ("words", "full", "code"),
    [
        ("presets", "stdout", 2),
        ("audit nowhere --json", "stdout", 2),
        ("quota list --json --admin 127.0.0.1:1", "stdout", 1),
        ("audit nowhere", "stderr", 2),
        ("quota list --admin 127.0.0.1:1", "stderr", 1),
    ],
)
def test_a_full_disk_ends_a_command_with_its_exit_code_and_no_traceback(words, full, code):
    with open("/dev/full", "wb") as disk:
        streams = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, full: disk}
        ended = subprocess.run([*PROGRAM, *words.split()], **streams, timeout=60)
    said = b"" if full == "stderr" else b"turnstile: the output can't be written: No space left on device\n"
    assert (ended.returncode, ended.stdout or b"", ended.stderr or b"") == (code, b"", said)


def test_a_page_that_can_not_be_written_is_named():
    with (
        pytest.raises(CommandFailed, match=r"^/dev/full: can't be written: No space left on device$"),
        failing_in_one_sentence(),
    ):
        write_page("a page", "/dev/full", None)


ENTRY = [sys.executable, "-c", "from turnstile.entry import main; main()"]
AT_FIRST_IMPORT = """
import builtins, os, signal, sys
from turnstile.entry import main
real = builtins.__import__
def interrupted(name, *rest, **more):
    module = real(name, *rest, **more)
    if name == {last!r}:
        builtins.__import__ = real
        os.kill(os.getpid(), signal.SIGINT)
    return module
builtins.__import__ = interrupted
sys.argv = ["turnstile", *{words!r}]
main()
"""


@pytest.mark.parametrize(
    ("last", "words"),
    [
        ("click", ["status"]),
        ("shards.settings.errors", ["config", "list"]),
        ("turnstile.admin_client", ["quota", "list"]),
        ("rich.console", ["load", "--list"]),
        ("broker.process", ["up", "--port", "0", "--admin-port", "0"]),
        ("shards.config.setting_changes", ["up", "--port", "0", "--admin-port", "0"]),
    ],
)
def test_ctrl_c_during_an_import_is_the_same_quiet_line(last, words, tmp_path):
    program = AT_FIRST_IMPORT.format(last=last, words=words)
    ended = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "TMPDIR": str(tmp_path), "TURNSTILE_ADMIN": "127.0.0.1:1"},
        capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    assert (ended.returncode, ended.stdout, ended.stderr.strip()) == (130, "", "turnstile: interrupted")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("command", ["up", "demo", "logs"])
def test_an_empty_data_dir_is_not_the_current_folder(command, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    ended = run(command, "--data-dir", "")
    assert ended.returncode == 2 and "Invalid value for '--data-dir': it is empty" in ended.stderr
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("words", [["up"], ["up", "--detach"]])
def test_ctrl_c_while_a_cluster_starts_leaves_none(words, tmp_path):
    data = tmp_path / "data"
    options = ["--port", "0", "--admin-port", "0", "--data-dir", str(data), "--shards", "8"]
    starting = subprocess.Popen(
        [*ENTRY, *words, *options], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    until((data / "epoch").exists, what="the first fork")
    os.killpg(starting.pid, signal.SIGINT)
    out, err = starting.communicate(timeout=30)
    assert (starting.returncode, err.strip().removeprefix("stopped before it was up\n")) == (
        130,
        "turnstile: interrupted",
    )
    assert out == ""
    lock = os.open(data / "lock", os.O_RDWR)
    fcntl.flock(lock, fcntl.LOCK_EX)  # as soon as the last process has ended
    os.close(lock)


@pytest.mark.parametrize(
    ("words", "meant"),
    [(["confg"], "config"), (["config", "gett"], "get"), (["quota", "sett"], "set"), (["fault", "remov"], "remove")],
)
def test_a_mistyped_command_is_answered_with_the_one_that_was_meant(words, meant):
    wrong = run(*words)
    assert wrong.returncode == 2
    assert f"No such command '{words[-1]}'; did you mean {meant}?" in wrong.stderr
