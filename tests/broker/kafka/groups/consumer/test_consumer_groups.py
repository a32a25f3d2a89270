"""Consumer groups of one shard: what was answered is kept, a failed write changes nothing, and members are bounded."""

from pathlib import Path

import pytest
from consumer_members import CONFIG, FakeTopics

from broker.kafka.groups.committed_offsets import CommittedOffsets
from broker.kafka.groups.consumer.consumer_groups import ConsumerGroups
from broker.kafka.groups.consumer.member import Heartbeat, MemberState
from broker.storage.record_file import COMPACT_BYTES
from broker.wire import codes


class Shard:
    """The groups of a shard that may die."""

    def __init__(self, directory: Path, most: int = 100) -> None:
        self.directory, self.most, self.now_ms = directory, most, 1000
        self.topics = FakeTopics(a=4)
        self.restart()

    def restart(self) -> None:
        self.store = CommittedOffsets(self.directory)
        self.groups = ConsumerGroups(
            self.store,
            self.topics,
            config=lambda group_id: CONFIG,
            most_members=lambda: self.most,
            now_ms=lambda: self.now_ms,
        )  # type: ignore[arg-type]
        self.groups.load()

    def beat(self, member, epoch, owned=(), *, group="g", instance=None, regex=None):
        joins = epoch == 0
        request = Heartbeat(
            member, epoch, instance, None, 10_000 if joins else -1, ("a",) if joins else None, regex, None,
            frozenset(owned), "c", "/h", ("", ""),
        )  # fmt: skip
        return self.groups.heartbeat(group, request, self.now_ms)


@pytest.fixture
def shard(tmp_path):
    return Shard(tmp_path)


def test_members_go_on_where_they_were_after_the_shard_died(shard):
    first = shard.beat("m0", 0)
    shard.beat("m1", 0, instance="i", regex="a.")
    asked = shard.beat("m0", 1, first.assignment)
    before = shard.groups.get("g")
    shard.restart()
    after = shard.groups.get("g")
    after.check()
    assert {name: each.facts() for name, each in after.members.items()} == {
        name: each.facts() for name, each in before.members.items()
    }
    assert (after.epoch, after.assignment_epoch, after.state) == (2, 2, "Reconciling")
    assert after.members["m0"].progress.state is MemberState.UNREVOKED_PARTITIONS
    assert after.next_deadline_ms() == 1000 + 10_000  # it has its rebalance timeout again
    answer = shard.beat("m0", 1, asked.assignment)
    assert (answer.code, answer.epoch) == (codes.NONE, 2)
    assert shard.beat("m1", 2).assignment == shard.topics.places("a") - asked.assignment
    assert after.epoch == 2  # nothing changed for the group


def test_a_member_that_was_lost_is_not_known_to_the_successor(shard):
    shard.beat("m0", 0)
    shard.now_ms += CONFIG.session_ms
    shard.groups.tick(shard.now_ms)
    shard.restart()
    assert shard.beat("m0", 1).code == codes.UNKNOWN_MEMBER_ID
    assert (shard.groups.get("g").state, shard.groups.get("g").epoch) == ("Empty", 2)


def test_a_change_that_cannot_be_written_did_not_happen(shard, monkeypatch):
    shard.beat("m0", 0)
    known = shard.groups.get("g").members["m0"].facts()

    def full(*_):
        raise OSError("no space")

    with monkeypatch.context() as patch:
        patch.setattr(shard.store, "keep", full)
        assert shard.beat("m1", 0).code == codes.COORDINATOR_NOT_AVAILABLE
        assert shard.beat("m1", 0, group="other").code == codes.COORDINATOR_NOT_AVAILABLE
        assert shard.groups.leave("g", "m0", None, -1, 0).code == codes.COORDINATOR_NOT_AVAILABLE
    assert shard.groups.get("other") is None
    group = shard.groups.get("g")
    assert list(group.members) == ["m0"] and group.members["m0"].facts() == known
    assert shard.beat("m1", 0).code == codes.NONE


def test_a_mistake_costs_no_more_than_its_heartbeat(shard, monkeypatch):
    shard.beat("m0", 0)
    with monkeypatch.context() as patch:
        patch.setattr("broker.kafka.groups.consumer.group_state.fingerprint_of", lambda _: 1 / 0)
        assert shard.beat("m1", 0).code == codes.UNKNOWN_SERVER_ERROR
    assert list(shard.groups.get("g").members) == ["m0"]
    assert shard.beat("m0", 1, shard.topics.places("a")).code == codes.NONE


def test_members_of_a_shard_are_bounded_and_counted_also_after_a_restart(tmp_path):
    shard = Shard(tmp_path, most=2)
    assert shard.beat("m0", 0).code == shard.beat("m1", 0, group="h").code == codes.NONE
    assert shard.beat("m2", 0, group="h").code == codes.GROUP_MAX_SIZE_REACHED
    shard.restart()
    assert shard.beat("m2", 0).code == codes.GROUP_MAX_SIZE_REACHED
    assert shard.beat("m0", 1, shard.topics.places("a")).code == codes.NONE
    shard.groups.leave("g", "m0", None, -1, 0)
    assert shard.beat("m2", 0).code == codes.NONE


def test_a_file_of_many_changes_is_compacted_and_still_right(shard, monkeypatch):
    monkeypatch.setattr("broker.storage.record_file.COMPACT_BYTES", 0)
    shard.restart()
    shard.store.commit("g", [("a", "0" * 32, 0, 5, -1, "")], 1)
    for number in range(200):
        shard.beat(f"m{number}", 0)
        if number > 1:
            shard.groups.leave("g", f"m{number}", None, -1, 0)
    assert sum(path.stat().st_size for path in shard.directory.iterdir()) < COMPACT_BYTES / 20
    before = shard.groups.get("g")
    shard.restart()
    after = shard.groups.get("g")
    assert (after.epoch, list(after.members)) == (before.epoch, ["m0", "m1"])
    assert shard.store.of("g")["a", 0].offset == 5


def test_a_group_that_is_forgotten_or_converted_is_none_any_more(shard):
    for group, end in (("g", shard.store.forget), ("h", shard.store.convert)):
        shard.beat("m0", 0, group=group)
        shard.groups.leave(group, "m0", None, -1, 0)
        end(group)
    shard.restart()
    assert [*shard.groups] == []
    assert "h" in shard.store and "g" not in shard.store
