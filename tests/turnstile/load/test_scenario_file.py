import pytest

from turnstile.load.scenario_file import build, find, shipped
from turnstile.load.spec import UNTIL_THE_END, SpecInvalid


def test_every_shipped_scenario_is_whole():
    names = {scenario.name for scenario in shipped()}
    assert {"nat", "leak", "restart", "deploy", "per-request"} <= names
    for scenario in shipped():
        assert scenario.title and scenario.story and scenario.suggested
        assert scenario.length_s() is not None and scenario.length_s() <= 20


def test_a_group_by_rate_has_as_many_clients_as_fit_its_duration():
    (group,) = build({"group": [{"rate": 50, "duration_s": 4, "hold_s": "end"}]}, "x").groups
    assert (group.clients, group.hold_s) == (200, UNTIL_THE_END)


@pytest.mark.parametrize(
    ("document", "says"),
    [
        ({}, "at least one group"),
        ({"group": [{"client": 5}]}, "no key 'client'"),
        ({"group": [{"clients": 0}]}, "clients must be at least 1"),
        ({"group": [{"clients": "five"}]}, "clients can't be 'five'"),
        ({"group": [{"clients": 2.5}]}, "clients can't be 2.5"),
        ({"group": [{"reconnect": True}]}, "duration_s is needed"),
        ({"group": [{"hold_s": -1}]}, "hold_s must be a number of at least 0"),
        ({"group": [{"sources": "127.0.0.0/99"}]}, "127.0.0.0/99"),
        ({"group": {"clients": 5}}, r"\[\[group\]\]"),
        ({"group": [{}], "probe": "ping"}, "probe must be one of"),
        ({"group": [{"recorded": 1}]}, "no key 'recorded'"),
        ({"traffic": [{"producers": 1}]}, "topic"),
        ({"group": [{}, {}]}, "same name"),
        ({"traffic": [{"topic": "t"}]}, "needs seconds"),
        ({"group": [{}], "limits": 5}, r"\[limits\]"),
        ({"group": [{}], "quota": [{"user": "a"}]}, "needs a user, client-id or ip, and a rate"),
        ({"group": [{}], "quota": [{"user": "a", "producer_byte_rate": "x"}]}, "producer_byte_rate must be a number"),
        ({"group": [{}], "suggested": {}}, "no key 'suggested'"),
        ({"story": 5, "group": [{}]}, "story can't be 5"),
    ],
)
def test_what_is_wrong_is_said(document, says):
    with pytest.raises(SpecInvalid, match=says):
        build(document, "x")


def test_a_scenario_is_found_by_name_or_by_file(tmp_path):
    assert find("nat").name == "nat"
    path = tmp_path / "mine.toml"
    path.write_text("[[group]]\nclients = 3\n")
    assert find(str(path)).groups[0].clients == 3
    with pytest.raises(SpecInvalid, match=r"no scenario 'nope'.*nat"):
        find("nope")
    path.write_text("[[group\n")
    with pytest.raises(SpecInvalid, match=r"mine\.toml"):
        find(str(path))
