"""The rate of a whole cluster that a plan recommends: what a plain replay of all arrivals refuses, whichever broker they came to;
on Spark as here; and what a log can't tell is said."""

from __future__ import annotations

import json
import random
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from one_shard import OneShard

from shards.settings.broker_config import CLUSTER_CAP, CLUSTER_RATE
from turnstile.cli.plan import plan as command
from turnstile.pipeline.inputs.connection_logs import load
from turnstile.pipeline.inputs.small_log import read_small_log
from turnstile.pipeline.plan.plan import LimitPlan, plan
from turnstile.pipeline.plan.plan_page import page
from turnstile.replay.stream import replay

START_US, START_NS = 1_700_000_000_000_000, 50_000_000_000
MINUTE_MS = 60_000


class Brokers(OneShard):
    """Two brokers with a shard each, the second of which starts with the first; `window`: of their rates."""

    def __init__(self, *records: tuple[str, str, str]) -> None:
        super().__init__(*records)
        self.conn = 0
        self.shard_up(0, 1)
        self.shard_up(1, 2)
        config = {"changes": [list(record) for record in records], "full": True, "acknowledged": False}
        self.add("config", broker=1, epoch=2, version=1, detail=json.dumps(config))
        for event in self.events:
            event |= {"ts": START_US, "mono_ns": START_NS}

    def shard_up(self, broker: int, epoch: int) -> dict[str, Any]:
        place = {"broker": broker, "shard": 0, "epoch": epoch}
        self.events = [each for each in self.events if (each["kind"], each["epoch"]) != ("shard_up", epoch)]
        return self.add("shard_up", **place, detail=json.dumps({**place, "shards": 1, "brokers": 2}))

    def came(
        self, at_ms: int, *, refused: str | None = None, held_ms: float = 0.0, set_s: int = 0, **place: int
    ) -> None:
        """A connection to either broker, decided `held_ms` later; the wall clock is `set_s` ahead of what it was."""
        self.conn += 1
        broker = place.get("broker", self.conn % 2)
        at = {"broker": broker, "shard": 0, "epoch": place.get("epoch", broker + 1)}
        why = {"reason": refused, "limit": "a", "limit_value": 1.0} if refused else {}
        decided_ns = int((at_ms + held_ms) * 1_000_000)
        event = self.add(
            "refused" if refused else "admitted", conn=self.conn, ip=f"10.0.0.{self.conn % 40}", port=1000, listener="A",
            version=1, held_ms=held_ms, **at, **why,
        )  # fmt: skip
        event |= {"ts": START_US + decided_ns // 1000 + set_s * 1_000_000, "mono_ns": START_NS + decided_ns}


def arrivals(seed: int, count: int = 300) -> list[int]:
    """In ms, in order: some all the time, and a burst."""
    chance = random.Random(seed)
    burst = chance.randrange(MINUTE_MS)
    usual = [chance.randrange(MINUTE_MS) for _ in range(count - count // 3)]
    return sorted([*usual, *(burst + chance.randrange(400) for _ in range(count // 3))])


def crowd(folder: Path, seed: int, *records: tuple[str, str, str]) -> list[int]:
    """A journal of both brokers; what it has is when each connection that asked arrived, in ms."""
    chance = random.Random(seed)
    brokers = Brokers(*records)
    came = arrivals(seed)
    for at_ms in came:
        brokers.came(
            at_ms, refused=chance.choice([None, None, "ip_cap", "cluster_rate"]), held_ms=chance.choice([0, 250])
        )
        if not chance.randrange(5):
            brokers.came(at_ms, refused=chance.choice(["core_rate", "proxy_header", "fd_limit"]))
    brokers.written(folder)
    return came


def replayed(came: list[int], per_s: int, **settings: int) -> int:
    """How many of them a plain replay refuses."""
    lines: list[dict[str, Any]] = [{"do": "setup", "listeners": ["OF_0", "OF_1"]}]
    lines += [{"do": "set", "name": name, "value": value} for name, value in settings.items()]
    lines += [{"do": "set", "name": CLUSTER_RATE, "value": per_s}]
    lines += [
        {"at": at_ms, "do": "connect", "id": n, "ip": f"10.0.0.{n % 40}", "listener": f"OF_{n % 2}"}
        for n, at_ms in enumerate(came)
    ]
    answers = map(json.loads, replay([json.dumps({"at": 0, **line}) for line in lines]))
    return sum(each["reason"] == "cluster_rate" for each in answers)


def planned(folder: Path, **asked: Any) -> LimitPlan:
    log = read_small_log([str(folder)], "journal")
    assert log is not None
    return plan(log, [], **asked)


@pytest.mark.parametrize("seed", range(6))
def test_its_numbers_are_those_of_a_plain_replay_of_all_that_asked(tmp_path: Path, seed: int) -> None:
    came = crowd(tmp_path, seed)
    found = planned(tmp_path, headroom=Fraction(1, 4), at_most_refused=0.1, cluster_rates=(1, 2, 5)).cluster_rate
    assert found is not None and found.arrivals == len(came)
    simple, tight = found.recommended
    assert replayed(came, simple.without_headroom) == 0 < replayed(came, simple.without_headroom - 1)
    assert 0 < replayed(came, tight.without_headroom) <= len(came) // 10 < replayed(came, tight.without_headroom - 1)
    for each in (simple, tight):
        assert each.rate == -(-each.without_headroom * 5 // 4)
    for asked in (simple, tight, *found.tried):
        assert asked.refused == replayed(came, asked.rate) and asked.refused_share == asked.refused / len(came)


def test_the_window_is_that_of_the_cluster(tmp_path: Path) -> None:
    came = crowd(tmp_path, 1, ("static", "/quota.window.num", "3"), ("setting", "/quota.window.num", "2"))
    found = planned(tmp_path, cluster_rates=(20,)).cluster_rate
    assert found is not None and found.window == (2, 1000)
    assert found.tried[0].refused == replayed(came, 20, **{"quota.window.num": 2}) > replayed(came, 20)


def test_spark_finds_the_same(spark: Any, tmp_path: Path) -> None:
    crowd(tmp_path, 7)
    here = planned(tmp_path, cluster_rates=(3,), at_most_refused=0.05)
    source = load(spark, [str(tmp_path)], "journal")
    assert here.cluster_rate is not None and here.cluster is not None
    there = plan(source, [], cluster_rates=(3,), at_most_refused=0.05)
    assert there.as_json() == here.as_json() and there.cluster_rate == here.cluster_rate


def csv(folder: Path, came: list[int]) -> Path:
    file = folder / "log.csv"
    lines = [f"10.0.0.{n % 40},{START_US + at_ms * 1000},0.1" for n, at_ms in enumerate(came)]
    file.write_text("\n".join(["ip,start,secs", *lines, "no address,1700000000000000,1"]) + "\n")
    return file


COLUMNS = {"ip": "ip", "opened_at": "start", "duration_s": "secs"}


def test_of_another_log_of_which_it_is_said_that_it_is_of_all_brokers(spark: Any, tmp_path: Path) -> None:
    came = arrivals(9)
    places = [str(csv(tmp_path, came))]
    log = read_small_log(places, "csv", columns=COLUMNS)
    assert log is not None
    here = plan(log, [], whole_cluster=True, cluster_rates=(4,))
    assert here.cluster_rate is not None and here.cluster is not None
    assert here.cluster_rate.tried[0].refused == replayed(came, 4) > 0
    assert plan(load(spark, places, "csv", columns=COLUMNS), [], whole_cluster=True, cluster_rates=(4,)) == here
    untold = plan(log, [])
    assert untold.cluster is None and untold.cluster_rate is None
    assert "does not say whether it has the connections to all brokers" in untold.notes[-1]


def test_a_wall_clock_that_is_set_changes_no_rate_and_is_said(tmp_path: Path) -> None:
    brokers = Brokers()
    for n in range(60):  # three a second for twenty seconds; in the middle the clock is set back by nine
        brokers.came(n * 333, set_s=0 if n < 30 else -9)
    brokers.written(tmp_path)
    found = planned(tmp_path)
    assert found.cluster_rate is not None
    least = found.cluster_rate.recommended[0].without_headroom
    assert replayed([n * 333 for n in range(60)], least) == 0 and least <= 4
    assert any("The wall clock was set while this journal was written, by 9 s" in each for each in found.notes)


def test_a_machine_that_was_started_again_has_begun_mono_ns_anew(tmp_path: Path) -> None:
    brokers = Brokers()
    for n in range(30):
        brokers.came(1000 + n * 300, broker=0)
    brokers.shard_up(0, 7)
    brokers.events[-1] |= {"ts": START_US + 3_600_000_000, "mono_ns": START_NS - 40_000_000_000}
    for n in range(30):
        brokers.came(n * 300 - 30_000, set_s=3700, broker=0, epoch=7)
    brokers.written(tmp_path)
    found = planned(tmp_path)
    assert found.cluster_rate is not None and any("was started again" in each for each in found.notes)
    assert replayed([*(1000 + n * 300 for n in range(30)), *(3_670_000 + n * 300 for n in range(30))],
                    found.cluster_rate.recommended[0].without_headroom) == 0  # fmt: skip
    assert found.cluster_rate.recommended[0].without_headroom <= 4, "runs of an hour's distance do not add up"


def test_shards_that_are_started_again_begin_no_new_clock(tmp_path: Path) -> None:
    brokers = Brokers()
    for n in range(20):
        brokers.came(n * 100, broker=0)
    brokers.shard_up(0, 9)
    brokers.events[-1] |= {"ts": START_US + 2_100_000, "mono_ns": START_NS + 2_100_000_000}
    for n in range(20):
        brokers.came(2200 + n * 100, broker=0, epoch=9)
    brokers.written(tmp_path)
    assert not any("was started again" in each for each in planned(tmp_path).notes)


def test_of_a_broker_without_events_nothing_is_known(tmp_path: Path) -> None:
    brokers = Brokers()
    for n in range(20):
        brokers.came(n * 100, broker=0)
    brokers.events = [each for each in brokers.events if each["broker"] != 1]
    brokers.written(tmp_path)
    found = planned(tmp_path, cluster_rates=(3,))
    assert found.cluster is None and found.cluster_rate is None
    assert "Of 2 brokers the journal has no event of broker 1" in found.notes[-1]
    said = CliRunner().invoke(command, ["--input", str(tmp_path), "--format", "journal"]).output
    assert "no cap and no rate of the whole cluster is recommended" in said and CLUSTER_CAP not in said


def test_a_part_that_cannot_be_read_is_said(tmp_path: Path) -> None:
    crowd(tmp_path, 3)
    (tmp_path / "b1-s0-e000002-000000009999.parquet").write_bytes(b"PAR1 no more")
    assert any("is not a whole Parquet file; its events are missing" in each for each in planned(tmp_path).notes)


def test_a_journal_that_does_not_say_how_many_brokers_there_were(tmp_path: Path) -> None:
    written = OneShard()
    same = {"conn": 1, "ip": "10.0.0.1", "port": 1000, "listener": "A", "version": 1, "held_ms": 0.1}
    written.close(written.add("admitted", **same))
    written.written(tmp_path)
    found = planned(tmp_path)
    assert found.cluster_rate is not None and "does not say how many brokers its cluster had" in found.notes[0]


def test_it_ends_with_the_commands_that_set_it_and_rehearse_it(tmp_path: Path) -> None:
    crowd(tmp_path, 4)
    options = ["--input", str(tmp_path), "--format", "journal", "--cluster-rate", "3", "--at-most-refused", "0.1"]
    said = CliRunner().invoke(command, options).output
    found = planned(tmp_path, at_most_refused=0.1)
    assert found.cluster_rate is not None
    simple, tight = found.cluster_rate.recommended
    for each in (simple, tight):
        assert f"turnstile config set {CLUSTER_RATE} {each.rate}" in said.splitlines()
        assert f"turnstile config set --observe {CLUSTER_RATE} {each.rate}" in said.splitlines()
    assert f"set {CLUSTER_RATE} {tight.rate}" in page(found, of="two brokers")
    assert json.loads(CliRunner().invoke(command, [*options, "--json"]).output)["cluster_rate"]["tried"][0]["rate"] == 3


def test_what_it_is_not_made_of_is_refused(tmp_path: Path) -> None:
    file = csv(tmp_path, [1, 2, 3])
    options = ["--input", str(file), "--format", "csv", "--columns", "ip=ip,opened_at=start,duration_s=secs"]
    alone = CliRunner().invoke(command, [*options, "--cluster-rate", "5"])
    assert alone.exit_code == 2 and "--cluster-rate needs --whole-cluster" in alone.output
    zero = CliRunner().invoke(command, [*options, "--whole-cluster", "--cluster-rate", "0"])
    assert zero.exit_code != 0 and "A candidate can't be set" in zero.output
    users = CliRunner().invoke(command, ["--by", "user", *options, "--whole-cluster"])
    assert users.exit_code == 2 and "--whole-cluster needs --by ip" in users.output
