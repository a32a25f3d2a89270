"""The suites' runner: what it reads of what suites print, and what it makes of it."""

from __future__ import annotations

import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from scripts.peers.jars import Ran
from scripts.suites import kafka_python, kafka_tools, librdkafka, table
from scripts.suites.franz_go import read


def test_what_go_began_and_did_not_end_has_failed():
    said = "=== RUN   TestOne\n=== RUN   TestOne/a\n    --- PASS: TestOne/a (0.1s)\n=== RUN   TestTwo\n--- SKIP: TestThree (0.0s)\n"
    assert read(said, ["TestOne", "TestTwo", "TestThree"]) == {
        "TestOne": "fail", "TestOne/a": "pass", "TestTwo": "fail", "TestThree": "skip",
    }  # fmt: skip


def test_outcomes_are_read_from_pytests_report(tmp_path):
    report = tmp_path / "junit.xml"
    assert kafka_python.read(report) == {}
    cases = '<testcase name="a"/><testcase name="b"><failure/></testcase><testcase name="c"><skipped/></testcase>'
    report.write_text(f"<testsuites><testsuite>{cases}</testsuite></testsuites>")
    assert kafka_python.read(report) == {"a": "pass", "b": "fail", "c": "skip"}


def test_the_report_of_librdkafkas_runner(tmp_path):
    report = tmp_path / "report.json"
    assert librdkafka.read("0001_a", report) == "fail", "it aborted"
    report.write_text(json.dumps({"tests": {"0001_a": {"state": "PASSED"}, "0002_b": {"state": "SKIPPED"}}}))
    assert [librdkafka.read(name, report) for name in ("0001_a", "0002_b", "0003_c")] == ["pass", "skip", "fail"]


def test_each_command_of_kafkas_tools_has_a_name_of_its_own_and_is_judged():
    listed = kafka_tools.commands()
    assert len({command.name for command in listed}) == len(listed)
    one = kafka_tools.Command("one", "one", 0, ["a+"], "c", "", None)
    assert kafka_tools.fault(one, Ran(0, "aa", "")) is None
    assert kafka_tools.fault(one, Ran(1, "aa", "")) == "exit 1, not 0"
    assert kafka_tools.fault(one, Ran(0, "b", "")) == "it does not say 'a+'"
    assert kafka_tools.fault(one, Ran(0, "a", "c")) == "it says 'c'"
    assert kafka_tools.fault(one, None) == "it did not end"


def test_only_what_kafka_passes_and_turnstile_does_not_is_named():
    def of(**tests: str) -> dict[str, object]:
        return {"measured": "2026-01-01", "tests": tests}

    runs = {"kafka": of(a="pass", b="again", c="fail", d="skip"), "shards": of(a="again", b="fail", c="fail")}
    assert table.missed(runs, "shards") == ["b"]
    assert table.missed(runs, "brokers") == [], "it was not run"
    found = {"kafka-tools": {"version": "1", "runs": runs}}
    made = "\n".join(table.lines(found, [kafka_tools.SUITE]))
    assert "| 2 of 3 (1 at the second try, 1 skipped) | 1 of 3 (1 at the second try) | – |" in made
    assert "Kafka's tools, Turnstile, 2 shards: `b`" in made
