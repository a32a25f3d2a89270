"""The report's tables and page."""

import re
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from local_rdd import in_slices
from storms import Storm, busy

from turnstile.pipeline.audit import audit_page
from turnstile.pipeline.audit.audit import audit
from turnstile.pipeline.events import spark_journal, spark_rows
from turnstile.pipeline.events.journal import Journal, here
from turnstile.pipeline.events.spark_events import read
from turnstile.pipeline.pictures import COLOUR_OF, lines
from turnstile.pipeline.report.report import REPORTED, Built, build, in_files
from turnstile.pipeline.report.report_page import page
from turnstile.pipeline.report.report_tables import TABLES


def built_here(storm: Storm, folder: Path) -> Built:
    journal = here([storm.write(folder)], columns=REPORTED)
    assert journal is not None
    return build(journal)


@pytest.mark.parametrize("seed", range(6))
def test_a_report_made_here_and_one_of_spark_are_equal(
    spark: Any, tmp_path: Path, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In many tasks: as many as for some million events; one of the storms on Spark itself."""
    storm = busy(seed, reasons=True)
    mine = built_here(storm, tmp_path)
    monkeypatch.setattr(spark_rows, "TASK_ROWS", 50)
    monkeypatch.setattr(spark_journal, "SLICE_ROWS", 50)
    if seed:
        whole = here([tmp_path], columns=REPORTED)
        assert whole is not None
        table = whole.rows.table()
        instants = sorted(set(table["mono_ns"].to_pylist()))
        journal = Journal(in_slices(table, instants[20::40]), [], is_live=False)
    else:
        journal = read(spark, [str(tmp_path)]).journal(columns=REPORTED)
    theirs = build(journal)
    for name, rows in mine.rows.items():
        assert rows == theirs.rows[name], name
        assert mine.tables[name].schema.names == theirs.tables[name].schema.names
    assert mine[2:] == theirs[2:]


def test_tables_add_up_and_the_page_is_whole(tmp_path: Path) -> None:
    storm = busy()
    built = built_here(storm, tmp_path / "journal")
    count = {kind: sum(event["kind"] == kind for event in storm.events) for kind in ("admitted", "refused", "closed")}
    assert built.summary["refused"] == count["refused"] == sum(row["refused"] for row in built.rows["refused_ips"])
    assert sum(row["count"] for row in built.rows["decisions"]) == count["admitted"] + count["refused"]
    assert sum(row["count"] for row in built.rows["hold_times"]) == count["closed"]
    assert built.rows["throttled"][0]["throttle_s"] == sum(range(100, 120)) / 1000
    tokens = {row["kind"]: 0 for row in built.rows["tokens"]}
    for row in built.rows["tokens"]:
        tokens[row["kind"]] += row["tokens"]
    assert tokens == {"grant": 60, "reclaim": 40}
    html = page(built, name="a & b")
    assert "a &amp; b" in html and "&lt;app&gt;" in html and "<app>" not in html
    assert re.search(r"kafka_connections_max\w* \d+ -&gt; \d+", html)  # what a change changed, not its version
    assert 'scope="col"' in html and "<caption>" in html and 'aria-label="connections' in html
    _check_levels(built.rows["open_per_ip"])
    assert not re.search(r"(src|href)=\"?(https?:)?//", html)
    assert "Nothing of this kind" not in html
    for svg in re.findall(r"<svg.*?</svg>", html, re.S):
        ElementTree.fromstring(svg)
    more = built._replace(summary={**built.summary, "refused": count["refused"] + 1234})
    assert "all others" not in html and "all others" in page(more, name="a") and "1,234" in page(more, name="a")
    assert f"each change of a limit and each lost shard, {len(built.marks)} in all." in html
    files = in_files(built, "csv")
    assert files.keys() == {f"{name}.csv" for name in TABLES}
    assert files["refused_ips.csv"].decode().startswith('"ip","reasons","refused","admitted","refused_share"')


def _check_levels(rows: list[dict[str, Any]]) -> None:
    """What a step of time leaves is at most what was open in it, and in the end all is closed."""
    assert all(0 <= row["left"] <= row["open"] for row in rows)
    last = {row["ip"]: row["left"] for row in rows}
    assert set(last.values()) == {0}


def test_a_cap_is_drawn_only_where_it_held_and_ticks_are_round() -> None:
    drawn = lines({"cap": [(1000.0, 5.0), (1010.0, None), (1020.0, 8.0), (1030.0, 8.0)]}, y="open", stepped=True)
    assert drawn.count("<polyline") == 2
    assert re.findall(r">(\d\d:\d\d:\d\d)<", drawn) == [
        "00:16:40",
        "00:16:45",
        "00:16:50",
        "00:16:55",
        "00:17:00",
        "00:17:05",
        "00:17:10",
    ]
    assert COLOUR_OF["ip_cap"] in lines({"ip_cap": [(0.0, 1.0), (9.0, 1.0)]}, y="refused")


def test_an_address_refused_for_three_reasons_shows_three(tmp_path: Path) -> None:
    storm = Storm(1)
    same = {"ip": "10.0.0.1", "listener": "EXTERNAL", "version": 1}
    for number, reason in enumerate(["ip_cap"] * 3 + ["ip_rate"] * 2 + ["broker_cap"]):
        storm.add("refused", 0, conn=number + 1, reason=reason, **same)
    storm.add("admitted", 0, conn=9, **same)
    [row] = built_here(storm, tmp_path).rows["refused_ips"]
    assert (row["reasons"], row["refused"], row["admitted"]) == ("ip_cap 3, ip_rate 2, broker_cap 1", 6, 1)


def test_networks_of_refused_addresses_are_24s_and_64s(tmp_path: Path) -> None:
    storm = Storm(1)
    for number, ip in enumerate(["10.0.0.1", "10.0.0.2", "10.0.0.2", "2001:db8::1", "2001:db8::2", "2001:db8:0:1::2"]):
        storm.add("refused", 0, conn=number + 1, ip=ip, listener="EXTERNAL", reason="ip_cap", version=1)
    rows = built_here(storm, tmp_path).rows["refused_networks"]
    assert [(row["network"], row["addresses"], row["refused"]) for row in rows] == [
        ("10.0.0.0/24", 2, 3), ("2001:db8::/64", 2, 2), ("2001:db8:0:1::/64", 1, 1),
    ]  # fmt: skip


def test_a_journal_without_events_is_a_report_without_anything(tmp_path: Path) -> None:
    storm = Storm(1)
    storm.events.clear()
    storm.add("shard_up", 0)
    built = built_here(storm, tmp_path)
    assert built.summary["events"] == 1 and not any(built.rows.values())
    assert "Nothing of this kind" in page(built, name="x")


def test_the_page_of_an_audit_says_its_verdict_and_what_was_found(tmp_path: Path) -> None:
    storm = Storm(1).run(60)
    storm.events.pop(30)
    journal = here([storm.end().write(tmp_path)])
    assert journal is not None
    html = audit_page.page(audit(journal), name="<journal>")
    assert "<title>unknown: &lt;journal&gt;</title>" in html
    assert "sequence: unknown" in html and "events are missing" in html


def test_the_page_of_a_report_begins_with_what_came_of_it_and_ends_with_what_is_inside(tmp_path: Path) -> None:
    html = page(built_here(busy(4, reasons=True), tmp_path), name="x")
    headings = re.findall(r"<h2>(.*?)</h2>", html)
    assert headings[0] == "In short" and [each.startswith("Inside: ") for each in headings] == [False] * 8 + [True] * 2
    short = html[: html.index("<h2>Admitted and refused")]
    assert re.search(
        r"[\d,]+ of [\d,]+ connections were refused \([\d.]+%\): \d+ by the cap of their address \(ip_cap\)", short
    )
    assert "Refused most: " in short and "alice &lt;app&gt; was throttled 20 times by producer_byte_rate" in short
    links, sections = (re.findall(pattern, html) for pattern in (r'href="#([^"]+)"', r'<section id="([^"]+)"'))
    assert links == sections[1:]


def test_an_audit_says_from_when_to_when_and_under_what_limits_in_colours(tmp_path: Path) -> None:
    storm = Storm(1, per_ip=5, total=15)
    storm.caps["kafka_connections_max_per_ip"] = 9
    storm.version = 2
    storm.config(-1)
    storm.config(-1, acknowledged=True)
    journal = here([storm.end().write(tmp_path)])
    assert journal is not None
    result = audit(journal)
    assert result.limits == {"kafka_connections_max": ["15"], "kafka_connections_max_per_ip": ["5", "9"]}
    assert result.as_json()["from"].startswith("2020-09-13T12:43:20")
    html = audit_page.page(result, name="j")
    assert "2020-09-13 12:43:20 to 2020-09-13 12:43:20 UTC" in html and "5 -&gt; 9" in html
    assert html.count(f'<span class="badge" style="color:{audit_page.COLOURS["held"]}">held</span>') > 10
    assert html.index("<h2>Verdict") < html.index("<h2>Checks") < html.index("<h2>Limits in force")
