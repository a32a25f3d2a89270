"""A share group: initialized partitions are assigned, to several members; epochs, fencing, sessions."""

import random

from consumer_members import FakeTopics
from hypothesis import given
from hypothesis import strategies as st
from share_members import CONFIG, FakeShareMember

from broker.kafka.groups.share.group import ShareGroup
from broker.wire import codes


def group_of(count, topics=None, **fields):
    group, topics = ShareGroup(id="g"), topics or FakeTopics(a=4)
    made = [FakeShareMember(group, topics, f"m{n}", **fields) for n in range(count)]
    for member in made:
        member.send()
    return group, topics, made


def test_topics_are_assigned_by_the_heartbeat_after_the_one_that_brought_them():
    group, topics, (first,) = group_of(1)
    assert (first.epoch, first.told, group.state) == (2, frozenset(), "Stable")
    answer = first.send()
    assert (answer.epoch, answer.assignment) == (3, topics.places("a"))
    assert first.send().assignment is None  # nothing new
    assert first.send(names=("a",)).assignment == topics.places("a")  # a full request is told all
    assert (first.epoch, group.epoch) == (3, 3)


def test_a_partition_is_read_by_several_members_and_nobody_waits():
    group, topics, (first, second) = group_of(2, FakeTopics(a=1))
    for member in (first, second, first):
        member.send()
    assert first.told == second.told == topics.places("a")
    assert (first.epoch, second.epoch, group.epoch) == (3, 3, 3)


def test_after_a_leave_the_others_get_what_is_free():
    group, topics, members = group_of(2)
    for member in (*members, *members):
        member.send()
    assert [len(member.told) for member in members] == [2, 2]
    assert group.leave("m1", 5).epoch == -1
    assert group.leave("m1", 5).code == codes.UNKNOWN_MEMBER_ID
    assert members[0].send().assignment == topics.places("a")
    assert members[1].send().code == codes.UNKNOWN_MEMBER_ID
    group.leave("m0", 5)
    assert (group.state, group.next_deadline_ms()) == ("Empty", None)


def test_epochs_that_are_not_the_members_own_or_its_last_are_fenced():
    _, _, (member,) = group_of(1)
    member.send()
    assert member.send(epoch=4).code == codes.FENCED_MEMBER_EPOCH
    assert member.send(epoch=2).code == codes.NONE  # the answer may have been lost
    member.names = ("a", "b")
    member.send(names=member.names)
    assert member.send(epoch=2).code == codes.FENCED_MEMBER_EPOCH
    again = member.send(epoch=0)  # it joins once more
    assert (again.code, again.epoch, again.assignment) == (codes.NONE, 4, member.told)


def test_a_session_that_is_over_ends_the_member():
    group, topics, (first, _second) = group_of(2)
    first.send(now_ms=30_000)
    assert group.next_deadline_ms() == CONFIG.session_ms
    group.tick(CONFIG.session_ms)
    assert list(group.members) == ["m0"]
    assert first.send(now_ms=CONFIG.session_ms).assignment == topics.places("a")


def test_a_full_group_takes_no_new_member():
    group, topics, _ = group_of(2)
    config = CONFIG._replace(max_size=2)
    assert FakeShareMember(group, topics, "m2", config=config).send().code == codes.GROUP_MAX_SIZE_REACHED
    assert FakeShareMember(group, topics, "m1", config=config).send(epoch=3).code == codes.NONE


def test_topics_that_come_and_go_and_grow_raise_the_epoch():
    group, topics, (member,) = group_of(1, FakeTopics(a=1), names=("a", "b"))
    member.send()
    topics.put("c", 3)
    member.send()
    assert group.epoch == 3  # it did not ask for that one
    topics.put("b", 2)
    assert member.send().epoch == 4 and member.told == topics.places("a")  # not yet initialized
    assert member.send().epoch == 5 and member.told == topics.places("a", "b")
    topics.put("a", 3)
    for _ in range(2):
        member.send()
    assert (group.epoch, member.told) == (7, topics.places("a", "b"))
    topics.remove("b")
    member.send()
    assert (group.epoch, member.told) == (8, topics.places("a"))


def test_a_group_is_assigned_anew_when_its_interval_is_over():
    config = CONFIG._replace(assignment_interval_ms=1000)
    group, topics, (first,) = group_of(1, FakeTopics(a=2, b=2), names=("a", "b"), config=config)
    assert (first.send(now_ms=1).epoch, first.told) == (2, frozenset()), (
        "the first target, of nothing, has its interval too"
    )
    assert (first.send(now_ms=1000).assignment, first.epoch) == (topics.places("a", "b"), group.epoch)
    first.names = ("a",)
    answer = first.send(now_ms=1001, names=first.names)
    assert (answer.epoch, answer.assignment) == (group.assignment_epoch, topics.places("a"))
    assert group.epoch == group.assignment_epoch + 1
    assert first.send(now_ms=2000).epoch == group.epoch == group.assignment_epoch


def test_what_was_initialized_before_anybody_joined_is_assigned_at_once():
    group, topics = ShareGroup(id="g"), FakeTopics(a=2)
    topic_id, _ = topics.get("a")
    group.initialize([(topic_id, [1])])
    member = FakeShareMember(group, topics, "m0")
    assert member.send().assignment == {(topic_id, 1)}
    assert member.send().assignment == topics.places("a")
    group.leave("m0", 0)
    group.uninitialize([topic_id, "other"])
    assert not group.initialized
    again = FakeShareMember(group, topics, "m1")
    assert again.send().assignment == frozenset()
    assert again.send().assignment == topics.places("a")


@given(st.integers(0, 2**32), st.integers(5, 50))
def test_members_that_come_go_and_change_read_all_in_the_end(seed, steps):
    """`check` runs after every heartbeat; epochs do not fall."""
    choose = random.Random(seed)
    group, topics = ShareGroup(id="g"), FakeTopics(a=5, b=3)
    members: dict[str, FakeShareMember] = {}
    now_ms = epoch = 0
    for step in range(steps):
        now_ms += choose.randrange(8000)
        group.tick(now_ms)
        members = {name: member for name, member in members.items() if name in group.members}
        act = choose.random()
        if act < 0.3 or not members:
            names = choose.choice([("a",), ("b",), ("a", "b")])
            member = members[f"m{step}"] = FakeShareMember(group, topics, f"m{step}", names)
            assert member.send(now_ms=now_ms).code == 0
        elif act < 0.4:
            assert group.leave(choose.choice(sorted(members)), now_ms).code == 0
            members = {name: member for name, member in members.items() if name in group.members}
        elif act < 0.5:
            topics.put(choose.choice("ab"), choose.randrange(1, 8))
        else:
            member = members[choose.choice(sorted(members))]
            before = member.epoch
            assert member.send(now_ms=now_ms).code == 0
            assert member.epoch >= before
        assert group.epoch >= epoch
        epoch = group.epoch
    for member in [*members.values()] * 3:
        member.send(now_ms=now_ms)
    asked = {name for member in members.values() for name in member.names}
    assert set().union(*(member.told for member in members.values())) == topics.places(*asked)
