"""`turnstile config` and `turnstile quota` as people and programs use them, against a served admin API."""

import json
import subprocess
import sys

import click
import harness
import pytest
import trio
from click.testing import CliRunner, Result

from turnstile.cli.config import config
from turnstile.cli.quota import quota
from turnstile.cli.user import user


@pytest.fixture
def run(api):
    """Runs a command line against the API: its group, then its words."""

    async def run(group: click.Group, *words: str, exit_code: int = 0) -> Result:
        def call() -> Result:
            return CliRunner().invoke(group, list(words), env={"TURNSTILE_ADMIN": api.url})

        result = await trio.to_thread.run_sync(call)
        assert result.exit_code == exit_code, result.output
        return result

    return run


async def test_a_setting_is_set_read_listed_and_unset(run, api):
    result = await run(config, "set", "kafka_connections_max_per_ip", "50")
    assert result.stdout == "kafka_connections_max_per_ip = 50\n"
    assert "in force on every shard" in result.stderr
    assert api.cluster.shards[0, 0].image.rule_of("ip:10.0.0.1").cap == 50
    assert (await run(config, "get", "kafka_connections_max_per_ip")).stdout == "50\n"
    listed = (await run(config, "list")).stdout
    assert ["kafka_connections_max_per_ip", "50", "set"] in [line.split()[:3] for line in listed.splitlines()]
    assert "max.connections " in listed and "unlimited" in listed
    await run(config, "unset", "kafka_connections_max_per_ip")
    assert (await run(config, "get", "kafka_connections_max_per_ip")).stdout == "\n"


async def test_several_are_set_together_or_not_at_all(run):
    await run(config, "set", "kafka_connections_max=9", "max.connections=0", exit_code=1)
    assert (await run(config, "get", "kafka_connections_max")).stdout == "\n"
    await run(config, "set", "kafka_connections_max=9", "turnstile.request.cost=Produce=2ms,*=1us")
    assert (await run(config, "get", "turnstile.request.cost")).stdout == "Produce=2ms,*=1us\n"


async def test_lists_are_given_as_json_or_with_commas_and_numbers_may_be_negative(run):
    await run(config, "set", "kafka_connections_max_overrides", '["10.0.0.1:5", "[2001:db8::1]:7"]')
    assert (await run(config, "get", "kafka_connections_max_overrides")).stdout == "10.0.0.1:5,[2001:db8::1]:7\n"
    await run(config, "set", "log.retention.bytes", "-1")
    assert (await run(config, "get", "log.retention.bytes")).stdout == "-1\n"


async def test_errors_are_one_sentence_and_the_exit_code_says_whose(run):
    bad = await run(config, "set", "kafka_connections_max", "many", exit_code=1)
    assert bad.stderr == "kafka_connections_max cannot be 'many': it must be a whole number from 0 to 4294967295.\n"
    unknown = await run(config, "get", "kafka_connection_max", exit_code=1)
    assert unknown.stderr == "kafka_connection_max is not a setting; did you mean kafka_connections_max?\n"
    await run(config, "set", "kafka_connections_max", exit_code=2)
    await run(config, "set", "a=1", "b", exit_code=2)
    await run(config, "nope", exit_code=2)
    lost = await run(config, "list", "--admin", "http://127.0.0.1:1", exit_code=1)
    assert "no cluster answers at http://127.0.0.1:1" in lost.stderr
    assert len(lost.stderr.splitlines()) == 1


async def test_json_is_for_programs(run):
    answer = json.loads((await run(config, "set", "kafka_connections_max", "5", "--json")).stdout)
    assert answer.keys() == {"config_version"}
    assert json.loads((await run(config, "get", "kafka_connections_max", "--json")).stdout) == {
        "kafka_connections_max": 5
    }
    assert json.loads((await run(config, "list", "--json")).stdout) == {"kafka_connections_max": 5}
    assert "num.io.threads" in json.loads((await run(config, "list", "--all", "--json")).stdout)
    history = json.loads((await run(config, "history", "--json")).stdout)
    assert history[0]["changes"] == [["setting", "/kafka_connections_max", None, "5"]]
    await run(quota, "set", "user=alice", "producer_byte_rate=5")
    told = (await run(config, "history")).stdout
    assert "kafka_connections_max  (unset) -> 5" in told
    assert "quota of user=alice  (unset) -> producer_byte_rate=5.0" in told


