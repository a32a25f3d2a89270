"""The course with real processes: a client that behaves, and some that do not. The others are judged by
`make verdicts`."""

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner
from harness import TURNSTILE, until

import turnstile
from turnstile.cli.verdict import verdict as command
from turnstile.verdict.judged import CannotJudge
from turnstile.verdict.run import OBSERVE, PRIVATE, run
from turnstile.verdict.running import RunningCluster
from turnstile.verdict.times import Times

pytestmark = pytest.mark.timed  # it judges when bytes arrive

TRIES = 5
"""Beside other tests too little may be seen of a bad client: that is a warning, or not judged, and never a pass."""
OVERRIDES = "kafka_connections_max_overrides"
CLIENT = str(Path(__file__).parent / "clients" / "client.py")
TIMES = replace(Times().quick(), baseline_s=0.6, short_s=0.5, long_s=1.0, refuse_s=1.2, alone_s=1.2, herd_s=0, copies=1)


def client(how, *roles):
    return [sys.executable, CLIENT, how, *roles]


@pytest.fixture(scope="module")
def cluster():
    with turnstile.Cluster(topics={"orders": 1}, shards=2, limits=PRIVATE) as cluster:
        yield cluster


@pytest.fixture(autouse=True)
def reset(cluster):
    cluster.reset()


def told(cluster, command, *checks):
    found = cluster.verdict(command, checks=checks, times=TIMES)
    return {name: finding.verdict for name, finding in found.findings.items()}, found


def test_a_client_that_behaves_passes(cluster):
    verdicts, found = told(cluster, client("good", "producer"), "kip219", "not-failure", "shutdown")
    assert verdicts.pop("kip219") in ("pass", "warn"), found.as_json()  # on a busy machine it may read a response late
    assert set(verdicts.values()) == {"pass"}, found.as_json()
    assert cluster.faults() == []


def test_a_client_that_ignores_throttling_fails_that_alone(cluster):
    for _ in range(TRIES):
        verdicts, found = told(cluster, client("ignores-throttle", "producer"), "kip219", "not-failure")
        assert verdicts["kip219"] != "pass" and verdicts["not-failure"] == "pass", found.as_json()
        if verdicts["kip219"] == "fail":
            break
    assert verdicts["kip219"] == "fail", found.as_json()


def test_a_client_that_obeys_throttling_for_produce_and_fetch_alone_fails_by_the_api_that_it_does_not(cluster):
    program = client("waits-for-data-only", "producer", "member", "fetcher")
    for _ in range(TRIES):
        verdicts, found = told(cluster, program, "kip219", "not-failure")
        if verdicts["kip219"] == "fail":
            break
    assert verdicts == {"kip219": "fail", "not-failure": "pass"}, found.as_json()
    finding = found.findings["kip219"]
    apis = {each.api: each.verdict for each in finding.apis}
    assert apis["Heartbeat"] == "fail" and "fail" not in (apis["Produce"], apis["Fetch"]), apis
    assert "as a rule after Heartbeat throttled by" in finding.evidence and "Produce throttled" not in finding.evidence


def test_a_program_that_asks_nothing_cannot_be_judged(cluster):
    with pytest.raises(CannotJudge, match="ended before it had asked"):
        told(cluster, [sys.executable, "-c", "print('hello')"], "kip219")
    with pytest.raises(CannotJudge, match="/no/such/program can't be run: No such file"):
        told(cluster, ["/no/such/program"], "kip219")


def test_a_client_of_a_running_cluster_is_judged_among_others(cluster):
    environment = {**os.environ, "TURNSTILE_BOOTSTRAP": cluster.bootstrap}
    options = ["--quick", "--json", "--checks", "kip219,shutdown", "--admin", cluster.admin.url]
    with subprocess.Popen(client("ignores-throttle", "producer"), env=environment) as one:
        try:
            for _ in range(TRIES):
                done = CliRunner().invoke(command, ["--attach", f"client-id=client-{one.pid}", *options])
                checks = {each["id"]: each["verdict"] for each in json.loads(done.output)["checks"]}
                if checks["kip219"] == "fail":
                    break
        finally:
            one.kill()
    assert checks == {"kip219": "fail", "shutdown": "unjudged"} and done.exit_code == 1, done.output


def test_a_client_of_a_running_cluster_that_goes_away_is_not_blamed(cluster):
    environment = {**os.environ, "TURNSTILE_BOOTSTRAP": cluster.bootstrap}
    running = RunningCluster(cluster.admin)
    times = replace(TIMES, refuse_s=0.3, alone_s=0.3, recover_s=0.5, settle_s=0.2)
    cluster.set(overrides={"10.0.0.1": 3})
    with subprocess.Popen(client("good", "producer"), env=environment) as one:

        def ended(step):
            if step not in ("waiting for the client", "baseline"):
                one.kill()

        try:
            target = {"ip": "127.0.0.1"}
            found = run(running, running.journal, None, times=times, checks=["recovery"], target=target, say=ended)
        finally:
            one.kill()
    assert found.findings["recovery"].verdict == "unjudged" and found.exit_code == 2
    assert found.timeline.skipped["rate"] == "the client had not come back"
    assert cluster.faults() == []
    assert overrides(cluster) == ["10.0.0.1:3"]


def test_sigterm_leaves_a_running_cluster_as_it_was(cluster):
    cluster.set(overrides={"10.0.0.1": 3})
    environment = {**os.environ, "TURNSTILE_BOOTSTRAP": cluster.bootstrap}
    words = ["--quick", "--checks", "recovery", "--attach", "ip=127.0.0.1", "--admin", cluster.admin.url]
    with subprocess.Popen(client("good", "producer"), env=environment) as one:
        try:
            with subprocess.Popen([TURNSTILE, "verdict", *words], stderr=subprocess.PIPE, text=True) as judge:
                assert judge.stderr is not None
                assert any("closed" in line or "silence" in line or "reset" in line for line in judge.stderr)
                until(lambda: cluster.faults() or len(overrides(cluster)) > 1)
                judge.terminate()
                said = judge.stderr.read()
        finally:
            one.kill()
    assert judge.returncode == 130 and said.endswith("turnstile: interrupted\n")
    assert cluster.faults() == [] and overrides(cluster) == ["10.0.0.1:3"]
    assert not cluster.admin.get("/v1/cluster_config", key=OBSERVE)[OBSERVE]


def overrides(cluster):
    return cluster.admin.get("/v1/cluster_config", key=OVERRIDES)[OVERRIDES]


def test_one_verdict_at_a_time_of_a_running_cluster(cluster):
    cluster.set({"turnstile.observe": True})
    done = CliRunner().invoke(command, ["--attach", "client-id=app", "--admin", cluster.admin.url])
    assert done.exit_code == 2 and "another verdict goes on there" in done.output


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ([], "give a command after --, or --attach"),
        (["--checks", "kip", "--", "x"], "'kip' is not a check; the checks are kip219, deadline"),
        (["--attach", "ip=localhost"], "'localhost' is not an address, such as 10.0.0.1"),
        (["--attach", "orders"], "'orders' is not client-id=NAME or ip=ADDRESS"),
    ],
)
def test_wrong_usage_ends_with_a_sentence(words, sentence):
    done = CliRunner().invoke(command, words)
    assert done.exit_code == 2 and sentence in done.output
