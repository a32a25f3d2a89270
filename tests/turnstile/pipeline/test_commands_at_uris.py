"""The commands with URIs for what they read and write, and with a data directory, in this process's session."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import click
import pytest
from click.testing import CliRunner, Result
from storms import Storm, busy

from turnstile.cli import audit, followed, plan, report


@pytest.fixture
def run(spark: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Runs a command in the session of all tests."""

    @contextmanager
    def session(*_: Any, **__: Any) -> Iterator[Any]:
        yield spark

    @contextmanager
    def starting(*_: Any) -> Iterator[Any]:
        yield SimpleNamespace(spark=lambda: spark)

    for module in (audit, followed, report):
        monkeypatch.setattr(module, "spark_session", session)
    monkeypatch.setattr(plan, "spark_starting", starting)

    def invoke(command: click.Command, *arguments: str) -> Result:
        return CliRunner().invoke(command, arguments)

    return invoke


def test_an_audit_and_its_page(run: Any, far: str, tmp_path: Path) -> None:
    storm = Storm(1).run(60).end()
    storm.write(tmp_path / "journal")
    done = run(audit.audit, f"{far}/journal", "--html", f"{far}/audit.html", "--json")
    assert (done.exit_code, json.loads(done.stdout)["verdict"]) == (0, "held"), done.output
    assert "<title>held: viewfs://" in (tmp_path / "audit.html").read_text()
    (tmp_path / "journal" / "1.parquet").unlink()
    assert run(audit.audit, f"{far}/journal").exit_code == 2
    missing = run(audit.audit, f"{far}/nowhere")
    assert (missing.exit_code, missing.stderr) == (2, f"There is no journal at {far}/nowhere.\n")


def test_a_plan_and_its_page(run: Any, far: str, tmp_path: Path) -> None:
    (tmp_path / "conn.csv").write_text("ip,opened_at,closed_at\n10.0.0.1,1000,1009\n10.0.0.1,1001,1002\n")
    log = ("--input", f"{far}/conn.csv", "--format", "csv", "--per-ip-cap", "1")
    done = run(plan.plan, *log, "--html", f"{far}/plan.html", "--json")
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["candidates"][0]["refused"] == 1
    assert "kafka_connections_max_per_ip" in (tmp_path / "plan.html").read_text()
    missing = run(plan.plan, "--input", f"{far}/nothing", "--format", "csv")
    assert (missing.exit_code, missing.stderr) == (2, f"There is no {far}/nothing.\n")


def test_following_and_what_was_followed(run: Any, far: str, tmp_path: Path) -> None:
    storm = Storm(4, ips=8).run(200).end()
    storm.write(tmp_path / "journal")
    refused = [event for event in storm.events if event["kind"] == "refused"]
    nothing = run(followed.followed, f"{far}/counts")
    assert nothing.exit_code == 2
    assert "has nothing that `turnstile report --follow` has counted" in nothing.stderr
    done = run(report.report, f"{far}/journal", "--follow", "--once", "--out", f"{far}/counts")
    assert done.exit_code == 0, done.output
    told = json.loads(run(followed.followed, f"{far}/counts", "--by", "kind", "--json").stdout)
    assert told == {"rows": [{"kind": "refused", "events": len(refused), "throttle_ms": 0}], "of": 1}
    shown = run(followed.followed, f"{far}/counts", "--top", "1").stdout.splitlines()
    assert shown[0].split() == ["minute", "ip", "kind", "reason", "events", "throttled", "for"]
    assert len(shown) == 2


def test_a_data_directory_is_followed_by_its_journal(run: Any, tmp_path: Path) -> None:
    busy().write(tmp_path / "journal")
    done = run(report.report, str(tmp_path), "--follow", "--once", "--out", str(tmp_path / "counts"))
    assert done.exit_code == 0, done.output
    shown = run(followed.followed, str(tmp_path / "counts"), "--json")
    assert shown.exit_code == 0, shown.output
    assert json.loads(shown.stdout)["rows"]
