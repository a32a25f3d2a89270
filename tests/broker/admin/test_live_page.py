"""The live page in a browser: what it shows, what it sends, and what it says."""

import json
import re
from urllib.parse import parse_qsl, urlencode

import pytest
import trio
from live_page import HOSTILE, POINT, browse, dumped
from live_view import LIVE

from broker.admin.connection_filter import conditions
from broker.serve.listed_connections import LISTED_FIELDS, Condition


def test_what_is_no_number_is_not_sent_as_a_quota(tmp_path):
    values = ["1Mb", "-5", "NaN", "1e400", "1,5"]
    result = browse(tmp_path, f"for (const value of {json.dumps(values)}) await setQuota(value);")
    assert result["puts"] == []
    assert result["said"] == [f'"{value}" is not a number: write it as 1000000 or 1MB.' for value in values]


def test_sizes_are_understood(tmp_path):
    values = {"1MB": 1e6, " 512 KiB/s ": 512 * 1024, "50%": 50, "1.5": 1.5}
    replies = [(200, '{"config_version": 8}')] * len(values)
    puts = browse(tmp_path, f"for (const value of {json.dumps(list(values))}) await setQuota(value);", replies)["puts"]
    assert [body["alter"][0]["set"]["producer_byte_rate"] for _, body in puts] == list(values.values())


def test_what_the_server_answers_is_told_and_a_refusal_is_not_taken_for_done(tmp_path):
    replies = [
        (200, '{"config_version": 8}'),
        (400, '{"producer_byte_rate": "Quota must be greater than 0"}'),
        (401, '{"message": "this admin API needs its token.", "code": 401}'),
        (502, ""),
    ]
    result = browse(tmp_path, "for (const value of [1048576, 5, 6, 7]) await setQuota(value);", replies)
    assert result["puts"][0] == [
        "/v1/quotas", {"alter": [{"entity": {"user": "alice"}, "set": {"producer_byte_rate": 1048576}}]},
    ]  # fmt: skip
    assert result["said"] == [
        "user=alice: producer_byte_rate = 1048576, in force on every shard since version 8",
        "Quota must be greater than 0",
        "this admin API needs its token.",
        "The cluster answered with 502.",
    ]


def test_throttled_clients_restarts_and_brokers_own_limits_are_shown_and_these_are_changed_there(tmp_path):
    act = """
      document.querySelector('[aria-label="Change max.connections (broker 2)"]').click();
      await fill(document.querySelector("#limits form"), "60");
    """
    result = browse(tmp_path, act, [(200, '{"config_version": 8}')])
    for shown in (
        "client app",
        "client batch",
        "31 s",
        "20 ms",
        "50 %",
        "7 since the start",
        "max.connections (broker 2)",
        "812 events dropped",
    ):
        assert shown in result["text"]
    assert result["puts"] == [["/v1/cluster_config?broker=2", {"upsert": {"max.connections": "60"}, "remove": []}]]


def test_refused_addresses_that_are_not_shown_are_counted_and_a_click_shows_them(tmp_path):
    act = """
      document.querySelector("#ips .rest button").click();
      await until(() => document.querySelectorAll("#ips tbody tr").length === 64);
      seen.push(document.getElementById("ips").innerText);
    """
    result = browse(tmp_path, act)
    assert "2 of 64 addresses are shown; the others were refused 1,234 times." in result["text"]
    assert "10.0.1.63" in result["seen"][0] and "Show fewer" in result["seen"][0]


def test_the_words_of_the_token_protocol_are_on_a_tab_of_their_own(tmp_path):
    act = """
      document.getElementById("tab-internals").click();
      await until(() => document.querySelector("#pools table"));
      seen.push(document.body.innerText);
    """
    result = browse(tmp_path, act)
    words = ("tokens", "cached", "rpc", "reclaims", "home")
    assert not [word for word in words if re.search(rf"\\b{word}\\b", result["text"].partition("/metrics")[0])]
    assert not [word for word in words if word not in result["seen"][0]]


def test_nothing_is_cut_on_a_narrow_screen(tmp_path):
    act = """
      document.body.style.width = "420px";  // chromium's own windows are no narrower than 500
      for (const tab of ["overview", "internals"]) {
        document.getElementById("tab-" + tab).click();
        await until(() => !document.getElementById(tab).hidden && document.querySelector(`#${tab} td`));
        seen.push(...[...document.querySelectorAll("td, h2, .limit > *")]
          .filter(one => one.getBoundingClientRect().right > 420 || one.scrollWidth > one.clientWidth + 1)
          .map(one => one.textContent));
      }
    """
    assert browse(tmp_path, act, width=500)["seen"] == []


def test_names_that_clients_chose_are_text(tmp_path):
    hostile = "<img src=x onerror=document.title=1><script>document.title=1</script>"
    row = {**LIVE["throttled"][0], "client_id": hostile}
    refused = {**LIVE["top_refused"][0], "ip": hostile}
    result = browse(
        tmp_path,
        "seen.push(document.title, document.querySelectorAll('main img, main script').length);",
        more={"throttled": [row], "top_refused": [refused]},
    )
    assert result["text"].count("<img src=x") == 2 and result["seen"] == ["12,347/s refused · Turnstile", 0]


