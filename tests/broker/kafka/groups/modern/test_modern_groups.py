"""Groups of one shard, of each protocol: what was answered is kept, a failed write changes nothing, and members are bounded."""

import pytest
from group_shards import SHARDS

from broker.storage.record_file import COMPACT_BYTES
from broker.wire import codes


@pytest.fixture(params=SHARDS, ids=lambda each: each.__name__)
def shard(request, tmp_path):
    return request.param(tmp_path)


def test_a_member_that_was_lost_is_not_known_to_the_successor_and_the_group_stays(shard):
    epoch = shard.beat("m0", 0).epoch
    shard.now_ms += shard.config.session_ms
    shard.groups.tick(shard.now_ms)
    shard.restart()
    assert shard.beat("m0", epoch).code == codes.UNKNOWN_MEMBER_ID
    group = shard.groups.get("g")
    assert (len(group.members), group.epoch, group.changed_ms) == (0, epoch + 1, shard.now_ms)


def test_a_change_that_cannot_be_written_did_not_happen(shard, monkeypatch):
    def full(*_):
        raise OSError("no space")

    shard.beat("m0", 0)
    known = shard.store.stored_group("g", shard.groups.kind).members["m0"]
    with monkeypatch.context() as patch:
        patch.setattr(shard.store, "store_group", full)
        assert shard.beat("m1", 0).code == codes.COORDINATOR_NOT_AVAILABLE
        assert shard.beat("m1", 0, group="other").code == codes.COORDINATOR_NOT_AVAILABLE
        assert shard.leave("m0").code == codes.COORDINATOR_NOT_AVAILABLE
    assert shard.groups.get("other") is None
    group = shard.groups.get("g")
    assert list(group.members) == ["m0"] and shard.groups._row(group.members["m0"]) == known
    assert shard.beat("m1", 0).code == codes.NONE


def test_a_mistake_costs_no_more_than_its_heartbeat(shard, monkeypatch):
    epoch = shard.beat("m0", 0).epoch
    with monkeypatch.context() as patch:
        patch.setattr(f"{shard.group_module}.fingerprint_of", lambda _: 1 / 0)
        assert shard.beat("m1", 0).code == codes.UNKNOWN_SERVER_ERROR
    assert list(shard.groups.get("g").members) == ["m0"]
    assert shard.beat("m0", epoch).code == codes.NONE


def test_members_of_a_shard_are_bounded_and_counted_also_after_a_restart(shard):
    shard.members = 2
    first = shard.beat("m0", 0)
    assert first.code == shard.beat("m1", 0, group="h").code == codes.NONE
    assert shard.beat("m2", 0, group="h").code == codes.GROUP_MAX_SIZE_REACHED
    shard.restart()
    assert shard.beat("m2", 0).code == codes.GROUP_MAX_SIZE_REACHED
    assert shard.beat("m0", first.epoch).code == codes.NONE
    shard.leave("m0")
    assert shard.beat("m2", 0).code == codes.NONE


def test_a_file_of_many_changes_is_compacted_and_still_right(shard, monkeypatch):
    monkeypatch.setattr("broker.storage.record_file.COMPACT_BYTES", 0)
    shard.restart()
    shard.store.commit("g", [("a", "0" * 32, 0, 5, -1, "")], 1)
    for number in range(200):
        shard.beat(f"m{number}", 0)
        if number > 1:
            shard.leave(f"m{number}")
    assert sum(path.stat().st_size for path in shard.directory.iterdir()) < COMPACT_BYTES / 20
    before = shard.groups.get("g")
    shard.restart()
    after = shard.groups.get("g")
    assert (after.epoch, list(after.members)) == (before.epoch, ["m0", "m1"])
    assert after._row() == before._row()
    assert shard.store.of("g")["a", 0].offset == 5


def test_a_group_that_is_forgotten_or_whose_members_are_is_none_any_more(shard):
    for group, end in (("g", shard.store.forget), ("h", shard.store.forget_members)):
        shard.beat("m0", 0, group=group)
        shard.leave("m0", group=group)
        end(group)
    shard.restart()
    assert [*shard.groups] == []
    assert "h" in shard.store and "g" not in shard.store
