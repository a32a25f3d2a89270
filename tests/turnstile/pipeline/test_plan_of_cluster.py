"""The cap of a whole cluster that a plan of the journals of all brokers recommends: the peak over all of them, as a plain replay
has it, with headroom; on Spark as here."""

from __future__ import annotations

import json
import random
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy
import pytest
from click.testing import CliRunner
from one_shard import OneShard

from shards.limits.connection_limits import ConnectionLimits
from shards.limits.replay_gate import REFUSED, IncomingConnection, ReplayGate
from shards.settings.broker_config import CLUSTER_CAP
from turnstile.cli.plan import plan as command
from turnstile.pipeline.inputs.connection_logs import load
from turnstile.pipeline.inputs.entities import USER
from turnstile.pipeline.inputs.small_log import read_small_log
from turnstile.pipeline.plan.candidates import Candidate
from turnstile.pipeline.plan.cluster_cap import most_open
from turnstile.pipeline.plan.plan import plan
from turnstile.pipeline.plan.plan_page import page
from turnstile.pipeline.plan.what_if import NEVER, levels

OTHER = {"broker": 1, "shard": 0, "epoch": 2}


def journal(folder: Path, seed: int, count: int = 200) -> list[tuple[int, int]]:
    """Writes the journal of two brokers; returns its connections as (opened, closed) in milliseconds, in order of arrival."""
    chance = random.Random(seed)
    written = OneShard()
    written.add("shard_up", **OTHER, detail=json.dumps({**OTHER, "shards": 1}))
    changes: list[tuple[int, int, int]] = []
    spans: list[tuple[int, int]] = []
    for conn, opened in enumerate(sorted(chance.sample(range(60_000), count))):
        lasted = chance.choice([None, *(chance.randrange(1, most) for most in (2000, 20_000))])
        closed = NEVER if lasted is None else opened + lasted
        spans.append((opened, closed))
        changes += [(opened, 1, conn)] + ([] if lasted is None else [(closed, 0, conn)])
    start_us, start_ns = 1_700_000_000_000_000, 50_000_000_000
    for at_ms, is_open, conn in sorted(changes):
        broker = conn % 2
        event = written.add(
            "admitted" if is_open else "closed", broker=broker, shard=0, epoch=broker + 1, conn=conn, version=1, held_ms=0.1,
            ip=f"10.0.0.{conn % 40}", port=1000, listener="A", reason=None if is_open else "client",
        )  # fmt: skip
        event |= {"ts": start_us + at_ms * 1000, "mono_ns": start_ns + at_ms * 1_000_000}
    written.written(folder)
    return spans


def refused(spans: list[tuple[int, int]], cap: int) -> int:
    """The connections that a plain replay refuses, through the emulator's own gate."""
    gate = ReplayGate(ConnectionLimits({CLUSTER_CAP: cap}), ["A"])
    opened: list[tuple[int, IncomingConnection]] = []
    count = 0
    for at_ms, closed_ms in spans:
        for closes_ms, each in sorted((pair for pair in opened if pair[0] <= at_ms), key=lambda pair: pair[0]):
            gate.close(each, now_ms=closes_ms)
        opened = [pair for pair in opened if pair[0] > at_ms]
        connection = IncomingConnection(gate.acceptors["A"], "10.0.0.1")
        gate.connect(connection, now_ms=at_ms)
        if connection.outcome == REFUSED:
            assert connection.reason == "cluster_cap"
            count += 1
        else:
            opened.append((closed_ms, connection))
    return count