CHART = "document.getElementById('rates')"


def test_throttled_requests_have_a_chart_below_the_refusals(tmp_path):
    act = f"""
      const words = [...{CHART}.querySelectorAll(".title")].map(one => [one.textContent, one.getBoundingClientRect().y]);
      seen.push(words.sort((a, b) => a[1] - b[1]).map(([word]) => word));
      seen.push({CHART}.querySelectorAll("svg > g:nth-of-type(3) path").length);
    """
    result = browse(tmp_path, act)
    assert result["seen"] == [["admitted, a second", "refused, a second", "throttled requests, a second"], 1]
    assert "throttled: produce" in result["text"]


def test_the_time_that_is_shown_is_chosen_by_keyboard_and_told_by_the_url(tmp_path):
    act = f"""
      const pressed = () => [...document.querySelectorAll(".spans [aria-pressed=true]")].map(one => one.textContent);
      const ago = () => [...{CHART}.querySelectorAll("text")].map(one => one.textContent).filter(text => text.endsWith(" ago"));
      seen.push(pressed(), location.hash, asked.filter(path => path.startsWith("/v1/series")).length);
      const button = document.getElementById("span-30");
      button.focus();
      seen.push(document.activeElement === button, button.tabIndex, button.matches("button"));
      button.click(); // as Enter and Space do on a button
      await until(() => ago().includes("25 min ago"));
      seen.push(pressed(), location.hash, asked.find(path => path.startsWith("/v1/series")));
      history.back();
      await until(() => !ago().includes("25 min ago"));
      seen.push(pressed(), location.hash);
    """
    assert browse(tmp_path, act)["seen"] == [
        ["5 min"], "", 0, True, 0, True, ["30 min"], "#minutes=30", "/v1/series?minutes=30&since=0", ["5 min"], "",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("place", "shown"),
    [
        ("#minutes=1", ["overview", "1 min"]),
        ("#tab=internals&minutes=30", ["internals", "30 min"]),
        ("#internals", ["internals", "5 min"]),
        ("#minutes=7&tab=<img>&addresses=none", ["overview", "5 min"]),
    ],
)
def test_a_link_opens_what_its_sender_saw(tmp_path, place, shown):
    act = """
      seen.push(document.querySelector("[role=tabpanel]:not([hidden])").id);
      seen.push(document.querySelector(".spans [aria-pressed=true]").textContent);
    """
    wait = "await until(() => document.querySelector('#state.up, #state.down'));"
    assert browse(tmp_path, wait + act, place=place, until="#facts span")["seen"] == shown


def test_a_link_lists_all_addresses(tmp_path):
    assert "10.0.1.63" in browse(tmp_path, "seen.push(1);", place="#addresses=all")["text"]


OPENED = "await until(() => document.querySelector('#detail table'));"


def test_a_row_opens_with_its_limits_over_time_and_the_url_says_so(tmp_path):
    act = f"""
      const row = [...document.querySelectorAll("#uses button.open")].find(one => one.textContent.includes("10.0.0.1"));
      seen.push(row.getAttribute("aria-expanded"));
      row.focus(); row.click();
      {OPENED}
      const now = [...document.querySelectorAll("#uses button.open")].find(one => one.textContent.includes("10.0.0.1"));
      seen.push(now.getAttribute("aria-expanded"), document.activeElement.id, location.hash);
      seen.push(document.getElementById("detail").innerText);
      seen.push([...document.querySelectorAll("#detail svg")].map(one => one.getAttribute("aria-label")));
      seen.push(document.querySelectorAll("#detail .limit-line").length, asked.filter(path => /watch|List/.test(path)));
      document.getElementById("detail").dispatchEvent(new KeyboardEvent("keydown", {{key: "Escape"}}));
      await until(() => document.getElementById("detail").hidden);
      seen.push(location.hash, document.activeElement.textContent);
    """
    closed, opened, focus, place, text, charts, limits, asked, after, back = browse(tmp_path, act)["seen"]
    assert (closed, opened, focus, place) == ("false", "true", "detail", "#ip=10.0.0.1&broker=1")
    assert (
        "12,345 admitted and 64 refused since the start" in text and "The 1 newest of 21 connections are shown." in text
    )
    assert charts == [
        "open connections: 19 of 20 (95 %)", "new connections a second: 4.5/s of 5/s (90 %)", "admitted a second: 3/s",
        "refused a second: 2.5/s",
    ]  # fmt: skip
    assert limits == 2
    assert asked[0] == "/v1/watch?ip=10.0.0.1&broker=1&minutes=5&since=0"
    _, _, body = asked[1].partition(" ")
    assert json.loads(body)["filter"] == 'node_id = 1 AND source.ip_address = "10.0.0.1"'
    assert (after, back) == ("", "new connections of 10.0.0.1"), "the keyboard is where it was"


