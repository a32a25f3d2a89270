"""Limits and how much of each is used, on the live page in a browser."""

from live_page import browse
from live_view import LIVE


def test_open_connections_stand_beside_the_cap_of_the_cluster_where_there_is_one(tmp_path):
    of = {"broker": None, "what": "connections", "of": "cluster", "used": 12_345, "limit": 20_000,
          "by": "turnstile.cluster.max.connections"}  # fmt: skip
    totals = {**LIVE["totals"], "waiting": 0, "throttled": {}, "admitted": 0, "borrows": 0}
    tile = "seen.push(document.querySelector('.tile .more').textContent);"
    assert browse(tmp_path, tile, more={"totals": totals})["seen"] == ["40 of 100 (40 %) on broker 2"]
    shown = browse(tmp_path, tile, more={"totals": totals, "uses": [of, *LIVE["uses"]]})["seen"]
    assert shown == ["12,345 of 20,000 (61 %) on all brokers"]


def test_each_use_stands_beside_the_limit_of_its_broker_and_is_coloured_by_it(tmp_path):
    act = """
      const color = (element, property) => getComputedStyle(element)[property];
      const names = ["full", "near", "high", "roomy"], known = names.map(name => {
        const sample = document.body.appendChild(document.createElement("i"));
        sample.style.color = `var(--${name})`;
        return color(sample, "color");
      });
      for (const row of document.querySelectorAll("#uses tbody tr"))
        seen.push([row.cells[0].firstChild.firstChild.textContent, row.cells[1].textContent, row.cells.item(3).textContent,
          names[known.indexOf(color(row.querySelector(".bar i"), "backgroundColor"))]]);
    """
    result = browse(tmp_path, act)
    assert result["seen"] == [
        ["connections of 2001:db8:ffff:ffff::1", "0", "50 of 50 (100 %)", "full"],
        ["new connections of 10.0.0.1", "1", "18/s of 20/s (92 %)", "near"],
        ["connections of the broker", "2", "40 of 100 (40 %)", "roomy"],
    ]
    assert "112 kB/s of 100 kB/s (111 %)" in result["text"] and "broker 0" in result["text"]


def test_limits_that_are_close_are_counted_whether_they_are_shown_or_not(tmp_path):
    told = "All limits, including those of addresses and clients: 1 reached, 4 from 90 %, 5 from 80 %."
    assert told in browse(tmp_path)["text"]
    assert told in browse(tmp_path, more={"uses": []})["text"]
    assert "Of all limits" not in browse(tmp_path, more={"close": []})["text"]


def test_uses_that_are_not_shown_are_told_of(tmp_path):
    uses = [{**LIVE["uses"][0], "of": f"ip:10.0.1.{n}"} for n in range(12)]
    assert (
        "The 9 fullest are shown; open any other address or client below."
        in browse(tmp_path, more={"uses": uses})["text"]
    )
    assert "fullest are shown" not in browse(tmp_path)["text"]


def test_a_users_row_opens_the_user(tmp_path):
    use = {**LIVE["uses"][0], "broker": 2, "of": "user:al:ice"}
    act = """
      document.querySelector("#uses button.open").click();
      await until(() => document.querySelector("#detail table"));
      seen.push(location.hash, document.getElementById("detail-name").textContent);
    """
    assert browse(tmp_path, act, more={"uses": [use]})["seen"] == ["#user=al%3Aice&broker=2", "user al:ice"]
