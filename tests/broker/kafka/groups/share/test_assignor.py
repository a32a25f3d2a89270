"""The assignor of share groups: all partitions are read, shares are level, and what a member has it keeps as far as it can."""

from hypothesis import given
from hypothesis import strategies as st

from broker.kafka.groups.modern.member import NOTHING
from broker.kafka.groups.share.assignor import ShareSubscriber, simple

SIZES = st.dictionaries(st.sampled_from("tuv"), st.integers(0, 12), min_size=1)


def members(count, topics, targets=None):
    return [ShareSubscriber(f"m{n}", frozenset(topics), (targets or {}).get(f"m{n}", NOTHING)) for n in range(count)]


def check_read(subscribers, numbers, targets):
    """every_partition_is_read, readers_are_few_and_sticky of all topics together or of each."""
    for topic, some in numbers.items():
        asked = {each.id for each in subscribers if topic in each.topics}
        for number in some:
            readers = {member for member, target in targets.items() if (topic, number) in target}
            assert readers <= asked and bool(readers) == bool(asked)
    assert all(number in numbers[topic] for target in targets.values() for topic, number in target)


@given(st.integers(1, 20), SIZES, st.integers(0, 9))
def test_equal_subscriptions_are_levelled_and_sticky(count, sizes, gone):
    numbers = {topic: range(size) for topic, size in sizes.items()}
    places = sum(sizes.values())
    before = simple(members(count + gone, numbers), numbers)
    subscribers = members(count, numbers, before)
    after = simple(subscribers, numbers)
    check_read(subscribers, numbers, after)
    shares = [len(target) for target in after.values()]
    assert max(shares) - min(shares) <= 1
    assert min(shares) >= min(1, places)  # share_assignment_is_even
    most = -(-count // places) if places else 0
    readers = [place for target in after.values() for place in target]
    assert all(readers.count(place) <= most for place in readers)  # readers_are_few_and_sticky
    if count + gone <= places:
        assert all(before[name] <= after[name] for name in after)  # others left: nobody loses anything
        assert simple(members(count, numbers, after), numbers) == after


def test_a_new_member_takes_only_what_is_over_the_share():
    numbers = {"t": range(9)}
    before = simple(members(2, numbers), numbers)
    after = simple(members(3, numbers, before), numbers)
    assert sorted(len(target) for target in after.values()) == [3, 3, 3]
    assert all(after[name] <= before[name] for name in before)


def test_more_members_than_partitions_share_them():
    targets = simple(members(3, "t"), {"t": range(2)})
    assert sorted(len(target) for target in targets.values()) == [1, 1, 2]  # as Kafka: two readers of each
    assert simple(members(4, "t"), {"t": range(2)}).keys() == {"m0", "m1", "m2", "m3"}
    assert all(len(target) == 1 for target in simple(members(4, "t"), {"t": range(2)}).values())


@given(st.data())
def test_unequal_subscriptions_are_levelled_topic_by_topic(data):
    numbers = {f"t{n}": range(data.draw(st.integers(0, 6))) for n in range(3)}
    topics = st.frozensets(st.sampled_from(sorted(numbers)))
    subscribers = [
        ShareSubscriber(f"m{n}", data.draw(topics), NOTHING) for n in range(data.draw(st.integers(2, 8)))
    ] + [ShareSubscriber("all", frozenset(numbers), NOTHING), ShareSubscriber("none", frozenset(), NOTHING)]
    targets = simple(subscribers, numbers)
    check_read(subscribers, numbers, targets)
    for topic in numbers:
        shares = [len([1 for each, _ in targets[m.id] if each == topic]) for m in subscribers if topic in m.topics]
        assert max(shares) - min(shares) <= 1


def test_a_member_that_asks_for_nothing_gets_nothing():
    assert simple([ShareSubscriber("m", frozenset(), NOTHING)], {}) == {"m": frozenset()}
    assert simple([], {"t": range(3)}) == {}
