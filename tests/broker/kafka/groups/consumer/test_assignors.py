"""Server-side assignors: every partition has one owner, which subscribes to it; shares are level and sticky."""

from hypothesis import given
from hypothesis import strategies as st

from broker.kafka.groups.consumer.assignors import Subscriber, range_, uniform
from broker.kafka.groups.modern.member import NOTHING


def members(count, topics, targets=None):
    return [Subscriber(f"m{n}", None, frozenset(topics), (targets or {}).get(f"m{n}", NOTHING)) for n in range(count)]


def check_whole(subscribers, sizes, targets):
    """Asserts every_partition_has_one_owner."""
    asked = {topic for each in subscribers for topic in each.topics}
    owned = [place for target in targets.values() for place in target]
    assert sorted(owned) == sorted((topic, number) for topic in asked for number in range(sizes[topic]))
    by_id = {each.id: each for each in subscribers}
    assert all(topic in by_id[member].topics for member, target in targets.items() for topic, _ in target)


@given(st.integers(1, 9), st.lists(st.integers(0, 12), min_size=1, max_size=4), st.integers(0, 9))
def test_equal_subscriptions_are_levelled_and_sticky(count, sizes_of, gone):
    sizes = {f"t{n}": size for n, size in enumerate(sizes_of)}
    before = uniform(members(count + gone, sizes), sizes)
    subscribers = members(count, sizes, before)
    after = uniform(subscribers, sizes)
    check_whole(subscribers, sizes, after)
    shares = [len(target) for target in after.values()]
    assert max(shares) - min(shares) <= 1
    assert all(before[name] <= after[name] for name in after)  # others left: nobody loses anything
    assert uniform(members(count, sizes, after), sizes) == after


def test_a_new_member_takes_only_what_is_over_the_share():
    sizes = {"t": 9}
    before = uniform(members(2, sizes), sizes)
    after = uniform(members(3, sizes, before), sizes)
    assert sorted(len(target) for target in after.values()) == [3, 3, 3]
    assert all(after[name] <= before[name] for name in before)


@given(st.data())
def test_unequal_subscriptions_are_whole_and_as_level_as_can_be(data):
    sizes = {f"t{n}": data.draw(st.integers(0, 6)) for n in range(4)}
    topics = st.frozensets(st.sampled_from(sorted(sizes)), min_size=0, max_size=4)
    subscribers = [Subscriber(f"m{n}", None, data.draw(topics), NOTHING) for n in range(data.draw(st.integers(2, 6)))]
    asked = {topic: size for topic, size in sizes.items() if any(topic in each.topics for each in subscribers)}
    targets = uniform(subscribers, asked)
    check_whole(subscribers, asked, targets)
    for giver in subscribers:
        for topic, _ in targets[giver.id]:
            least = min(len(targets[each.id]) for each in subscribers if topic in each.topics)
            assert len(targets[giver.id]) - least < 2  # uniform_is_even_and_sticky
    again = [each._replace(target=targets[each.id]) for each in subscribers]
    assert uniform(again, asked) == targets


@given(st.data())
def test_ranges_are_whole_and_consecutive(data):
    sizes = {f"t{n}": data.draw(st.integers(0, 9)) for n in range(3)}
    topics = st.frozensets(st.sampled_from(sorted(sizes)), max_size=3)
    subscribers = [Subscriber(f"m{n}", None, data.draw(topics), NOTHING) for n in range(data.draw(st.integers(1, 5)))]
    asked = {topic: size for topic, size in sizes.items() if any(topic in each.topics for each in subscribers)}
    targets = range_(subscribers, asked)
    check_whole(subscribers, asked, targets)
    for target in targets.values():
        for topic in asked:
            numbers = sorted(number for each, number in target if each == topic)
            assert numbers == list(range(numbers[0], numbers[0] + len(numbers))) if numbers else True


def test_ranges_of_equal_topics_go_together_and_static_members_come_first():
    both = frozenset({"t", "u"})
    subscribers = [Subscriber("a", None, both, NOTHING), Subscriber("z", "i", both, NOTHING)]
    targets = range_(subscribers, {"t": 3, "u": 3})
    assert targets["z"] == {("t", 0), ("t", 1), ("u", 0), ("u", 1)}
    assert targets["a"] == {("t", 2), ("u", 2)}
