"""Completion as a shell asks for it, by click's own classes."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from click.shell_completion import ShellComplete
from click.testing import CliRunner

from tests.support.harness import Cluster, running
from turnstile.cli.completion import completion
from turnstile.cli.main import turnstile


def completed(line: str) -> list[str]:
    """The words for the last one of a line; "" after a space."""
    *before, last = line.split(" ")
    shell = ShellComplete(turnstile, {}, "turnstile", "_TURNSTILE_COMPLETE")
    return [item.value for item in shell.get_completions(before, last)]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("conf", ["config"]),
        ("dem", ["demo"]),
        ("in", ["init"]),
        ("lo", ["logs", "load"]),
        ("res", ["restart"]),
        ("topic ", ["create", "list"]),
        ("logs --f", ["--follow"]),
        ("config se", ["set"]),
        ("config set kafka_connections_max_p", ["kafka_connections_max_per_ip"]),
        ("config set turnstile.log.level DE", ["DEBUG"]),
        ("config get num.part", ["num.partitions"]),
        ("up --set kafka_connections_max_o", ["kafka_connections_max_overrides"]),
        ("load --scenario noisy", ["noisy-neighbour", "noisy-producer"]),
        ("fault add dis", ["disconnect"]),
        ("fault add error --error not_leader", ["NOT_LEADER_OR_FOLLOWER"]),
        ("fault add error --api Produce,Fet", ["Produce,Fetch"]),
        ("quota set us", ["user=", "user=<default>"]),
        ("quota set ip=10.0.0.1 ", ["connection_creation_rate="]),
        ("quota set user=alice prod", ["producer_byte_rate="]),
        ("explain i", ["ip=", "ip=<default>"]),
        ("config set listeners", []),
    ],
)
def test_names_are_completed(line: str, expected: list[str]) -> None:
    assert completed(line) == expected


def test_bash_completes_by_the_script_that_is_printed() -> None:
    """A real bash: the script is sourced, and its function called as for a line that is being typed."""
    bin_dir = Path(sys.executable).parent
    script = (
        "source <(turnstile completion bash); COMP_WORDS=(turnstile config set kafka_connections_max_per_i); COMP_CWORD=3; "
        "_turnstile_completion turnstile; echo ${COMPREPLY[@]}"
    )
    environment = {**os.environ, "PATH": f"{bin_dir}:{os.environ['PATH']}"}
    done = subprocess.run(["bash", "-c", script], env=environment, capture_output=True, text=True, timeout=60)
    assert (done.stdout, done.stderr) == ("kafka_connections_max_per_ip\n", "")


@pytest.mark.parametrize(
    ("arguments", "own", "code", "said"),
    [
        (["fish"], "", 0, "complete --no-files --command turnstile"),
        (["zsh"], "", 0, "#compdef turnstile"),
        ([], "/usr/bin/zsh", 0, "#compdef turnstile"),
        ([], "/bin/tcsh", 2, "which shell is it for? bash, zsh, fish"),
        (["ksh"], "", 2, "'ksh' is not one of 'bash', 'zsh', 'fish'"),
    ],
)
def test_the_script_is_that_of_the_shell(arguments: list[str], own: str, code: int, said: str) -> None:
    done = CliRunner().invoke(completion, arguments, env={"SHELL": own})
    assert done.exit_code == code and said in done.output


def test_a_scenario_may_be_a_file() -> None:
    shell = ShellComplete(turnstile, {}, "turnstile", "_TURNSTILE_COMPLETE")
    [item] = shell.get_completions(["load", "--scenario"], "./mine")
    assert (item.type, item.value) == ("file", "./mine")


def test_what_a_running_cluster_has_is_completed(tmp_path: Path) -> None:
    with running(tmp_path / "data", shards=1) as cluster:
        _complete_at(cluster)


def test_names_of_clusters_are_completed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    with running(tmp_path / "data", "--name", "orders", shards=1) as cluster:
        assert completed("status --name o") == ["orders"]
        cluster.turnstile("user", "add", "alice", "--password", "a")
        assert completed("user remove --name orders a") == ["alice"], (
            "what it has is asked of the cluster with the name"
        )


def _complete_at(cluster: Cluster) -> None:
    cluster.turnstile("fault", "add", "delay", "--name", "slow", "--delay-ms", "5", "--api", "ListGroups")
    cluster.turnstile("user", "add", "alice", "--password", "a")
    cluster.turnstile("quota", "set", "client-id=app", "producer_byte_rate=1000")
    cluster.turnstile("config", "set", "kafka_connections_max_per_ip", "500")
    at = f"--admin {cluster.admin}"
    assert completed(f"fault remove {at} s") == ["slow"]
    assert completed(f"user remove {at} a") == ["alice"]
    assert completed(f"quota unset {at} cl") == ["client-id=app"]
    assert completed(f"config unset {at} kafka_c") == ["kafka_connections_max_per_ip"]


def test_no_cluster_is_silence() -> None:
    assert completed("fault remove --admin 127.0.0.1:1 s") == []
