"""Overrides of host names follow DNS: in force with the change that names them, and again when DNS has other addresses."""

from __future__ import annotations

import pytest
import trio
from direct import Cluster

from shards.config.host_overrides import AT_ONCE, WITHIN_S
from shards.config.limit_notes import notes_in_force
from shards.config.store import Store
from shards.settings.errors import ConfigInvalid

OVERRIDES = "kafka_connections_max_overrides"
EDGE = "edge.example"


def caps(cluster: Cluster, *ips: str) -> list[int | None]:
    """On every shard the same."""
    each = [[shard.image.rule_of(f"ip:{ip}").cap for ip in ips] for shard in cluster.shards.values()]
    assert all(one == each[0] for one in each)
    return each[0]


async def set_overrides(cluster: Cluster, text: str | None, *, validate_only: bool = False) -> int:
    return await cluster.coordinator.alter_settings("me", [["", OVERRIDES, text]], validate_only)


async def test_a_change_is_in_force_for_the_addresses_of_its_names_when_it_returns(store: Store) -> None:
    cluster = Cluster(store, addresses={EDGE: ["10.0.0.1", "10.0.0.2"]})
    await cluster.start()
    before = cluster.coordinator.state.version
    assert await set_overrides(cluster, f"{EDGE}:5,10.0.0.2:9") == before + 1
    assert caps(cluster, "10.0.0.1", "10.0.0.2", "10.0.0.3") == [5, 9, None]
    assert ("host", EDGE, ["10.0.0.1", "10.0.0.2"]) in store.records()


async def test_a_name_without_address_is_refused_and_changes_nothing(store: Store) -> None:
    cluster = Cluster(store)
    await cluster.start()
    for validate_only in (False, True):
        with pytest.raises(
            ConfigInvalid, match=r"names host edge\.example, which has no address: Name or service not known"
        ):
            await set_overrides(cluster, f"{EDGE}:5", validate_only=validate_only)
    with pytest.raises(ConfigInvalid, match="has no address"):
        await cluster.coordinator.alter_observed("me", [["", OVERRIDES, f"{EDGE}:5"]])
    assert store.records() == []


async def test_addresses_follow_dns_and_outlive_its_silence_and_a_restart(store: Store) -> None:
    cluster = Cluster(store, addresses={EDGE: ["10.0.0.1"]})
    await cluster.start()
    await set_overrides(cluster, f"{EDGE}:5")
    version = cluster.coordinator.state.version
    assert await cluster.coordinator.follow_hosts() == {}
    assert cluster.coordinator.state.version == version, "no version where nothing has changed"
    cluster.addresses[EDGE] = ["10.0.0.7", "10.0.0.8"]
    await cluster.coordinator.follow_hosts()
    assert caps(cluster, "10.0.0.1", "10.0.0.7", "10.0.0.8") == [None, 5, 5]
    del cluster.addresses[EDGE]
    assert await cluster.coordinator.follow_hosts() == {EDGE: "Name or service not known"}
    assert await set_overrides(cluster, f"{EDGE}:6,10.0.0.9:1") == version + 2, "a known name need not be found again"
    again = Cluster(store)
    await again.start()
    assert caps(again, "10.0.0.1", "10.0.0.7", "10.0.0.9") == [None, 6, 1]
    await set_overrides(again, None)
    await again.coordinator.follow_hosts()
    assert not again.coordinator.state.hosts


async def test_names_of_the_command_line_and_observed_ones_are_looked_up_too(store: Store) -> None:
    cluster = Cluster(
        store,
        static={f"/{OVERRIDES}": f"{EDGE}:5,gone.example:1"},
        addresses={EDGE: ["10.0.0.1"], "o.example": ["10.0.0.2"]},
    )
    await cluster.start()
    assert caps(cluster, "10.0.0.1") == [None]
    assert await cluster.coordinator.follow_hosts() == {"gone.example": "Name or service not known"}
    assert caps(cluster, "10.0.0.1") == [5]
    assert [note for note in notes_in_force(cluster.coordinator.state) if "host" in note] == [
        "the override of host gone.example holds for no address: DNS has none for it"
    ]
    await cluster.coordinator.alter_observed("me", [["", OVERRIDES, "o.example:2"]])
    assert caps(cluster, "observed:10.0.0.2") == [None]
    image = next(iter(cluster.shards.values())).image
    assert image.observed_limits is not None and image.observed_limits.rule_of("ip:10.0.0.2").cap == 2


async def test_silent_names_hold_up_no_others(store: Store, autojump_clock: object) -> None:
    cluster = Cluster(
        store, static={f"/{OVERRIDES}": f"{EDGE}:5," + ",".join(f"z{n}.example:1" for n in range(2 * AT_ONCE))}
    )
    await cluster.start()

    async def look_up(name: str) -> list[str]:
        if name != EDGE:
            await trio.sleep_forever()
        return ["10.0.0.1"]

    cluster.coordinator._look_up = look_up
    began_s = trio.current_time()
    assert len(await cluster.coordinator.follow_hosts()) == 2 * AT_ONCE
    assert caps(cluster, "10.0.0.1") == [5] and trio.current_time() - began_s <= 4 * WITHIN_S


async def test_of_an_overruled_override_no_name_is_looked_up(store: Store) -> None:
    cluster = Cluster(store, static={f"/{OVERRIDES}": f"{EDGE}:5"})
    await cluster.start()
    await set_overrides(cluster, "10.0.0.1:7")
    assert await cluster.coordinator.follow_hosts() == {}


async def test_what_is_observed_from_the_start_may_name_a_host_without_address(store: Store) -> None:
    cluster = Cluster(store)
    await cluster.start()
    changes = [["", OVERRIDES, f"{EDGE}:5"], ["", "kafka_connections_max_per_ip", "3"]]
    await cluster.coordinator.alter_observed("me", changes, hosts_may_lack=True)
    assert len(cluster.coordinator.state.observed) == 2


async def test_a_reset_keeps_the_addresses_of_the_command_lines_names(store: Store) -> None:
    cluster = Cluster(store, static={f"/{OVERRIDES}": f"{EDGE}:5"}, addresses={EDGE: ["10.0.0.1"]})
    await cluster.start()
    await cluster.coordinator.follow_hosts()
    await cluster.coordinator.reset("me", [])
    assert caps(cluster, "10.0.0.1") == [5]
