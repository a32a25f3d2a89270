"""`turnstile replay` as a command: a file, standard input, the exit code."""

from pathlib import Path

from click.testing import CliRunner

from turnstile.cli.replay import replay

CONNECT = '{"at":0,"do":"connect","id":"a","ip":"10.0.0.1"}\n'
ANSWER = '{"id":"a","outcome":"admitted","at":0,"reason":null}\n'


def test_a_file_is_answered(tmp_path: Path) -> None:
    path = tmp_path / "scenario.jsonl"
    path.write_text(CONNECT)
    result = CliRunner().invoke(replay, [str(path)])
    assert (result.exit_code, result.stdout) == (0, ANSWER)


def test_a_dash_is_standard_input() -> None:
    result = CliRunner().invoke(replay, ["-"], input=CONNECT)
    assert (result.exit_code, result.stdout) == (0, ANSWER)


def test_a_line_that_cannot_be_read_is_named_and_ends_with_2() -> None:
    result = CliRunner().invoke(replay, ["-"], input=CONNECT + "oops\n")
    assert (result.exit_code, result.stdout) == (2, ANSWER)
    assert result.stderr == "<stdin>:2: it is not JSON: Expecting value at column 1\n"


def test_a_file_that_is_not_there_is_wrong_usage() -> None:
    result = CliRunner().invoke(replay, ["nowhere.jsonl"])
    assert result.exit_code == 2
    assert "does not exist" in result.stderr