def test_topics_and_users_in_the_history_are_told_without_what_is_kept_of_them(tmp_path):
    with harness.running(tmp_path / "data", "--topic", "orders:2") as cluster:
        cluster.turnstile("user", "add", "alice", "--password", "alice-secret")
        told = CliRunner().invoke(config, ["history"], env={"TURNSTILE_ADMIN": cluster.admin}).output
    assert "  topic orders  created\n" in told
    assert "  user alice  (unset) -> SCRAM-SHA-256,SCRAM-SHA-512\n" in told


async def test_a_dry_run_changes_nothing(run):
    result = await run(config, "set", "--dry-run", "kafka_connections_max", "5")
    assert "nothing was changed" in result.stderr
    assert (await run(config, "get", "kafka_connections_max")).stdout == "\n"


async def test_a_quota_is_set_listed_explained_and_unset(run):
    await run(quota, "set", "ip=10.0.0.1", "connection_creation_rate=20")
    await run(quota, "set", "user=alice", "client-id=<default>", "producer_byte_rate=1024", "request_percentage=0.5")
    assert (await run(quota, "list")).stdout.splitlines() == [
        "user=alice client-id=<default>  producer_byte_rate=1024 request_percentage=0.5",
        "ip=10.0.0.1                     connection_creation_rate=20",
    ]
    assert json.loads((await run(quota, "list", "user=alice", "--json")).stdout)["quotas"][0]["values"] == {
        "producer_byte_rate": 1024.0,
        "request_percentage": 0.5,
    }
    explained = json.loads((await run(quota, "explain", "user=alice", "client-id=app", "--json")).stdout)
    assert explained["matched"] == {"user": "alice", "client-id": "<default>"}
    assert "because" in (await run(quota, "explain", "user=alice", "client-id=app")).stdout.lower()
    await run(quota, "unset", "user=alice", "client-id=<default>", "producer_byte_rate")
    await run(quota, "unset", "ip=::ffff:10.0.0.1")
    assert (await run(quota, "list")).stdout == "user=alice client-id=<default>  request_percentage=0.5\n"
    assert (await run(quota, "list", "user=bob")).stdout == "no quota is set for user=bob\n"


async def test_quota_command_names_what_is_wrong(run):
    bad = await run(quota, "set", "ip=10.0.0.1", "connection_creation_rate=-1", exit_code=1)
    assert bad.stderr == "Quota connection_creation_rate must be greater than 0\n"
    mixed = await run(quota, "set", "ip=10.0.0.1", "user=u", "connection_creation_rate=1", exit_code=2)
    assert "an entity with ip= has neither user= nor client-id=" in mixed.stderr
    await run(quota, "unset", "user=nobody", exit_code=1)
    for words in (
        ["set", "user=a"],
        ["set", "producer_byte_rate=5"],
        ["set", "user=a", "producer_byte_rate=fast"],
        ["set", "user=a", "user=b", "producer_byte_rate=1"],
        ["set", "ip=x", "connection_creation_rate=1"],
        ["explain", "ip=10.0.0.1"],
    ):
        await run(quota, *words, exit_code=2)


async def test_a_token_is_asked_for_and_taken(start_api, tmp_path):
    api = await start_api(token="s3cret")

    def call(*more: str) -> Result:
        return CliRunner().invoke(config, ["list", "--admin", api.url, *more])

    without = await trio.to_thread.run_sync(call)
    assert without.exit_code == 1
    assert "give it with --token-file, TURNSTILE_ADMIN_TOKEN_FILE or TURNSTILE_ADMIN_TOKEN" in without.stderr
    by_value = await trio.to_thread.run_sync(call, "--token", "s3cret")
    assert by_value.exit_code == 0 and "list of processes" in by_value.stderr
    (tmp_path / "token").write_text("s3cret\n")

    def with_variable(name: str) -> Result:
        return CliRunner().invoke(
            config, ["list", "--admin", api.url], env={"TURNSTILE_ADMIN_TOKEN_FILE": str(tmp_path / name)}
        )

    assert (await trio.to_thread.run_sync(with_variable, "token")).exit_code == 0
    assert (await trio.to_thread.run_sync(with_variable, "none")).exit_code == 2
    by_file = await trio.to_thread.run_sync(call, "--token-file", str(tmp_path / "token"))
    assert (by_file.exit_code, by_file.stderr) == (0, "")
    (tmp_path / "token").write_text("\n")
    empty = await trio.to_thread.run_sync(call, "--token-file", str(tmp_path / "token"))
    assert empty.exit_code == 2 and "has no token on its first line" in empty.stderr


