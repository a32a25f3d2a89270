"""The driver as a whole, its processes and sockets included, against a broker of which every move is known."""

import json
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from fake_brokers import fake_broker
from harness import until

from turnstile.admin_client import AdminClient
from turnstile.load.counters import read
from turnstile.load.driver import resolve, run
from turnstile.load.output import as_json
from turnstile.load.raw_sockets import DriverError
from turnstile.load.sources import Sources
from turnstile.load.spec import UNTIL_THE_END, ClientGroup, LoadScenario, RecordedConnection

ADMITTED, REFUSED, CUT_OFF, UNANSWERED = (Sources(f"127.1.{kind}.0/28") for kind in range(4))
NO_ADMIN = AdminClient("http://127.0.0.1:1")
ROOT = Path(__file__).parents[3]


@pytest.fixture(scope="module")
def broker():
    with fake_broker() as addresses:
        yield addresses


def storm(broker, *groups, processes=1, **settings):
    return run(LoadScenario(name="test", groups=groups, **settings), *broker, processes=processes)


def test_what_becomes_of_connections_is_told_apart_and_reconciled(broker):
    result = storm(
        broker,
        ClientGroup(name="in", clients=30, sources=ADMITTED, hold_s=UNTIL_THE_END),
        ClientGroup(name="out", clients=20, sources=REFUSED),
        ClientGroup(name="cut", clients=10, sources=CUT_OFF, hold_s=5),
    )
    admitted, refused, cut_off = result.groups
    assert (admitted.attempted, admitted.admitted, admitted.broken) == (30, 30, 0)
    assert (refused.attempted, refused.refused, refused.broken) == (20, 20, 0)
    assert (cut_off.admitted, cut_off.closed_by_broker, cut_off.broken) == (10, 10, 10)
    assert result.cluster.admitted == 40 and result.cluster.refused == {"ip_cap": 20}
    assert result.reconciliation.agree


def test_several_processes_share_the_work(broker):
    result = storm(broker, ClientGroup(clients=101, sources=ADMITTED), processes=3)
    assert result.total.admitted == 101
    assert len(result.total.admitted_us) == 101
    assert result.reconciliation.agree


def test_connections_without_an_answer_are_counted_as_that(broker):
    total = storm(broker, ClientGroup(clients=5, sources=UNANSWERED), timeout_s=0.05).total
    assert (total.attempted, total.unanswered, total.refused, total.broken) == (5, 5, 0, 0)


def test_without_a_probe_what_stays_open_is_admitted(broker):
    result = storm(
        broker,
        ClientGroup(name="in", clients=6, sources=ADMITTED),
        ClientGroup(name="out", clients=4, sources=REFUSED),
        probe="none",
        grace_s=0.2,
    )
    assert [(g.admitted, g.refused) for g in result.groups] == [(6, 0), (0, 4)]
    assert len(result.total.admitted_us) == 6


def test_a_cluster_that_counts_otherwise_is_found_out():
    with fake_broker("miscount") as broker:
        result = storm(broker, ClientGroup(clients=10, sources=ADMITTED))
    assert result.reconciliation.agree is False
    assert "cluster 11 admitted" in result.reconciliation.sentence


def test_a_broker_without_counters_is_no_disagreement(broker):
    result = run(LoadScenario(name="x", groups=(ClientGroup(),)), broker[0], NO_ADMIN, processes=1)
    assert result.reconciliation.agree is None
    assert as_json(result)["cluster"] is None


def test_dropped_clients_all_come_back(broker):
    group = ClientGroup(clients=20, sources=ADMITTED, duration_s=3, hold_s=UNTIL_THE_END, reconnect=True, drop_at_s=0.5)
    assert storm(broker, group).total.admitted == 40


def test_refused_clients_come_back_only_when_they_reconnect(broker):
    once = ClientGroup(clients=3, sources=REFUSED)
    again = ClientGroup(clients=3, sources=REFUSED, duration_s=1.5, reconnect=True, backoff_s=0.05)
    assert storm(broker, once).total.attempted == 3
    assert storm(broker, again).total.attempted >= 6


