"""A plan's answer for a log is what the emulator does when the load driver replays that log."""

import json
from pathlib import Path
from typing import Any

from harness import running

from turnstile.pipeline.inputs.connection_logs import load
from turnstile.pipeline.plan.candidates import Candidate
from turnstile.pipeline.plan.plan import plan

CAP = 2
STEP_S = 5  # between events of the log: a fifth of that in the replay, far more than the driver may be late


def write_log(path: Path) -> None:
    """Two addresses that open every STEP_S and hold for one to four steps, and one that is always within its cap."""
    fields = ["ts", "id.orig_h", "id.orig_p", "id.resp_p", "proto", "duration"]
    lines = ["#separator \\x09", "#fields\t" + "\t".join(fields)]
    for number in range(10):
        at_s = number * STEP_S
        holds = [("10.0.0.1", at_s, (2 + number % 3) * STEP_S + 2), ("10.0.0.2", at_s + 1, 3 * STEP_S + 2)]
        holds += [("10.0.0.3", at_s + 2, STEP_S)]
        lines += [f"{1000 + at:.6f}\t{ip}\t{40000 + number}\t9092\ttcp\t{held}" for ip, at, held in holds]
    path.write_text("\n".join(lines) + "\n")


def test_the_emulator_refuses_what_the_plan_said(spark: Any, tmp_path: Path) -> None:
    log = tmp_path / "conn.log"
    write_log(log)
    found = plan(load(spark, [str(log)], "zeek"), [Candidate(cap=CAP)])
    with running(tmp_path / "data", "--set", f"kafka_connections_max_per_ip={CAP}") as cluster:
        arguments = ("--replay", str(log), "--speed", "5", "--sources", "127.1.0.0/24", "--json")
        said = cluster.turnstile("load", "--bootstrap", cluster.bootstrap, *arguments)
    answer = json.loads(next(line for line in said.splitlines() if line.startswith("{")))
    refused = found.candidates[0]["refused"]
    assert (answer["attempted"], answer["refused"]) == (found.connections, refused)
    assert 0 < refused < found.connections