async def test_a_password_is_read_from_standard_input(api):
    def call(text: str, *more: str) -> Result:
        return CliRunner().invoke(user, ["add", "alice", "--admin", api.url, *more], input=text)

    added = await trio.to_thread.run_sync(call, "secret\n")
    assert added.exit_code == 0 and "alice may log in" in added.stdout
    missing = await trio.to_thread.run_sync(call, "")
    assert missing.exit_code == 2 and "no password on the first line of standard input" in missing.stderr
    assert (await trio.to_thread.run_sync(call, "", "--password", "other")).exit_code == 0


async def test_what_a_single_broker_has_of_its_own_is_listed(run):
    await run(config, "set", "max.connections", "7", "--broker", "1")
    listed = (await run(config, "list")).stdout
    assert ["max.connections", "7", "broker", "1"] in [line.split()[:4] for line in listed.splitlines()]
    gone = await run(config, "set", "max.connections", "7", "--broker", "7", exit_code=1)
    assert gone.stderr == "there is no broker 7 (0 to 1).\n"


async def test_with_json_a_failure_is_json_too(run):
    for words in (["set", "kafka_connections_max", "many"], ["get", "nope"], ["list", "--admin", "http://127.0.0.1:1"]):
        failed = await run(config, *words, "--json", exit_code=1)
        assert json.loads(failed.stdout).keys() == {"error"}
        assert failed.stderr == ""
    missing = await run(quota, "unset", "user=nobody", "--json", exit_code=1)
    assert json.loads(missing.stdout) == {"error": "user=nobody has no quota"}


async def test_a_quota_that_is_none_is_answered_with_the_one_that_was_meant(run):
    wrong = await run(quota, "set", "user=alice", "producer_rate=5", exit_code=1)
    assert wrong.stderr == "producer_rate is not a quota; did you mean producer_byte_rate?\n"


async def test_what_clients_chose_cannot_steer_the_terminal(run):
    await run(quota, "set", "user=\x1b[2Jeve", "producer_byte_rate=5")
    shown = (await run(quota, "list")).stdout + (await run(config, "history")).stdout
    assert "\x1b" not in shown and "\\x1b[2Jeve" in shown


def test_a_command_imports_nothing_heavy_before_it_runs():
    program = (
        "import sys, turnstile.cli.config, turnstile.cli.quota, turnstile.cli.top\n"
        "heavy = {'trio', 'starlette', 'h11', 'rich', 'pyarrow', 'kio', 'http.client', 'shards.settings.config_def'}\n"
        "print(sorted(heavy & set(sys.modules)))"
    )
    assert subprocess.run([sys.executable, "-c", program], capture_output=True, text=True).stdout == "[]\n"


async def test_a_setting_that_nothing_obeys_says_so_when_it_is_set_read_and_listed(run):
    name = "log.flush.interval.ms"
    assert "nothing acts on it" in (await run(config, "set", name, "5")).stderr
    assert "not emulated" in (await run(config, "get", name)).stderr
    row = next(line for line in (await run(config, "list")).stdout.splitlines() if line.startswith(name))
    assert "Not emulated" in row
    assert json.loads((await run(config, "set", name, "6", "--json")).stdout)["not_emulated"] == [name]
    assert json.loads((await run(config, "get", name, "--json")).stdout) == {name: 6, "emulated": False}
    assert json.loads((await run(config, "list", "--json")).stdout) == {name: 6, "not_emulated": [name]}
