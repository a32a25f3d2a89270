"""A load on the workers of a real session, in local mode: what one process does, several slots do."""

import os
import signal

import pytest
from fake_brokers import fake_broker

from turnstile.admin_client import AdminClient
from turnstile.fleet import job
from turnstile.load.driver import run
from turnstile.load.output import as_json
from turnstile.load.raw_sockets import DriverError
from turnstile.load.sources import Sources
from turnstile.load.spec import UNTIL_THE_END, ClientGroup, LoadScenario
from turnstile.pipeline.errors import PipelineError

ADMITTED, REFUSED = Sources("127.1.0.0/28"), Sources("127.1.1.0/28")
IN = ClientGroup(name="in", clients=101, sources=ADMITTED, hold_s=UNTIL_THE_END)
OUT = ClientGroup(name="out", clients=40, sources=REFUSED, duration_s=1.0, reconnect=True)
LONG = ClientGroup(name="in", clients=10_000, sources=ADMITTED, rate=200, hold_s=UNTIL_THE_END)


@pytest.fixture(scope="module")
def broker():
    with fake_broker() as addresses:
        yield addresses


def scenario(*groups):
    return LoadScenario(name="test", groups=groups)


def test_slots_do_what_processes_do_and_agree_with_the_cluster(spark, broker):
    steps, seen = [], []
    there = job.run(spark, scenario(IN, OUT), *broker, step=steps.append, watch=seen.append)
    here = run(scenario(IN), *broker, processes=2)
    assert there.groups[0].counts() == here.groups[0].counts()
    assert there.groups[1].refused >= 40 and there.reconciliation.agree
    assert len(there.groups[0].admitted_us) == 101
    assert "waiting for drivers: 2 of 2 are there" in steps
    assert seen[-1].counts["admitted"] == 101
    told = as_json(there)["drivers"]
    assert [each["driver"] for each in told] == [0, 1] and {each["lost_s"] for each in told} == {None}
    assert sum(each["admitted"] for each in told) == 101
    assert all(abs(each["clock_ahead_ms"]) <= each["clock_within_ms"] for each in told)


def test_a_driver_that_is_killed_is_said_with_what_it_did_and_the_other_goes_on(spark, broker, monkeypatch):
    group = ClientGroup(name="in", clients=200, sources=ADMITTED, rate=100, hold_s=0.1)
    pids, started = [], job.Hub.start
    monkeypatch.setattr(job.Hub, "start", lambda hub: pids.append(hub.drivers[1].join.pid) or started(hub))

    def watch(now):
        if now.counts["admitted"] > 20 and pids:
            os.kill(pids.pop(), signal.SIGKILL)

    result = job.run(spark, scenario(group), *broker, watch=watch)
    [lost] = result.lost
    whole, _ = result.drivers
    assert lost.number == 1 and lost.lost_because == (
        "A Python worker of Spark's ended while the job ran: it was killed, or ran out of memory"
    )
    assert whole.counts["admitted"] == 100
    assert 0 < lost.counts["admitted"] < 100
    assert result.reconciliation.agree, result.reconciliation
    assert result.total.admitted == whole.counts["admitted"] + lost.counts["admitted"]


def test_an_interrupt_ends_the_drivers_and_gives_what_there_is(spark, broker):
    asked = []

    def watch(now):
        if now.counts["admitted"] > 4 and not asked:
            asked.append(now)
            raise KeyboardInterrupt

    result = job.run(spark, scenario(LONG), *broker, watch=watch)
    assert result.interrupted and 4 < result.total.admitted < 10_000
    assert result.reconciliation.agree and not result.lost


def test_what_can_not_be_is_one_sentence(spark, broker, monkeypatch):
    with pytest.raises(DriverError, match=r"Driver . on .*: Can't connect from 203\.0\.113\.7"):
        job.run(spark, scenario(ClientGroup(sources=Sources("203.0.113.7"))), *broker)
    with pytest.raises(DriverError, match=r"Nothing answers at 127\.0\.0\.1:1: Connection refused"):
        job.run(spark, scenario(ClientGroup(sources=ADMITTED)), "127.0.0.1:1", AdminClient("http://127.0.0.1:1"))
    monkeypatch.setattr(job, "SLOTS_WITHIN_S", 0.0)
    with pytest.raises(PipelineError, match="Spark has 2 slots and 3 drivers were asked for"):
        job.run(spark, scenario(IN), *broker, job.Places(drivers=3))


def test_workers_that_do_not_reach_the_hub_say_where_it_should_be(spark, broker, monkeypatch):
    monkeypatch.setattr(job, "_submit", _astray(job._submit))
    with pytest.raises(
        PipelineError, match=r"Worker .* can't reach this command at 127\.0\.0\.1:1: Connection refused\. --hub"
    ):
        job.run(spark, scenario(IN), *broker)


def _astray(submit):
    return lambda context, order: submit(context, order._replace(hub=("127.0.0.1", 1)))


def test_addresses_of_the_hosts_stand_for_the_scenarios(spark, broker):
    result = job.run(spark, scenario(ClientGroup(clients=50, sources=REFUSED)), *broker, job.Places(2, "127.1.0.0/29"))
    assert result.total.admitted == 50 and result.reconciliation.agree
