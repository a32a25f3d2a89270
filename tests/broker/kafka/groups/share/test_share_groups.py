"""Share groups of one shard: members and initialized partitions are kept, groups are bounded, and lost members cost rounds."""

import pytest
from group_shards import ShareShard
from share_members import CONFIG

from broker.kafka.groups.deadlines import A_GROUP, A_ROUND
from broker.kafka.groups.share.member import ShareHeartbeat
from broker.wire import codes


@pytest.fixture
def shard(tmp_path):
    return ShareShard(tmp_path)


def test_members_go_on_where_they_were_after_the_shard_died(shard):
    shard.beat("m0", 0)
    shard.beat("m1", 0)
    had = shard.beat("m0", 2).assignment
    before = shard.groups.get("g")
    shard.restart()
    after = shard.groups.get("g")
    after.check()
    assert {name: each.facts() for name, each in after.members.items()} == {
        name: each.facts() for name, each in before.members.items()
    }
    assert (after.epoch, after.assignment_epoch, after.initialized) == (3, 3, before.initialized)
    assert after.next_deadline_ms() == 1000 + CONFIG.session_ms
    answer = shard.beat("m0", 3)
    assert (answer.code, answer.epoch, answer.assignment) == (codes.NONE, 3, None)
    assert shard.beat("m1", 3).epoch == 3 and after.epoch == 3  # nothing changed for the group
    assert after.members["m0"].assigned == had


def test_partitions_whose_state_cannot_be_written_begin_no_group(shard, monkeypatch):
    def full(*_):
        raise OSError("no space")

    with monkeypatch.context() as patch:
        patch.setattr(shard.store, "store_group", full)
        assert shard.groups.initialize("other", [("t", 0)]).code == codes.COORDINATOR_NOT_AVAILABLE
    assert shard.groups.get("other") is None


def test_members_and_groups_of_a_shard_are_bounded(tmp_path):
    shard = ShareShard(tmp_path, members=2, groups=2)
    assert shard.beat("m0", 0).code == shard.beat("m1", 0, group="h").code == codes.NONE
    assert shard.beat("m2", 0, group="h").code == codes.GROUP_MAX_SIZE_REACHED
    shard.restart()
    assert shard.beat("m2", 0).code == codes.GROUP_MAX_SIZE_REACHED
    shard.groups.leave("g", "m0", 0)
    assert shard.beat("m2", 0, group="i").code == codes.GROUP_MAX_SIZE_REACHED  # the group stays without members
    assert shard.groups.initialize("i", [("t", 0)]).code == codes.GROUP_MAX_SIZE_REACHED
    assert shard.beat("m2", 0).code == codes.NONE
    shard.groups.leave("g", "m2", 0)
    shard.store.forget("g")
    shard.groups.drop("g")
    assert shard.beat("m2", 0, group="i").code == codes.NONE


def test_what_is_initialized_is_kept_also_without_members(shard):
    shard.groups.initialize("g", [("t", 0), ("t", 2), ("u", 1)])
    shard.restart()
    group = shard.groups.get("g")
    assert group.initialized == {"t": {0, 2}, "u": {1}}
    shard.groups.forget_topics(group, lambda topic_id: topic_id == "u")
    shard.restart()
    assert shard.groups.get("g").initialized == {"u": {1}}


def test_members_of_many_groups_that_are_lost_at_once_are_fenced_in_rounds(tmp_path):
    shard = ShareShard(tmp_path, members=10_000, groups=1000)
    for number in range(4 * A_ROUND // A_GROUP):
        shard.beat("m", 0, group=f"g{number}")
    shard.now_ms += CONFIG.session_ms
    rounds = 1
    while shard.groups.tick(shard.now_ms):
        left = sum(bool(group.members) for group in shard.groups)
        assert left == (4 * A_ROUND // A_GROUP) - rounds * (A_ROUND // (A_GROUP + 1) + 1), "a round is bounded"
        rounds += 1
    assert rounds > 3
    assert not any(group.members for group in shard.groups) and shard.groups.next_deadline_ms() is None


def test_a_heartbeat_is_costly_where_targets_of_many_are_made_anew(shard, monkeypatch):
    shard.beat("m0", 0)
    shard.beat("m0", 2)
    asks, beats = (ShareHeartbeat("m0", 3, None, names, "c", "/h") for names in (("b",), ("a",)))
    joins = ShareHeartbeat("m1", 0, None, ("a",), "c", "/h")
    assert not any(shard.groups.is_costly("g", each) for each in (asks, beats, joins))
    monkeypatch.setattr("broker.kafka.groups.share.group.COSTLY", 4)
    assert [shard.groups.is_costly("g", each) for each in (asks, beats, joins)] == [True, False, True]
    shard.beat("m1", 0)
    shard.groups.leave("g", "m1", 0)
    assert shard.groups.is_costly("g", beats), "what the member had is handed out"
