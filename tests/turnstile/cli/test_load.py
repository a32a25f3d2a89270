"""What `turnstile load` makes of its arguments, before anything is connected."""

import json

import pytest
import trio
from click.testing import CliRunner

from turnstile.cli.load import load


def said(*arguments, code):
    result = CliRunner().invoke(load, arguments)
    assert result.exit_code == code, result.output
    return " ".join(result.output.split())


def test_the_shipped_scenarios_are_listed():
    assert "Many clients behind one NAT address" in said("--list", code=0)
    assert "nat" in {each["name"] for each in json.loads(said("--list", "--json", code=0))}


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--scenario", "nat", "--rate", "5"], "--rate does not go with --scenario"),
        (["--scenario", "nat", "--replay", "x"], "--replay does not go with --scenario"),
        (["--scenario", "nope"], "There is no scenario 'nope'"),
        (["--apply", "--connections", "5"], "--apply needs a scenario that suggests limits"),
        (["--rate", "5"], "--rate needs --duration or --connections"),
        (["--replay", "x"], "--replay needs --sources"),
        (["--replay", "/nowhere.log", "--sources", "127.1.0.0/24"], "can't be read"),
        (["--sources", "somewhere"], "'somewhere' is not an address"),
        (["--hold", "soon"], "neither seconds nor 'end'"),
        (["--hold", "nan"], "neither seconds nor 'end'"),
        (["--connections", "0"], "--connections"),
        (["--worker-sources", "10.0.0.0/8"], "--worker-sources needs --master"),
        (["--hub", "10.0.0.1:7000"], "--hub needs --master"),
        (["--master", "local[2]", "--worker-sources", "somewhere"], "'somewhere' is not an address"),
        (["--master", "local[2]", "--hub", "somewhere"], "'somewhere' is not HOST:PORT"),
        (["--processes", "65"], "--processes can't be more than 64 without --master"),
    ],
)
def test_wrong_usage_is_exit_code_2_and_a_sentence(arguments, says):
    assert says in said(*arguments, code=2)


def test_a_group_that_the_scenario_has_not_is_said_before_anything_runs():
    told = said("--scenario", "nat", "--expect", "ofice.p99<50ms", code=2)
    assert "ofice is not a group of this load; its groups are office, data centre" in " ".join(told.split())


def test_nothing_listens_is_exit_code_1_and_a_sentence():
    assert "Nothing answers at 127.0.0.1:1: Connection refused" in said("--bootstrap", "127.0.0.1:1", code=1)


async def test_an_admin_api_with_a_token_is_asked_with_it_or_the_load_says_so(start_api):
    api = await start_api(token="s3cret")

    def run(*more):
        arguments = ["--bootstrap", "127.0.0.1:1", "--connections", "1", "--admin", api.url, *more]
        return CliRunner().invoke(load, arguments, env={"TURNSTILE_ADMIN_TOKEN": None})

    without = await trio.to_thread.run_sync(run)
    assert (without.exit_code, "needs its token; give it with --token-file" in without.stderr) == (1, True)
    with_token = await trio.to_thread.run_sync(lambda: run("--token", "s3cret"))
    assert "Nothing answers at 127.0.0.1:1" in with_token.stderr