@pytest.mark.parametrize("seed", range(3))
def test_the_peak_is_the_smallest_cap_at_which_a_plain_replay_refuses_none(tmp_path: Path, seed: int) -> None:
    spans = journal(tmp_path, seed)
    log = read_small_log([str(tmp_path)], "journal")
    assert log is not None
    found = plan(log, [], headroom=Fraction(1, 4)).cluster
    assert found is not None
    assert refused(spans, found.without_headroom) == 0 < refused(spans, found.without_headroom - 1)
    assert found.cap == -(-found.without_headroom * 5 // 4)


def test_spark_finds_the_same_whatever_is_tried_beside_it(spark: Any, tmp_path: Path) -> None:
    journal(tmp_path, 7)
    log, source = read_small_log([str(tmp_path)], "journal"), load(spark, [str(tmp_path)], "journal")
    assert log is not None
    for candidates in ([], [Candidate(broker_cap=5)], [Candidate(cap=2, broker_rate=3)]):
        here = plan(log, candidates)
        assert here.cluster is not None
        assert plan(source, candidates).as_json() == here.as_json()


@pytest.mark.parametrize("seed", range(20))
def test_the_most_open_is_the_highest_level(seed: int) -> None:
    """Also with connections that come and close at one instant."""
    chance = numpy.random.default_rng(seed)
    opened = numpy.sort(chance.integers(0, chance.integers(1, 60), 50))
    closed = numpy.where(chance.random(50) < 0.2, NEVER, opened + chance.integers(0, 12, 50))
    assert most_open(opened, closed) == levels(opened, closed).max()
    assert most_open(opened[:0], closed[:0]) == 0


def test_it_ends_with_the_commands_that_set_and_rehearse_it(tmp_path: Path) -> None:
    journal(tmp_path, 3)
    said = CliRunner().invoke(command, ["--input", str(tmp_path), "--format", "journal"]).output
    log = read_small_log([str(tmp_path)], "journal")
    assert log is not None
    planned = plan(log, [])
    found = planned.cluster
    assert found is not None
    assert f"set --observe {CLUSTER_CAP} {found.cap}" in page(planned, of="two brokers")
    assert f"at most {found.without_headroom} connections were open at one time, on all brokers together" in said
    for line in (
        f"turnstile config set {CLUSTER_CAP} {found.cap}",
        f"turnstile config set --observe {CLUSTER_CAP} {found.cap}",
    ):
        assert line in said.splitlines()


def test_a_data_directory_is_known_for_a_journal(tmp_path: Path) -> None:
    folder = tmp_path / "data" / "journal"
    folder.mkdir(parents=True)
    journal(folder, 3)
    named, told = (
        CliRunner().invoke(command, ["--input", str(folder.parent), *more]) for more in ([], ["--format", "journal"])
    )
    assert named.exit_code == 0 and named.stdout == told.stdout
    other = CliRunner().invoke(command, ["--input", str(tmp_path)])
    assert other.exit_code == 2 and "Missing option '--format'" in other.output


def test_what_a_killed_process_had_open_has_ended_when_its_shard_is_started_again(spark: Any, tmp_path: Path) -> None:
    written = OneShard()
    same = {"port": 1000, "listener": "A", "version": 1, "held_ms": 0.1}
    for conn in range(1, 6):
        written.add("admitted", conn=conn, ip="10.0.0.1", **same)
    again = {"broker": 0, "shard": 0, "epoch": 2}
    written.add("shard_up", **{**again, "detail": json.dumps({**again, "shards": 1})})
    for conn in range(1, 4):
        written.add("admitted", conn=conn, ip="10.0.0.1", **{**same, "epoch": 2})
    written.written(tmp_path)
    log = read_small_log([str(tmp_path)], "journal")
    assert log is not None
    here = plan(log, [])
    assert here.cluster is not None and here.cluster.without_headroom == 5
    assert here.peaks == {5: 1}
    assert plan(load(spark, [str(tmp_path)], "journal"), []) == here


def test_logins_are_not_all_connections(tmp_path: Path) -> None:
    written = OneShard()
    same = {"conn": 1, "ip": "10.0.0.1", "port": 1000, "listener": "SASL", "version": 1, "held_ms": 0.1}
    written.add("admitted", **same)
    written.close(written.add("authenticated", user="alice", **same))
    written.written(tmp_path)
    log = read_small_log([str(tmp_path)], "journal", by=USER)
    assert log is not None and plan(log, []).cluster is None
