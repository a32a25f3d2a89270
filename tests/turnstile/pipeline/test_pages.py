"""What all pages have in common, and a plan's page, without Spark."""

import colorsys
import re
from datetime import UTC, datetime
from typing import Any
from xml.etree import ElementTree

from broker.journal.schema import REASONS
from turnstile.pipeline.html_page import copyable, preformatted, table
from turnstile.pipeline.inputs.entities import IP
from turnstile.pipeline.pictures import COLOUR_OF, COLOURS, bars
from turnstile.pipeline.plan.candidates import Candidate
from turnstile.pipeline.plan.peaks_picture import peaks_picture
from turnstile.pipeline.plan.plan import LeftOut, LimitPlan
from turnstile.pipeline.plan.plan_page import page
from turnstile.pipeline.plan.plan_text import printed
from turnstile.pipeline.plan.talkers import Talker
from turnstile.pipeline.plan.variants import Variant

PEAKS = {1: 900, 2: 80, 7: 12, 30: 3, 1002: 1}


def judged(candidate: Candidate) -> dict[str, Any]:
    same = {"refused": 5, "delayed": 0, "entities_affected": 2, "networks_affected": 1, "refused_share": 0.05}
    return {"limits": candidate.limits, **same, "worst_minute": None, "headroom": None}


def plan_of(*candidates: Candidate) -> LimitPlan:
    return LimitPlan(
        by=IP,
        connections=10_000,
        entities=996,
        peaks=PEAKS,
        bad_rows=3,
        bad_reasons={"no <time>": 3},
        first=datetime(2026, 1, 5, 8, 30, tzinfo=UTC),
        last=datetime(2026, 1, 6, tzinfo=UTC),
        candidates=[judged(each) for each in candidates],
        overrides=candidates[0].overrides,
        headroom=0.5,
        recommended=[
            Variant("simple", 30, {}, 20, 2, 0.0002, 1, {"198.51.100.1": 1002}, 3, 970),
            Variant("tight", 7, {"10.0.0.1": 45}, 4, 9, 0.0009, 4, {"198.51.100.1": 1002}, 12, 990),
        ],
        cluster=None,
        cluster_rate=None,
        left_out=LeftOut(["198.51.100.1"], 1000),
        talkers=[Talker("198.51.100.1", 1002, 1000, 0.1, "leak", None, ["they last <1 h>"])],
        notes=["A note."],
    )


def pictures(html: str) -> list[str]:
    found = re.findall(r"<svg.*?</svg>", html, re.S)
    for each in found:
        ElementTree.fromstring(each)
    return found


def test_every_plan_has_a_picture_with_each_of_its_caps_marked() -> None:
    caps = [Candidate(cap=cap) for cap in (5, 10, 400)]
    [drawn] = pictures(page(plan_of(*caps), of="x"))
    assert sorted(int(each) for each in re.findall(r"a cap of (\d+):", drawn)) == [5, 7, 10, 30, 400]
    assert "a cap of 10: 4 addresses had more open" in drawn and drawn.count("(log scale)") == 2
    assert "7 tight" in drawn and "30 simple" in drawn
    html = page(plan_of(Candidate(broker_cap=500), Candidate(rate=3)), of="x")
    [drawn] = pictures(html)
    assert "a cap of 7:" in drawn and "kafka_connections_max=500; connection_creation_rate=3." in html
    assert pictures(peaks_picture({1: 1}, [], {1: "simple"}, "address")) and pictures(
        peaks_picture({5_000_000: 2}, [10**9], {1: "simple"}, "address")
    )


def test_a_plan_says_its_range_the_overrides_and_what_is_left_out() -> None:
    plan = plan_of(Candidate(cap=5, overrides="10.0.0.0/8:9"), Candidate(cap=6, overrides="10.0.0.0/8:9"))
    for said in (printed(plan), page(plan, of="x")):
        assert "2026-01-05 08:30 to 2026-01-06 00:00 UTC" in said
        assert "Each with kafka_connections_max_overrides=10.0.0.0/8:9" in said
        assert "198.51.100.1 (1,000 connections, 970 of them refused by simple, 990 of them refused by tight)" in said
        assert "hit 198.51.100.1 (1,002 open at most) and 3 more" in said and "A note." in said
        assert "50% headroom" in said and "less than 50% left" in said
        assert "turnstile config set kafka_connections_max_per_ip 30" in said.replace("<wbr>", "")
    answer = plan.as_json()
    assert answer["left_out"] == {"ips": ["198.51.100.1"], "connections": 1000}
    assert [each["per_ip_cap"] for each in answer["recommended"].values()] == [30, 7]
    assert sum(each["addresses"] for each in answer["peaks"]) == 996


def test_a_page_is_named_and_scoped_for_readers_that_cant_see_it() -> None:
    html = page(plan_of(Candidate(cap=5), Candidate(cap=6)), of="<x>")
    assert "<x>" not in html and "no &lt;time&gt;" in html
    assert html.count("<table") == html.count("<caption>") == 5
    for row in re.findall(r"<tbody>(.*?)</tbody>", html, re.S):
        assert row.count("<tr>") == row.count('<tr><th scope="row">')
    assert all('role="img" aria-label="' in each for each in pictures(html))
    assert "prefers-color-scheme: dark" in html and "width=device-width" in html


def test_a_reason_has_one_colour_and_none_is_green() -> None:
    of_reasons = {COLOUR_OF[reason] for reason in REASONS}
    assert len(of_reasons) == len(REASONS) and not of_reasons & set(COLOURS)
    for colour in (*COLOUR_OF.values(), *COLOURS):
        red, green, blue = (int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5))
        hue, _, saturation = colorsys.rgb_to_hls(red, green, blue)
        assert not 65 / 360 < hue < 185 / 360 or saturation < 0.1, colour


def test_bars_are_a_table_whose_parts_have_the_colours_of_their_reasons() -> None:
    drawn = bars(
        [("a & b", {"ip_cap": 3, "ip_rate": 1}), ("c", {"ip_cap": 2})], label="address", value="refused", caption="who"
    )
    assert ElementTree.fromstring(f"<div>{drawn}</div>").findtext(".//caption") == "who"
    assert re.findall(r"\*([\d.]+)\);background:(#\w+)", drawn) == [
        ("0.7500", COLOUR_OF["ip_cap"]),
        ("0.2500", COLOUR_OF["ip_rate"]),
        ("0.5000", COLOUR_OF["ip_cap"]),
    ]


def test_a_narrow_page_breaks_words_and_lists_where_they_may_be_broken() -> None:
    assert preformatted("a=1.2.3.4:5,6.7.8.9:10") == "<pre>a=1.2.3.4:5,<wbr>6.7.8.9:10</pre>"
    html = table([["limits", "looks like", "refused"], ["a=1", "two words", 3]], caption="c", text=["looks like"])
    assert '<td class="text">two words</td><td>3</td>' in html


def test_lines_to_copy_have_a_button_and_stay_as_they_are() -> None:
    html = copyable("Kafka", "a --b 'c,d' <(printf x)")
    found = ElementTree.fromstring(html.replace("<wbr>", ""))
    assert (found.findtext("h3"), found.findtext("pre")) == ("Kafka", "a --b 'c,d' <(printf x)")
    assert "navigator.clipboard" in (found.find("button").attrib["onclick"])  # type: ignore[union-attr]
