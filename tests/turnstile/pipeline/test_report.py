"""The report's tables and page."""

import re
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from storms import Storm, busy

from turnstile.pipeline.audit import audit_page
from turnstile.pipeline.audit.audit import audit
from turnstile.pipeline.events.journal import here
from turnstile.pipeline.events.journal_events import read
from turnstile.pipeline.pictures import COLOUR_OF, lines
from turnstile.pipeline.report.report_page import page
from turnstile.pipeline.report.report_tables import TABLES, build, in_files, refused_ips


def test_tables_add_up_and_the_page_is_whole(spark: Any, tmp_path: Path) -> None:
    storm = busy()
    built = build(read(spark, [str(storm.write(tmp_path / "journal"))]))
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


def test_an_address_refused_for_three_reasons_shows_three(spark: Any) -> None:
    reasons = ["ip_cap"] * 3 + ["ip_rate"] * 2 + ["broker_cap"]
    rows = [("refused", "10.0.0.1", reason) for reason in reasons] + [("admitted", "10.0.0.1", None)]
    [row] = refused_ips(spark.createDataFrame(rows, "kind string, ip string, reason string"), 1.0).collect()
    assert (row["reasons"], row["refused"], row["admitted"]) == ("ip_cap 3, ip_rate 2, broker_cap 1", 6, 1)


def test_the_page_of_an_audit_says_its_verdict_and_what_was_found(tmp_path: Path) -> None:
    storm = Storm(1).run(60)
    storm.events.pop(30)
    journal = here([storm.end().write(tmp_path)])
    assert journal is not None
    html = audit_page.page(audit(journal), name="<journal>")
    assert "<title>unknown: &lt;journal&gt;</title>" in html
    assert "sequence: unknown" in html and "events are missing" in html
