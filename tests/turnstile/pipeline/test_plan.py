"""Plans on Spark: figures equal the plain replay's, and the recommendation is the smallest that holds."""

import random
from collections import Counter
from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from plain import Row, replay
from pyspark.sql import functions as F

from turnstile.pipeline.errors import PipelineError
from turnstile.pipeline.inputs.connection_logs import Input, load
from turnstile.pipeline.plan.candidates import Candidate, grid, paste
from turnstile.pipeline.plan.log_sums import LogSums
from turnstile.pipeline.plan.outcomes import outcomes
from turnstile.pipeline.plan.plan import LogPeriod, plan
from turnstile.pipeline.plan.plan_page import page
from turnstile.pipeline.plan.plan_text import printed
from turnstile.pipeline.plan.task_sums import MINUTE_US
from turnstile.pipeline.plan.what_if import NEVER

START = 1_767_600_000_000_000
CANDIDATES = [
    Candidate(cap=2),
    Candidate(cap=5, overrides="10.0.0.0/30:1,10.0.0.9:50"),
    Candidate(cap=3, rate=1),
    Candidate(broker_cap=10),
    Candidate(broker_cap=25),
    Candidate(cap=2, broker_cap=12, rate=2),
    Candidate(broker_rate=2),
    Candidate(cap=4, broker_rate=3),
]


def random_log(seed: int, count: int) -> list[Row]:
    """A few busy addresses and many quiet ones, some connections that never end and some without length."""
    chance = random.Random(seed)
    log = []
    for _ in range(count):
        quiet = f"10.0.{chance.randrange(3)}.{chance.randrange(20, 60)}"
        ip = chance.choice(["10.0.0.1", "10.0.0.2", "10.0.0.9", "10.0.0.9", "2001:db8::9", quiet])
        opened = START + chance.randrange(60_000) * 1000
        length = chance.choice([0, chance.randrange(20_000_000), chance.randrange(2_000_000), NEVER])
        log.append((ip, opened, NEVER if length == NEVER else opened + length, chance.choice(["A", "B"])))
    return log


def as_input(spark: Any, log: list[Row]) -> Input:
    rows = [(ip, opened, None if closed == NEVER else closed, listener) for ip, opened, closed, listener in log]
    frame = spark.createDataFrame(rows, "ip string, opened long, closed long, listener string").coalesce(1)
    connections = frame.select(
        "ip", F.lit(1).alias("port"), F.timestamp_micros("opened").alias("opened_at"),
        F.timestamp_micros("closed").alias("closed_at"), "listener", F.lit(0).cast("long").alias("bytes"),
        F.lit("t").alias("source"),
    )  # fmt: skip
    numbers = (F.col("opened").alias("opened_us"), F.col("closed").alias("closed_us"))
    arrived = frame.select("ip", *numbers, "listener", F.lit(None).cast("string").alias("bad"))
    bad = frame.where(F.lit(False)).select(F.col("listener").alias("reason"))
    return Input(arrived, connections, bad, len(log), ["t"], "csv")


def a_minute_apart(log: list[Row]) -> list[Row]:
    """The same with every connection opened in a minute of its own, in the log's order, and lasting as much longer."""
    apart = []
    for index, (ip, opened, closed, listener) in enumerate(log):
        start = START + index * MINUTE_US
        apart.append((ip, start, NEVER if closed == NEVER else start + (closed - opened) * 60, listener))
    return apart


def told(spark: Any, log: list[Row]) -> LogSums:
    return LogSums(outcomes(as_input(spark, log).arrived, CANDIDATES, 2).toArrow())


