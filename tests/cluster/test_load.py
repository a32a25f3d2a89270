"""`turnstile load` on a new cluster, and on one that has other clients, too."""

import json
import shlex
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from harness import Cluster, admitted, connect, running, until


@contextmanager
def coming_and_going(cluster: Cluster, ip: str) -> Iterator[None]:
    """Connections from `ip`, one after the other, all the while."""
    ended = threading.Event()
    done = [0]

    def go() -> None:
        while not ended.is_set():
            with connect(cluster.address, ip) as sock:
                done[0] += admitted(sock)

    thread = threading.Thread(target=go)
    thread.start()
    try:
        until(lambda: done[0] > 5, what="clients before the load")
        yield
    finally:
        ended.set()
        thread.join()


def load(cluster: Cluster, *arguments: str, expect: int = 0) -> str:
    return cluster.turnstile(
        "load", "--bootstrap", cluster.bootstrap, "--sources", "127.1.0.0/24", "--connections", "300", *arguments,
        expect=expect,
    )  # fmt: skip


def test_other_clients_are_told_apart_by_address(tmp_path):
    with running(tmp_path / "d") as cluster:
        with coming_and_going(cluster, "127.0.0.5"):
            told = json.loads(load(cluster, "--json", "--duration", "1", "--rate", "300"))
            assert "of 127.0.0.5, are not its own" in load(cluster)
        assert told["reconciled"] is True and told["others"]["127.0.0.5"] > 0
        assert told["cluster"]["admitted"] == told["admitted"] == told["attempted"] > 0
        assert "others" in told and json.loads(load(cluster, "--json"))["others"] == {}


def test_a_client_at_one_of_the_drivers_addresses_can_not_be_told_apart(tmp_path):
    with running(tmp_path / "d") as cluster, coming_and_going(cluster, "127.1.0.7"):
        assert "more from 127.1.0.0/24: of another client there" in load(cluster, expect=1)


def test_connections_that_an_earlier_run_left_in_the_backlog_are_not_of_the_next(tmp_path):
    rate = ("--set", "max.connection.creation.rate=100", "--set", "quota.window.num=2")
    with running(tmp_path / "d", *rate, shards=1) as cluster:
        left = json.loads(load(cluster, "--json", "--timeout", "0.5", "--duration", "1"))["unanswered"]
        assert left > 50
        assert "they agree" in load(cluster, "--timeout", "20", "--concurrency", "4")


def test_a_run_that_is_not_told_where_to_goes_to_the_brokers_of_the_admin_api(tmp_path):
    with running(tmp_path / "d", brokers=2, shards=1) as cluster:
        told = cluster.told("load", "--sources", "127.1.0.0/24", "--connections", "40")
        assert told["reconciled"] is True and told["admitted"] == told["cluster"]["admitted"] == 40


SCENARIO = """
title = "Too many from one address"
[limits]
kafka_connections_max_per_ip = 5
[[group]]
name = "office"
sources = "127.1.0.1"
clients = 20
hold_s = "end"
"""


def test_a_scenario_that_nothing_limits_ends_with_the_command_that_does(tmp_path):
    file = tmp_path / "office.toml"
    file.write_text(SCENARIO)
    command = ["load", "--scenario", str(file)]
    with running(tmp_path / "d", "--set", "quota.window.num=1") as cluster:
        told = cluster.turnstile(*command, "--bootstrap", cluster.bootstrap).strip().splitlines()
        assert told[-2].startswith(
            "Nothing was refused or throttled: this cluster has no limit that the scenario reaches."
        )
        name, *pasted = shlex.split(told[-1])
        assert (name, pasted) == ("turnstile", ["load", "--bootstrap", cluster.bootstrap, *command[1:], "--apply"])
        both = cluster.told(*pasted)
        assert (both["without"]["refused"], both["with"]["refused"]) == (0, 15)
        cluster.set("kafka_connections_max_per_ip", 7)
        assert "Nothing was refused" not in cluster.turnstile(*command, "--bootstrap", cluster.bootstrap)
