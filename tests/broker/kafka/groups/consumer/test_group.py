"""A group of the consumer protocol: revocation before assignment, epochs and fencing, static members, timeouts."""

import random

from consumer_members import CONFIG, FakeMember, FakeTopics, settle
from hypothesis import given
from hypothesis import strategies as st

from broker.kafka.groups.consumer.group import ConsumerGroup
from broker.kafka.groups.consumer.member import MemberState
from broker.wire import codes


def group_of(count, topics=None, **fields):
    group = ConsumerGroup(id="g")
    topics = topics or FakeTopics(a=4)
    made = [FakeMember(group, topics, f"m{n}", **fields) for n in range(count)]
    for member in made:
        member.send()
    return group, topics, made


def test_a_first_member_gets_all_at_once():
    group, topics, (first,) = group_of(1)
    assert (first.epoch, first.told, group.state) == (2, topics.places("a"), "Stable")
    assert first.beat().assignment is None  # nothing new


def test_what_a_second_member_gets_the_first_has_given_up_before():
    group, topics, (first, second) = group_of(2)
    assert (second.epoch, second.told) == (3, frozenset())
    answer = first.send(says=False)
    assert answer.epoch == 2 and len(answer.assignment) == 2
    assert group.members["m0"].progress.state is MemberState.UNREVOKED_PARTITIONS
    assert second.beat().assignment is None  # the first has not said that it gave them up
    first.send(says=False)
    assert second.beat().assignment is None
    assert first.beat().epoch == 3
    assert second.beat().assignment == topics.places("a") - first.told
    assert group.state == "Stable"


def test_after_a_leave_the_others_get_what_is_free():
    group, topics, members = group_of(3)
    settle(*members)
    assert group.leave("m1", None, -1, 5).epoch == -1
    assert group.state == "Assigning"
    settle(members[0], members[2])
    assert members[0].told | members[2].told == topics.places("a")
    assert members[1].send().code == codes.UNKNOWN_MEMBER_ID


def test_epochs_that_are_not_the_members_own_are_fenced():
    _, _, (member,) = group_of(1)
    member.beat()
    assert member.send(epoch=9).code == codes.FENCED_MEMBER_EPOCH
    assert member.send(epoch=0).code == codes.NONE  # of before: the answer may have been lost, and it has nothing
    settle(member)
    member.send(full=True, names=("a", "b"))
    assert member.epoch == 3
    assert member.send(epoch=2).code == codes.NONE
    assert member.send(epoch=2, owned=frozenset({("other", 0)})).code == codes.FENCED_MEMBER_EPOCH
    assert member.send(epoch=2, owned=None).code == codes.FENCED_MEMBER_EPOCH
    assert member.send(epoch=0, owned=frozenset()).assignment == member.told  # it joins once more


def test_a_full_request_is_told_all_and_another_only_what_changed():
    _, topics, (member,) = group_of(1)
    assert member.send(full=True).assignment == topics.places("a")
    assert member.beat().assignment is None


def test_a_static_member_comes_back_to_what_it_had():
    group, topics, members = group_of(2, instance_id=None)
    static = FakeMember(group, topics, "s1", instance_id="i")
    static.send()
    settle(*members, static)
    had, epoch = static.told, group.epoch
    other = FakeMember(group, topics, "s2", instance_id="i")
    assert other.send().code == codes.UNRELEASED_INSTANCE_ID
    assert group.leave("s2", "i", -2, 0).code == codes.FENCED_INSTANCE_ID
    assert group.leave("s1", "x", -2, 0).code == codes.UNKNOWN_MEMBER_ID
    assert group.leave("s1", "i", -2, 0).epoch == -2
    assert static.send().code == codes.FENCED_MEMBER_EPOCH
    assert other.send().assignment == had
    assert (other.epoch, group.epoch) == (epoch, epoch)
    assert "s1" not in group.members
    assert static.send().code == codes.FENCED_INSTANCE_ID


def test_a_static_member_that_does_not_come_back_is_lost_with_its_session():
    group, topics, (member,) = group_of(1)
    static = FakeMember(group, topics, "s1", instance_id="i")
    static.send(now_ms=0)
    settle(member, static)
    group.leave("s1", "i", -2, 0)
    member.send(now_ms=CONFIG.session_ms)
    group.tick(CONFIG.session_ms)
    settle(member)
    assert member.told == topics.places("a") and not group.instances


def test_a_session_that_is_over_ends_the_member():
    group, topics, (first, second) = group_of(2)
    settle(first, second)
    assert group.next_deadline_ms() == CONFIG.session_ms
    first.beat(now_ms=30_000)
    group.tick(CONFIG.session_ms)
    assert list(group.members) == ["m0"]
    settle(first)
    assert first.told == topics.places("a")
    group.tick(10**9)
    assert group.state == "Empty" and group.next_deadline_ms() is None


def test_members_that_are_lost_at_once_are_fenced_some_at_a_time(monkeypatch):
    monkeypatch.setattr("broker.kafka.groups.consumer.group_state.AT_ONCE", 2)
    group, _, members = group_of(5)
    settle(*members)
    left = []
    while group.members:
        group.tick(CONFIG.session_ms)
        left.append(len(group.members))
        assert group.next_deadline_ms() in (CONFIG.session_ms, None), "the others are due"
    assert left == [3, 1, 0]


