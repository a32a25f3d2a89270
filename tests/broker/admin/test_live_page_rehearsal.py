"""Limits that are observed, on the live page in a browser: how one begins and ends, and what it counted."""

from live_page import browse
from live_view import LIVE


def test_a_limit_and_a_quota_are_observed_from_their_forms(tmp_path):
    act = """
      const observe = async form => {
        form.querySelector('[title^="It refuses"]').click();
        await until(() => puts.length > said.length && !form.querySelector("button:disabled"));
        said.push(document.getElementById("say").textContent);
      };
      for (const name of ["max.connections", "max.connections (broker 2)"]) {
        document.querySelector(`[aria-label="Change ${name}"]`).click();
        document.querySelector("#limits input").value = "60";
        await observe(document.querySelector("#limits form"));
      }
      const form = document.querySelector("#quotas form"), fields = form.querySelectorAll("input, select");
      ["user=alice", "producer_byte_rate", "1MB"].forEach((value, n) => fields[n].value = value);
      await observe(form);
      fields[0].value = "";
      form.querySelector('[title^="It refuses"]').click();
      seen.push(puts.length, document.activeElement === fields[0]);
    """
    notes = '{"config_version": 8, "notes": ["broker 2 keeps its own value 50 of max.connections"]}'
    result = browse(tmp_path, act, [(200, notes), *[(200, '{"config_version": 9}')] * 2])
    assert result["puts"] == [
        ["/v1/cluster_config?observe=true", {"upsert": {"max.connections": "60"}, "remove": []}],
        ["/v1/cluster_config?broker=2&observe=true", {"upsert": {"max.connections": "60"}, "remove": []}],
        ["/v1/quotas?observe=true", {"alter": [{"entity": {"user": "alice"}, "set": {"producer_byte_rate": 1e6}}]}],
    ]
    assert result["said"] == [
        "max.connections = 60 is observed, not enforced, on every shard since version 8. broker 2 keeps its own value 50 of "
        "max.connections",
        "max.connections (broker 2) = 60 is observed, not enforced, on every shard since version 9",
        "user=alice: producer_byte_rate = 1000000 is observed, not enforced, on every shard since version 9",
    ]
    assert result["seen"] == [3, True], "whose quota it is has to be said first"


def test_what_can_not_be_observed_has_no_button_for_it(tmp_path):
    act = """
      document.querySelector('[aria-label="Change max.connections"]').click();
      seen.push([...document.querySelectorAll("#limits form button")].map(one => one.textContent));
    """
    limits = [{**LIVE["limits"][0], "text": "", "doc": "", "vocabulary": "kafka", "observable": False}]
    assert browse(tmp_path, act, more={"limits": limits})["seen"] == [["Set", "Unset", "Cancel"]]


def test_what_is_observed_has_its_own_count_and_is_stopped_there(tmp_path):
    entities = [({"ip": "10.0.0.1"}, 5.0), ({"ip": "10.0.0.2"}, 5.0), ({"client-id": None}, 1e6)]
    quotas = [{"entity": entity, "values": {"connection_creation_rate" if "ip" in entity else "producer_byte_rate": value}}
              for entity, value in entities]  # fmt: skip
    caps = [("max.connections", 40, 3), ("max.connections", 30, 9), ("connection_creation_rate", 5.0, 7), ("ip_cap", 2, 100),
            ("kafka_connections_max_overrides", 2, 1), ("kafka_connections_max_overrides", 8, 1)]  # fmt: skip
    observed = {
        **LIVE["observed"],
        "set": {"max.connections": 40, "kafka_connections_max_overrides": ["10.0.0.1:2", "10.0.0.2:8"]},
        "brokers": {"1": {"max.connections": 30}},
        "caps": [{"limit": name, "value": value, "waits": False, "count": count} for name, value, count in caps],
        "quotas": {**LIVE["observed"]["quotas"], "set": quotas},
    }
    act = """
      for (const row of document.querySelectorAll("#observed tbody tr"))
        seen.push([...row.cells].slice(0, -1).map(one => one.textContent));
      for (const row of [...document.querySelectorAll("#observed tbody tr")].slice(2)) {
        row.querySelector("button").click();
        await until(() => puts.length > said.length);
        await until(() => !row.querySelector("button:disabled"));
        said.push(document.getElementById("say").textContent);
      }
      const limits = [...document.querySelectorAll("#limits .limit")].map(one => one.innerText);
      seen.push(limits.filter(text => text.includes("observed")));
    """
    result = browse(tmp_path, act, [(200, '{"config_version": 9}')] * 4, more={"observed": observed})
    assert result["seen"][:-1] == [
        ["max.connections", "40", "3"],
        ["kafka_connections_max_overrides", "10.0.0.1:2, 10.0.0.2:8", "2"],
        ["max.connections (broker 1)", "30", "9"],
        ["connection_creation_rate (ip=10.0.0.1)", "5", "7 together"],
        ["connection_creation_rate (ip=10.0.0.2)", "5", "7 together"],
        ["client-id=<default>", "produce", "1000000", "77"],
    ]
    assert [" ".join(text.split()) for text in result["seen"][-1]] == ["max.connections 100 observed: 40 Change"]
    assert result["puts"] == [
        ["/v1/cluster_config?broker=1&observe=true", {"upsert": {}, "remove": ["max.connections"]}],
        *[["/v1/quotas?observe=true", {"alter": [{"entity": entity, "remove": [key]}]}]
          for entity, key in (({"ip": "10.0.0.1"}, "connection_creation_rate"), ({"ip": "10.0.0.2"}, "connection_creation_rate"),
                              ({"client-id": None}, "producer_byte_rate"))],
    ]  # fmt: skip
    assert result["said"][0] == "max.connections (broker 1) is no longer observed, on every shard since version 9"
    assert result["said"][-1].startswith("producer_byte_rate of client-id=<default> is no longer observed")
