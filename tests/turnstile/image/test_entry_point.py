"""The image's entry point: the command line that it makes, and its note of the admin API for the health check."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest

import turnstile.health
from turnstile.image.__main__ import _command


@pytest.fixture
def note(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the entry point notes the admin API; the environment names no temporary folder."""
    monkeypatch.setattr(turnstile.health, "NOTED", str(tmp_path / "note"))
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    return tmp_path / "note"


def noted(note: Path) -> tuple[str, str]:
    host, port, _ = note.read_text().split()
    return host, port


@pytest.mark.parametrize(
    ("variables", "arguments", "address"),
    [
        ({}, [], ("127.0.0.1", "9644")),
        ({"TURNSTILE_UP_ADMIN_PORT": "7001", "TURNSTILE_UP_ADMIN_HOST": "127.0.0.5"}, [], ("127.0.0.5", "7001")),
        ({"TURNSTILE_UP_ADMIN_PORT": "7001"}, ["--admin-port", "7002"], ("127.0.0.1", "7002")),
        ({"TURNSTILE_ADMIN_TOKEN": "a-secret-of-24-characters"}, ["--admin-port=7003"], ("0.0.0.0", "7003")),
    ],
)
def test_the_health_check_finds_the_admin_api_by_the_command_line_or_its_variables(
    note: Path,
    monkeypatch: pytest.MonkeyPatch,
    variables: dict[str, str],
    arguments: list[str],
    address: tuple[str, str],
) -> None:
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    _command(arguments)
    assert noted(note) == address


@pytest.mark.parametrize("spelled", ["option", "option with =", "variable"])
def test_a_file_that_the_command_line_names_goes_before_the_images_defaults(
    note: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, spelled: str
) -> None:
    named = tmp_path / "own.toml"
    named.write_text("[cluster]\nport = 19092\nadmin_port = 19644\nshards = 3\n")
    if spelled == "variable":
        monkeypatch.setenv("TURNSTILE_UP_CONFIG", str(named))
    words = {"option": ["--config", str(named)], "option with =": [f"--config={named}"], "variable": []}[spelled]
    made = list(pairwise(_command(words)))
    assert not {"--port", "--admin-port", "--shards"} & {option for option, _ in made}
    assert ("--host", "0.0.0.0") in made
    assert noted(note)[1] == "19644"


def test_a_file_that_is_not_there_ends_the_container_with_2(
    note: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        _command(["--config", str(tmp_path / "none.toml")])
    assert ended.value.code == 2
    assert capsys.readouterr().err == f"turnstile: {tmp_path / 'none.toml'}: No such file or directory\n"
