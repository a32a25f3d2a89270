"""Plans in which IPv6 clients of one network count as one address: as a plain replay of the networks, here and on Spark."""

from __future__ import annotations

import json
from ipaddress import ip_address
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from plain import Row, replay
from test_plan import random_log

from shards.settings.addresses import counted_address
from turnstile.cli.plan import plan as command
from turnstile.pipeline.inputs.connection_logs import load
from turnstile.pipeline.inputs.entities import EntityType, Ips
from turnstile.pipeline.inputs.small_log import read_small_log
from turnstile.pipeline.plan.candidates import Candidate
from turnstile.pipeline.plan.plan import plan
from turnstile.pipeline.plan.plan_text import printed
from turnstile.pipeline.plan.what_if import NEVER


def spread_out(log: list[Row]) -> list[Row]:
    """The same with each client at one of seven addresses of its IPv6 /56."""
    return [
        (f"2001:db8:0:{ip_address(ip).packed[-1] % 7:x}{number % 7}::{number}" if number % 3 else ip, *rest)
        for number, (ip, *rest) in enumerate(log)
    ]  # type: ignore[misc]


def written(folder: Path, log: list[Row]) -> Path:
    lines = [
        f"{ip},{opened},{'' if closed == NEVER else closed},{listener}\n"
        for ip, opened, closed, listener in sorted(log, key=lambda row: row[1])
    ]
    (folder / "a.csv").write_text("ip,opened_at,closed_at,listener\n" + "".join(lines))
    return folder


def candidates(by: EntityType) -> list[Candidate]:
    return [
        Candidate(cap=2, by=by),
        Candidate(cap=3, rate=1, by=by),
        Candidate(cap=1, overrides="[2001:db8:0:10::9]:4,[2001:db8:0:21::]/64:2,10.0.0.1:3", by=by),
        Candidate(cap=3, broker_cap=12, by=by),
    ]


@pytest.mark.parametrize("prefix", [48, 60, 64, 100])
def test_clients_of_a_network_are_replayed_as_one_address(spark: Any, tmp_path: Path, prefix: int) -> None:
    by = Ips(prefix)
    log = sorted(spread_out(random_log(prefix, 300)), key=lambda row: row[1])
    small = read_small_log([str(written(tmp_path, log))], "csv", by=by)
    assert small is not None
    found = plan(small, candidates(by))
    networks = [(counted_address(ip, prefix), *rest) for ip, *rest in log]
    assert found.entities == len({row[0] for row in networks})
    for candidate, one in zip(candidates(by), found.candidates, strict=True):
        refused = replay(networks, candidate)  # type: ignore[arg-type]
        assert refused and one["refused"] == len(refused), candidate
    assert plan(load(spark, [str(tmp_path)], "csv", by=by), candidates(by)).as_json() == found.as_json()


def test_a_plan_of_networks_is_for_turnstile_alone_and_says_so(tmp_path: Path) -> None:
    small = read_small_log([str(written(tmp_path, spread_out(random_log(1, 200))))], "csv", by=Ips(64))
    assert small is not None
    text = printed(plan(small, []))
    assert "rpk" not in text and "kafka-configs" not in text
    assert "turnstile up --set turnstile.ipv6.prefix.length=64" in text
    asked = ["--input", str(tmp_path), "--format", "csv", "--json"]
    narrow, wide = (
        json.loads(CliRunner().invoke(command, [*asked, "--ipv6-prefix", prefix]).stdout) for prefix in ("128", "32")
    )
    assert narrow["ips"] > wide["ips"] and "redpanda" in narrow["recommended"]["simple"]["commands"]
    done = CliRunner().invoke(command, [*asked, "--by", "user", "--ipv6-prefix", "64"])
    assert done.exit_code == 2 and "--ipv6-prefix needs --by ip" in done.output