def test_a_member_that_does_not_revoke_in_time_is_lost():
    group, topics, (first, second) = group_of(2)
    first.send(now_ms=100, says=False)
    assert group.next_deadline_ms() == 10_100  # its rebalance timeout
    first.send(now_ms=10_000, says=False)
    group.tick(10_100)
    assert list(group.members) == ["m1"]
    settle(second)
    assert second.told == topics.places("a")


def test_a_full_group_takes_no_new_member():
    group, topics, _ = group_of(2)
    config = CONFIG._replace(max_size=2)
    assert FakeMember(group, topics, "m2", config=config).send().code == codes.GROUP_MAX_SIZE_REACHED
    assert FakeMember(group, topics, "m1", config=config).send(epoch=3, owned=frozenset()).code == codes.NONE


def test_topics_that_come_and_go_and_grow_raise_the_epoch():
    group, topics, (member,) = group_of(1, FakeTopics(a=1), names=("a", "b"))
    member.beat()
    topics.put("c", 3)
    member.beat()
    assert group.epoch == 2  # it did not ask for that one
    topics.put("b", 2)
    settle(member)
    assert (group.epoch, member.told) == (3, topics.places("a", "b"))
    topics.put("a", 3)
    settle(member)
    assert (group.epoch, member.told) == (4, topics.places("a", "b"))
    topics.remove("b")
    settle(member)
    assert (group.epoch, member.told) == (5, topics.places("a"))


def test_an_expression_is_a_subscription():
    group, topics, (member,) = group_of(1, FakeTopics(ab=1, ac=1, b=1), regex="a.")
    assert (member.told, group.unresolved()) == (frozenset(), {"a."})  # it does not wait until the topics are matched
    group.resolve("a.")
    assert member.beat().assignment == topics.places("ab", "ac")
    assert (group.epoch, group.unresolved()) == (3, set())
    topics.put("ad", 1)
    settle(member)
    assert member.told == topics.places("ab", "ac", "ad")
    assert member.send(full=True, regex="(").code == codes.INVALID_REGULAR_EXPRESSION
    assert group.subscribes_to("ad", topics) and not group.subscribes_to("b", topics)
    group.leave("m0", None, -1, 0)
    member.restart()
    assert member.send().assignment == frozenset()  # nobody had the expression any more: it is matched anew


def test_the_assignor_that_most_ask_for_is_taken():
    group, topics, _ = group_of(2, FakeTopics(a=4))
    assert group.assignor(CONFIG) == "uniform"
    for n in range(2):
        FakeMember(group, topics, f"r{n}", assignor="range").send()
    assert group.assignor(CONFIG) == "range"
    assert group.assignor(CONFIG._replace(assignors=("uniform",))) == "uniform"


def test_who_may_commit_and_fetch():
    group, _, _ = group_of(1)
    assert group.may_commit("m0", None, 2, 9, ()) == codes.NONE
    assert group.may_commit("m0", None, 2, 8, ()) == codes.UNSUPPORTED_VERSION
    assert group.may_commit("m0", None, 7, 9, ()) == codes.STALE_MEMBER_EPOCH
    assert group.may_commit("x", None, 2, 9, ()) == codes.UNKNOWN_MEMBER_ID
    assert group.may_commit("", None, -1, 9, ()) == codes.UNKNOWN_MEMBER_ID
    assert group.may_commit("", None, -1, None, ()) == codes.NONE  # in a transaction
    assert group.may_fetch(None, -1) == codes.NONE
    assert group.may_fetch("m0", 2) == codes.NONE
    assert group.may_fetch("m0", 0) == codes.STALE_MEMBER_EPOCH
    assert group.may_fetch("x", 2) == codes.UNKNOWN_MEMBER_ID
    group.leave("m0", None, -1, 0)
    assert group.may_commit("", None, -1, 9, ()) == codes.NONE


def test_what_a_member_has_given_up_and_is_to_have_again_it_gets_at_once():
    group, topics, (first, second) = group_of(2)
    first.send(says=False)
    assert len(group.members["m0"].progress.revoking) == 2
    group.leave("m1", None, -1, 0)
    assert first.beat().assignment == topics.places("a")
    assert first.epoch == group.epoch == 4 and second.epoch == 3


def test_a_member_commits_with_an_earlier_epoch_what_it_has_had_since_then():
    group, _, (first, second) = group_of(2, FakeTopics(a=2))
    settle(first, second)
    ((kept, given),) = [(*first.told, *second.told)]
    assert (first.epoch, group.members["m0"].since) == (3, {kept: 2})
    assert group.may_commit("m0", None, 2, 9, [kept]) == codes.NONE
    assert group.may_commit("m0", None, 2, 9, [kept, given]) == codes.STALE_MEMBER_EPOCH
    assert group.may_commit("m0", None, 1, 9, [kept]) == codes.STALE_MEMBER_EPOCH
    assert group.may_commit("m1", None, 2, 9, [given]) == codes.STALE_MEMBER_EPOCH
    group.leave("m1", None, -1, 0)
    settle(first)
    assert group.members["m0"].since == {kept: 2, given: 4}


