"""`turnstile init`: what it writes is what `turnstile up --config` takes, its examples too, and nothing is written over."""

import re
import subprocess
import tomllib
from pathlib import Path

import harness
import pytest

from shards.config.setting_changes import static_settings
from shards.settings.config_def import LIMITS
from turnstile.cli import config_file
from turnstile.cli.init import content

OWN = ("turnstile.",)
"""Prefix of settings that are for those who compare Kafka's behaviours."""


def init(folder: Path, *arguments: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [harness.TURNSTILE, "init", *arguments], cwd=folder, capture_output=True, text=True, timeout=30
    )


def test_a_cluster_starts_from_it(tmp_path: Path) -> None:
    done = init(tmp_path)
    assert done.returncode == 0 and "turnstile up --config turnstile.toml" in done.stdout
    with harness.running(tmp_path / "data", "--config", str(tmp_path / "turnstile.toml")) as cluster:
        assert cluster.get("/v1/cluster")["topics"] == {"orders": 6}
        assert cluster.get("/v1/cluster_config?include_defaults=false")["kafka_connections_max_per_ip"] == 50


def test_its_examples_are_settings_as_well(tmp_path: Path) -> None:
    written = content(Path("turnstile.toml"))
    examples = tmp_path / "turnstile.toml"
    examples.write_text(re.sub(r"^#(?=\S)", "", written, flags=re.MULTILINE))
    found = config_file.read(examples)
    static_settings(found.settings)
    assert not found.ignored and len(found.quotas) == 2 and found.cluster["name"] == "orders"
    assert {name for name, _ in found.settings} >= {name for name in LIMITS if not name.startswith(OWN)}
    assert tomllib.loads(written)["limits"] == {"kafka_connections_max_per_ip": 50}


@pytest.mark.parametrize(("arguments", "code", "kept"), [((), 1, True), (("--force",), 0, False)])
def test_a_file_is_written_over_only_by_force(
    tmp_path: Path, arguments: tuple[str, ...], code: int, kept: bool
) -> None:
    (tmp_path / "turnstile.toml").write_text("mine\n")
    done = init(tmp_path, *arguments)
    assert done.returncode == code, done.stderr
    assert ((tmp_path / "turnstile.toml").read_text() == "mine\n") is kept
    assert ("--force" in done.stderr) is kept


def test_a_place_that_can_not_be_written_is_one_sentence(tmp_path: Path) -> None:
    done = init(tmp_path, "nowhere/turnstile.toml")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == "nowhere/turnstile.toml can't be written: No such file or directory\n"


def test_a_name_with_spaces_is_quoted_and_one_with_line_ends_stays_in_the_comment(tmp_path: Path) -> None:
    assert "turnstile up --config 'my cluster.toml'" in init(tmp_path, "my cluster.toml").stdout
    assert "\x1b" not in init(tmp_path, "red\x1b[31m.toml").stdout
    assert tomllib.loads(content(Path("a\nbrokers = 64\n.toml"))) == tomllib.loads(content(Path("turnstile.toml")))