def test_every_connection_is_decided_as_by_a_plain_replay(spark: Any) -> None:
    log = a_minute_apart(random_log(7, 400))
    found = told(spark, log)
    for number, candidate in enumerate(CANDIDATES):
        refused = [index for index, what in replay(log, candidate).items() if what == "refused"]
        assert found.minutes[number] == {log[index][1] // MINUTE_US: 1 for index in refused}, candidate
        if not (candidate.rate or candidate.broker_rate):
            assert refused


def test_sums_are_those_of_a_plain_replay(spark: Any) -> None:
    log = random_log(7, 400)
    found = told(spark, log).of_candidate
    for number, candidate in enumerate(CANDIDATES):
        expected = replay(log, candidate)
        kinds = Counter(expected.values())
        ips = {log[index][0] for index in expected}
        networks = {ip.rpartition(":" if ":" in ip else ".")[0] for ip in ips}
        sums = [found[what, number] for what in ("refused", "delayed", "entities", "network")]
        assert sums == [kinds["refused"], kinds["delayed"], len(ips), len(networks)], candidate
        assert expected


def test_headroom_of_a_candidate_is_counted_as_that_of_a_recommendation(spark: Any) -> None:
    """Peaks are 2, 4 and 4: a cap of 3 has half of 2 left. One that touches every address has no room that could be told."""
    peaks = {"10.0.0.1": 2, "10.0.0.2": 4, "10.0.0.9": 4}
    log = [(ip, START + n, NEVER, "A") for ip, peak in peaks.items() for n in range(peak)]
    tried = [*(Candidate(cap=cap) for cap in (1, 3, 4, 6)), Candidate(broker_cap=20), Candidate(broker_cap=5)]
    found = plan(as_input(spark, log), tried, at_most_refused=0.05, headroom=Fraction(1, 2), incident=None)
    assert [one["headroom"] for one in found.candidates] == [None, 0.5, 0.0, 0.5, 1.0, 0.0]


def test_a_plan_adds_them_up(spark: Any) -> None:
    log = random_log(8, 300)
    incident = LogPeriod(datetime.fromtimestamp(START / 1e6 + 20, UTC), datetime.fromtimestamp(START / 1e6 + 40, UTC))
    found = plan(as_input(spark, log), CANDIDATES[:4], at_most_refused=0.05, headroom=Fraction(0), incident=incident)
    for candidate, one in zip(CANDIDATES, found.candidates, strict=False):
        expected = replay(log, candidate)
        refused = [index for index, what in expected.items() if what == "refused"]
        inside = [index for index in refused if 20_000_000 <= log[index][1] - START < 40_000_000]
        assert one["refused"] == len(refused)
        assert one["entities_affected"] == len({log[index][0] for index in expected})
        assert one["compare"]["incident_refused"] == len(inside)
        assert one["compare"]["quiet_refused"] == len(refused) - len(inside)
    plain, best = found.recommended
    assert len(replay(log, Candidate(cap=plain.cap))) == round(plain.refused_share * len(log)) <= 0.05 * len(log)
    assert len(replay(log, Candidate(cap=plain.cap - 1))) > 0.05 * len(log)
    entries = paste(best.cap, best.overrides)["kafka"]["max.connections.per.ip.overrides"]
    refused = replay(log, Candidate(cap=best.cap, overrides=entries))
    assert len(refused) == round(best.refused_share * len(log)) <= 0.05 * len(log)
    assert best.cap < plain.cap and "10.0.0.9" in best.overrides
    answer = found.as_json()
    assert answer["connections"] == 300 and answer["ips"] == len({row[0] for row in log}) and answer["bad_rows"] == 0
    text, html = printed(found), page(found, of="<test>")
    assert f"rpk cluster config set kafka_connections_max_per_ip {best.cap}" in text
    assert "&lt;test&gt;" in html and "http://" not in html and "https://" not in html


def test_a_variant_hits_what_a_plain_replay_of_it_refuses(spark: Any) -> None:
    log = random_log(9, 300)
    found = plan(as_input(spark, log), [Candidate(cap=2)], at_most_refused=0.05)
    peaks = Counter(found.peaks)
    for each, name in zip(found.recommended, ("simple", "tight"), strict=True):
        overrides = paste(each.cap, each.overrides)["kafka"].get("max.connections.per.ip.overrides", "")
        refused = replay(log, Candidate(cap=each.cap, overrides=overrides))
        assert (each.name, each.refused, each.entities_hit) == (
            name,
            len(refused),
            len({log[at][0] for at in refused}),
        )
        assert each.cap == -(-each.without_headroom * 3 // 2) and sum(peaks.values()) == found.entities
        assert set(each.hit) == {log[at][0] for at in refused} or len(each.hit) == 5
        assert all(value > each.cap for value in each.overrides.values())


def test_a_log_of_the_generator_names_its_nats(spark: Any, tmp_path: Path) -> None:
    import runpy
    import sys

    argv, sys.argv = (
        sys.argv,
        ["x", "--connections", "8000", "--ips", "400", "--days", "0.2", "--out", str(tmp_path / "conn.log.gz")],
    )
    try:
        runpy.run_path(str(Path(__file__).parents[3] / "scripts" / "make_connlog.py"), run_name="__main__")
    finally:
        sys.argv = argv
    found = plan(load(spark, [str(tmp_path)], "zeek"), [])
    kinds = {talker.name: talker.kind for talker in found.talkers}
    assert {ip for ip, kind in kinds.items() if kind == "nat"} >= {"192.0.2.0", "192.0.2.1", "192.0.2.2"}
    assert kinds["198.51.100.0"] == "leak"
    assert found.connections == 8000


def test_a_grid_is_every_combination() -> None:
    assert len(grid([5, 10], [100], [], [1, 2], "10.0.0.1:7")) == 4
    assert grid([5], [], [], [])[0].limits == {"kafka_connections_max_per_ip": 5}
    assert grid([], [], [], []) == []
    with pytest.raises(PipelineError, match="can't be set"):
        grid([-1], [], [], [])
    with pytest.raises(PipelineError, match="can't be set"):
        grid([5], [], [], [], "10.0.0.1")


def test_settings_to_paste_in_both_vocabularies() -> None:
    assert paste(5, {"10.0.0.1": 50, "2001:db8::1": 7}) == {
        "redpanda": {
            "kafka_connections_max_per_ip": "5",
            "kafka_connections_max_overrides": '["10.0.0.1:50", "[2001:db8::1]:7"]',
        },
        "kafka": {"max.connections.per.ip": "5", "max.connections.per.ip.overrides": "10.0.0.1:50,[2001:db8::1]:7"},
    }
