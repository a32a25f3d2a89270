"""Consumer groups of one shard: members are kept with their progress, instance and regular expression."""

from group_shards import ConsumerShard

from broker.kafka.groups.consumer.member import MemberState
from broker.wire import codes


def test_members_go_on_where_they_were_after_the_shard_died(tmp_path):
    shard = ConsumerShard(tmp_path)
    first = shard.beat("m0", 0)
    shard.beat("m1", 0, instance="i", regex="a.")
    asked = shard.beat("m0", 2, owned=first.assignment)
    before = shard.groups.get("g")
    shard.restart()
    after = shard.groups.get("g")
    after.check()
    assert {name: each.facts() for name, each in after.members.items()} == {
        name: each.facts() for name, each in before.members.items()
    }
    assert (after.epoch, after.assignment_epoch, after.state) == (3, 3, "Reconciling")
    assert after.members["m0"].progress.state is MemberState.UNREVOKED_PARTITIONS
    assert after.next_deadline_ms() == 1000 + 10_000  # it has its rebalance timeout again
    answer = shard.beat("m0", 2, owned=asked.assignment)
    assert (answer.code, answer.epoch) == (codes.NONE, 3)
    assert shard.beat("m1", 3).assignment == shard.topics.places("a") - asked.assignment
    assert after.epoch == 3  # nothing changed for the group