@pytest.mark.parametrize(
    ("written", "broker", "place"),
    [
        (" 10.9.9.9 ", "", "#ip=10.9.9.9"),
        ("2001:db8::1", "2", "#ip=2001%3Adb8%3A%3A1&broker=2"),
        ("app", "", "#client-id=app"),
        ("user=alice", "1", "#user=alice&broker=1"),
        (HOSTILE, "", "#" + urlencode({"client-id": HOSTILE})),
        ("  ", "", ""),
    ],
)
def test_any_address_or_client_can_be_opened_by_its_name(tmp_path, written, broker, place):
    act = f"""
      await fill(document.getElementById("find"), {json.dumps(written).replace("<", chr(92) + "u003c")}, "{broker}");
      await until(() => location.hash === {json.dumps(place)});
      seen.push(document.getElementById("detail").hidden, document.activeElement.id);
      seen.push(document.querySelectorAll("main img, main script").length);
    """
    hidden, focus, made = browse(tmp_path, act)["seen"]
    assert (hidden, made) == (not place, 0)
    assert focus == "detail" or not place


@pytest.mark.parametrize("refusal", [{"message": "there is no broker 9", "code": 400}, {"ip": "there is no broker 9"}])
def test_what_can_not_be_opened_is_said_there_and_the_page_goes_on(tmp_path, refusal):
    act = """
      await until(() => asked.filter(path => path.startsWith("/v1/watch")).length > 2);
      seen.push(document.getElementById("detail-body").textContent, document.getElementById("state").textContent);
    """
    shown, state = browse(tmp_path, act, place="#ip=10.0.0.1&broker=9", refused={"/v1/watch": refusal})["seen"]
    assert shown == "there is no broker 9" and "up" in state


def test_the_keyboard_keeps_its_place_while_rows_are_drawn_anew(tmp_path):
    act = """
      const before = document.querySelector("#uses button.open");
      before.focus();
      await until(() => document.querySelector("#uses button.open") !== before);
      seen.push(document.activeElement === document.querySelector("#uses button.open"));
    """
    assert browse(tmp_path, act)["seen"] == [True]


@pytest.mark.parametrize("name", ["app", HOSTILE, 'a "b" \\ & # = %41 é'])
def test_a_link_opens_a_client_whatever_it_is_called(tmp_path, name):
    place = "#" + urlencode({"client-id": name, "minutes": 30})
    act = f"""
      {OPENED}
      seen.push(document.getElementById("detail-name").textContent, asked.filter(path => /watch|List/.test(path)));
      seen.push(document.title, document.querySelectorAll("main img, main script").length);
      seen.push([...document.querySelectorAll("#detail svg")].map(one => one.getAttribute("aria-label")));
    """
    quota = {
        "used": {"producer_byte_rate": 2e5},
        "limits": {"producer_byte_rate": 1e5},
        "throttle_ms": {"producer_byte_rate": 900.0},
    }
    watch = {"ip": None, "client_id": name, "admitted": None, "refused": None,
             "points": [{**POINT, **quota, "at": 900.0 + n} for n in range(100)]}  # fmt: skip
    title, asked, document_title, made, charts = browse(tmp_path, act, place=place, watch=watch)["seen"]
    assert title == f"client {name}"
    assert (document_title, made) == ("12,347/s refused · Turnstile", 0)
    assert dict(parse_qsl(asked[0].partition("?")[2])) == {"client-id": name, "minutes": "30", "since": "0"}
    (_, test) = conditions(json.loads(asked[1].partition(" ")[2])["filter"], LISTED_FIELDS)
    assert test == Condition("client_id", "=", name)
    assert charts == ["produce: 200 kB/s of 100 kB/s (200 %)", "produce: throttle time: 900 ms"]


def test_an_opened_row_is_not_cut_on_a_narrow_screen_and_is_dark_in_the_dark(tmp_path):
    act = f"""
      document.body.style.width = "420px";
      {OPENED}
      const cut = one => one.getBoundingClientRect().right > 420, card = document.getElementById("detail");
      seen.push([...card.querySelectorAll("*")].filter(cut).map(one => one.tagName));
      seen.push(matchMedia("(prefers-color-scheme: dark)").matches, getComputedStyle(card).backgroundColor);
    """
    dark = "--blink-settings=preferredColorScheme=0"
    cut, is_dark, background = browse(tmp_path, act, place="#ip=10.0.0.1", width=500, options=(dark,))["seen"]
    assert cut == [] and is_dark and background == "rgb(22, 26, 29)"


async def test_it_works_behind_a_token(start_api, tmp_path):
    api = await start_api("secret")
    url = api.url.replace("http://", "http://any:secret@")
    assert "3 shards up" in await trio.to_thread.run_sync(lambda: dumped(tmp_path, url))


async def test_it_works_as_the_admin_api_serves_it(api, tmp_path):
    page = await trio.to_thread.run_sync(lambda: dumped(tmp_path, api.url))
    assert "3 shards up" in page and "2 brokers" in page
    assert "Nothing has been refused." in page and "No limit on connections is set" in page