EACH_SECOND = CONFIG._replace(assignment_interval_ms=1000)


def test_a_group_is_assigned_anew_when_its_interval_is_over():
    group, topics, (first,) = group_of(1, config=EACH_SECOND)
    second = FakeMember(group, topics, "m1", config=EACH_SECOND)
    assert (second.send(now_ms=1).epoch, second.told) == (2, frozenset())
    assert (group.epoch, group.assignment_epoch, group.state) == (3, 2, "Assigning")
    first.beat(now_ms=999)
    assert (first.epoch, first.told) == (2, topics.places("a"))
    first.beat(now_ms=1000)
    assert (group.assignment_epoch, len(first.told)) == (3, 2)
    settle(first, second)
    assert group.state == "Stable"


def test_a_topic_that_a_member_ceases_to_ask_for_is_taken_from_it_before_the_next_assignment():
    group, topics, (member,) = group_of(1, FakeTopics(a=2, b=1), names=("a", "b"), config=EACH_SECOND)
    member.owned = member.told
    member.names = ("b",)
    answer = member.send(now_ms=1, full=True)
    assert (answer.epoch, answer.assignment) == (2, topics.places("b"))
    assert group.members["m0"].progress.revoking == topics.places("a")
    member.beat(now_ms=2)
    assert group.members["m0"].holds == topics.places("b")
    assert (group.assignment_epoch, group.epoch) == (2, 3)
    member.names = ("a",)
    assert member.send(now_ms=3, full=True, owned=frozenset()).assignment == frozenset()
    member.beat(now_ms=1000)
    assert (member.epoch, member.told) == (4, topics.places("a"))


@given(
    st.integers(0, 2**32), st.integers(5, 50), st.sampled_from(["uniform", "range"]), st.sampled_from([0, 1000, 5000])
)
def test_members_that_come_go_and_change_never_share_a_partition(seed, steps, assignor, interval_ms):
    """`check` runs after every heartbeat; what clients believe that they have never overlaps; targets are made an interval apart;
    in the end all is assigned."""
    choose = random.Random(seed)
    config = CONFIG._replace(assignment_interval_ms=interval_ms)
    group, topics = ConsumerGroup(id="g"), FakeTopics(a=5, b=3)
    members: dict[str, FakeMember] = {}
    now_ms, epochs, assigned_ms = 0, {"": 0}, None

    def drop(member_id):
        del members[member_id]
        epochs.pop(member_id, None)

    for step in range(steps):
        now_ms += choose.randrange(2000)
        group.tick(now_ms)
        for member_id in [each for each in members if each not in group.members]:
            drop(member_id)  # its session ended: a client stops by itself
        act = choose.random()
        if act < 0.25 or not members:
            names = choose.choice([("a",), ("b",), ("a", "b")])
            static = choose.choice([None, f"i{step}"])
            member = members[f"m{step}"] = FakeMember(
                group, topics, f"m{step}", names, instance_id=static, assignor=assignor, config=config
            )
            assert member.send(now_ms=now_ms).code == 0
        elif act < 0.35:
            gone = members[choose.choice(sorted(members))]
            assert group.leave(gone.id, gone.instance_id, -1, now_ms).code == 0
            drop(gone.id)
        elif act < 0.4:
            topics.put(choose.choice("ab"), choose.randrange(1, 8))
        elif act < 0.45 and any(each.instance_id for each in members.values()):
            old = choose.choice([each for each in members.values() if each.instance_id])
            assert group.leave(old.id, old.instance_id, -2, now_ms).code == 0
            drop(old.id)
            new = members[f"s{step}"] = FakeMember(
                group, topics, f"s{step}", old.names, instance_id=old.instance_id, assignor=assignor, config=config
            )
            assert new.send(now_ms=now_ms).code == 0
        else:
            member = members[choose.choice(sorted(members))]
            if choose.random() < 0.7:
                member.owned = member.told
            if (changes := choose.random() < 0.2) and not member.instance_id:
                member.names = choose.choice([("a",), ("b",), ("a", "b")])
            assert member.send(now_ms=now_ms, full=changes, says=choose.random() < 0.8).code == 0
        having = [place for each in members.values() for place in each.owned]
        assert len(having) == len(set(having))
        for each in members.values():
            assert each.epoch >= epochs.get(each.id, 0)
            epochs[each.id] = each.epoch
        assert group.epoch >= epochs[""]
        epochs[""] = group.epoch
        if group.assigned_ms not in (None, assigned_ms):
            assert assigned_ms is None or group.assigned_ms - assigned_ms >= interval_ms
            assigned_ms = group.assigned_ms
    for member in members.values():
        member.owned = member.told
    settle(*members.values(), rounds=40, now_ms=now_ms + interval_ms)
    asked = {name for member in members.values() for name in member.names}
    assert set().union(*(member.told for member in members.values())) == topics.places(*asked)
    assert group.state == ("Stable" if members else "Empty")