def test_a_log_is_replayed_connection_by_connection(broker):
    recorded = RecordedConnection(at_s=[0.0, 0.01, 0.02], hold_s=[0.05, 0.0, 0.01], address=[0, 1, 0])
    result = storm(broker, ClientGroup(clients=3, sources=ADMITTED, recorded=recorded), close="rst")
    assert result.total.admitted == 3 and result.reconciliation.agree


def test_a_group_can_have_another_listener_than_the_run(broker):
    elsewhere = ClientGroup(name="there", clients=4, sources=ADMITTED, bootstrap=broker[0])
    result = run(LoadScenario(name="x", groups=(elsewhere,)), "127.0.0.1:1", broker[1], processes=1)
    assert result.total.admitted == 4


def test_storm_at_a_closed_port_is_refused_in_one_sentence():
    with socket.create_server(("127.0.0.1", 0)) as gone:
        port = gone.getsockname()[1]
    with pytest.raises(DriverError, match=f"Nothing answers at 127.0.0.1:{port}: Connection refused"):
        storm((f"127.0.0.1:{port}", NO_ADMIN), ClientGroup(clients=2000))


def test_a_source_that_is_not_ours(broker):
    with pytest.raises(DriverError, match=r"Can't connect from 203\.0\.113\.7"):
        storm(broker, ClientGroup(sources=Sources("203.0.113.7")))


def test_more_connections_than_open_files_is_said_before_it_starts(broker):
    with pytest.raises(DriverError, match="open files"):
        storm(broker, ClientGroup(clients=50_000_000, hold_s=UNTIL_THE_END))


@pytest.mark.parametrize("bootstrap", ["127.0.0.1", ":9092", "127.0.0.1:many", "127.0.0.1:99999999999"])
def test_an_address_that_is_none(bootstrap):
    with pytest.raises(DriverError):
        resolve(bootstrap)


def test_ctrl_c_prints_what_there_is(broker):
    bootstrap, admin = broker
    command = "from turnstile.cli.load import load; load()"
    arguments = ["--bootstrap", bootstrap, "--admin", admin.url, "--rate", "200", "--duration", "60", "--json"]
    driver = subprocess.Popen(
        [sys.executable, "-c", command, *arguments, "--sources", "127.1.0.0/24", "--hold", "end"],
        cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True,
    )  # fmt: skip
    before = read(admin).admitted
    until(lambda: read(admin).admitted > before or driver.poll() is not None, what="a load that runs")
    assert driver.poll() is None, driver.stderr.read()
    os.killpg(driver.pid, signal.SIGINT)
    out, err = driver.communicate(timeout=20)
    said = json.loads(out)
    assert said["interrupted"] is True
    assert said["attempted"] == said["admitted"] + said["unanswered"]
    assert said["reconciled"] is True
    assert "Traceback" not in err and err.endswith("turnstile: interrupted\n")
    assert driver.returncode == 130


def test_a_cluster_that_counts_otherwise_is_no_success():
    with fake_broker("miscount") as (bootstrap, admin):
        command = [sys.executable, "-c", "from turnstile.cli.load import load; load()"]
        arguments = ["--bootstrap", bootstrap, "--admin", admin.url, "--connections", "5", "--sources", "127.1.0.0/28"]
        done = subprocess.run([*command, *arguments, "--json"], cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert json.loads(done.stdout)["reconciled"] is False
    assert done.returncode == 1


def test_the_json_has_the_shape_others_rely_on(broker):
    said = as_json(storm(broker, ClientGroup(clients=8, sources=ADMITTED)))
    assert {
        "attempted",
        "admitted",
        "refused",
        "broken",
        "seconds",
        "connect_ms",
        "cluster",
        "reconciled",
    } <= said.keys()
    assert said["connect_ms"].keys() == {"p50", "p99", "max"}
    assert said["cluster"] == {"admitted": 8, "refused": {}}
    assert said["reconciled"] is True
