"""The limits a scenario suggests: commands, and a cluster that is under them and then as it was."""

import pytest
import trio

from turnstile.admin_client import AdminClient, AdminError
from turnstile.load.scenario_file import build, shipped
from turnstile.load.suggestion import Suggestion, in_force

PER_IP, OVERRIDES = "kafka_connections_max_per_ip", "kafka_connections_max_overrides"
ALICE = {"user": "alice", "client-id": None}


def test_the_commands_set_what_the_file_says():
    document = {
        "group": [{}],
        "limits": {PER_IP: 50, "max": {"connections": 100}, OVERRIDES: {"127.1.0.1": 400}},
        "quota": [{"user": "a b", "client-id": "<default>", "producer_byte_rate": 1048576}],
    }
    assert build(document, "x").suggested.commands() == [
        "turnstile config set kafka_connections_max_per_ip 50",
        "turnstile config set max.connections 100",
        "turnstile config set kafka_connections_max_overrides 127.1.0.1:400",
        "turnstile quota set 'user=a b' 'client-id=<default>' producer_byte_rate=1048576",
    ]


async def in_thread(function):
    return await trio.to_thread.run_sync(function)


@pytest.fixture
async def admin(start_api):
    """Of a cluster with a static setting, a live one, one on top of a static one, and a quota."""
    api = await start_api(static={f"/{PER_IP}": "7", "/max.connections": "90"})
    client = AdminClient(api.url)

    def prepare():
        client.put("/v1/cluster_config", {"upsert": {OVERRIDES: "10.0.0.1:5", "max.connections": 80}, "remove": []})
        client.put("/v1/quotas", {"alter": [{"entity": ALICE, "set": {"producer_byte_rate": 10.0}, "remove": []}]})

    await in_thread(prepare)
    return client


def state(client):
    return client.get("/v1/cluster_config"), client.get("/v1/quotas")


SUGGESTION = Suggestion(
    {PER_IP: "3", OVERRIDES: "127.1.0.1:4", "max.connections": "70", "kafka_connections_max": "60"},
    ((ALICE, {"producer_byte_rate": 20.0, "consumer_byte_rate": 30.0}), ({"ip": None}, {"connection_creation_rate": 5.0})),
)  # fmt: skip


async def test_they_are_in_force_and_then_everything_is_as_before(admin):
    def use():
        before = state(admin)
        with pytest.raises(ZeroDivisionError), in_force(SUGGESTION, admin):
            config, quotas = state(admin)
            assert [config[name] for name in SUGGESTION.settings] == [3, ["127.1.0.1:4"], 70, 60]
            assert {"entity": {"ip": None}, "values": {"connection_creation_rate": 5.0}} in quotas["quotas"]
            assert {"entity": ALICE, "values": {"producer_byte_rate": 20.0, "consumer_byte_rate": 30.0}} in quotas[
                "quotas"
            ]
            raise ZeroDivisionError
        assert state(admin) == before
        _, live, *_ = admin.get("/v1/config/history")["history"]
        set_again = {name for _, name, _, value in live["changes"] if value is not None}
        assert set_again == {f"/{OVERRIDES}", "/max.connections"}, "a static value is not set as a live one"

    await in_thread(use)


@pytest.mark.parametrize(
    "wrong",
    [
        Suggestion({PER_IP: "many"}),
        Suggestion({"max.conections": "5"}, ((ALICE, {"producer_byte_rate": 20.0}),)),
        Suggestion({PER_IP: "3"}, (({"user": "bob"}, {"connection_creation_rate": 5.0}),)),
    ],
    ids=["value", "name", "quota"],
)
async def test_limits_that_cannot_be_change_nothing(admin, wrong):
    def use():
        before = state(admin)
        with pytest.raises(AdminError), in_force(wrong, admin):
            pytest.fail("not reached")
        assert state(admin) == before

    await in_thread(use)


async def test_every_shipped_suggestion_can_be(admin):
    def use():
        for scenario in shipped():
            assert scenario.suggested.commands()
            with in_force(scenario.suggested, admin):
                pass

    await in_thread(use)
