"""Server-side assignors (KIP-848): which member is to own which partitions. Pure functions of the subscriptions.

every_partition_has_one_owner  Every partition of a topic that a member subscribes to has one owner, a member that subscribes to it.
    No other partition is owned.
uniform_is_even_and_sticky  uniform: if all subscribe to the same topics, shares differ by one partition at most, and a
    member keeps what it had as far as its share allows. If not, an owner of a partition has at most one partition more than
    any other subscriber to its topic.
range_is_consecutive  range: each topic is cut into consecutive ranges, of lengths that differ by one at most; static
    members come first.

Source: UniformAssignor and RangeAssignor of Kafka 4.1; which of several members gets the odd partition is not Kafka's choice.
"""

import heapq
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from broker.kafka.groups.modern.member import TopicIdPartition, TopicIdPartitions


class Subscriber(NamedTuple):
    """A member: `topics` are ids, `target` are the partitions that it was to own so far."""

    id: str
    instance_id: str | None
    topics: frozenset[str]
    target: TopicIdPartitions


Assignor = Callable[[Sequence[Subscriber], Mapping[str, int]], dict[str, TopicIdPartitions]]
"""(members, topic id -> number of partitions of each subscribed topic) -> member id -> its target."""
_Shares = dict[str, set[TopicIdPartition]]


def uniform(members: Sequence[Subscriber], sizes: Mapping[str, int]) -> dict[str, TopicIdPartitions]:
    """Balanced and sticky."""
    if len({member.topics for member in members}) == 1:
        shares = _equal(members, sizes)
    else:
        shares = _unequal(members, sizes)
    return {member_id: frozenset(share) for member_id, share in shares.items()}


def range_(members: Sequence[Subscriber], sizes: Mapping[str, int]) -> dict[str, TopicIdPartitions]:
    """Topics with as many partitions and the same subscribers are co-partitioned: equal numbers go to one member."""
    in_order = sorted(members, key=lambda each: (each.instance_id is None, each.instance_id or each.id))
    shares: _Shares = {member.id: set() for member in members}
    for topic, size in sizes.items():
        subscribers = [member.id for member in in_order if topic in member.topics]
        length, odd = divmod(size, len(subscribers)) if subscribers else (0, 0)
        start = 0
        for at, member_id in enumerate(subscribers):
            end = start + length + (at < odd)
            shares[member_id].update((topic, number) for number in range(start, end))
            start = end
    return {member_id: frozenset(share) for member_id, share in shares.items()}


ASSIGNORS: dict[str, Assignor] = {"uniform": uniform, "range": range_}


def _equal(members: Sequence[Subscriber], sizes: Mapping[str, int]) -> _Shares:
    places = [(topic, number) for topic in sorted(members[0].topics) for number in range(sizes[topic])]
    share, odd = divmod(len(places), len(members))
    free = dict.fromkeys(places)
    shares: _Shares = {}
    for member in sorted(members, key=lambda each: (-len(each.target), each.id)):
        kept = sorted(place for place in member.target if place in free)[: share + (odd > 0)]
        odd -= len(kept) > share
        for place in kept:
            del free[place]
        shares[member.id] = set(kept)
    left = iter(free)
    for got in shares.values():
        got.update(place for _, place in zip(range(share - len(got)), left, strict=False))
    for got in shares.values():
        if len(got) == share:
            got.update(place for _, place in zip(range(1), left, strict=False))
    return shares


def _unequal(members: Sequence[Subscriber], sizes: Mapping[str, int]) -> _Shares:
    subscribers: dict[str, list[str]] = {topic: [] for topic in sizes}
    for member in members:
        for topic in member.topics:
            subscribers[topic].append(member.id)
    taken: set[TopicIdPartition] = set()
    shares: _Shares = {}
    for member in members:
        kept = {place for place in member.target if place[0] in member.topics and place[1] < sizes[place[0]]} - taken
        shares[member.id] = kept
        taken |= kept
    for topic in sorted(sizes, key=lambda topic: (len(subscribers[topic]), topic)):
        free = [(topic, number) for number in range(sizes[topic]) if (topic, number) not in taken]
        _hand_out(free, subscribers[topic], shares)
    while any([_level(topic, subscribers[topic], shares) for topic in sorted(sizes)]):  # noqa: C419  all of them, each time
        pass
    return shares


def _hand_out(free: Sequence[TopicIdPartition], subscribers: Sequence[str], shares: _Shares) -> None:
    """Gives each free partition to the subscriber that has the fewest."""
    if not free or not subscribers:
        return
    least = [(len(shares[member_id]), member_id) for member_id in subscribers]
    heapq.heapify(least)
    for place in free:
        _, member_id = least[0]
        shares[member_id].add(place)
        heapq.heapreplace(least, (len(shares[member_id]), member_id))


def _level(topic: str, subscribers: Sequence[str], shares: _Shares) -> bool:
    """Moves partitions of a topic from owners to subscribers that have at least two fewer; True if any moved.

    With each move the sum of the squares of the shares falls, so this comes to an end.
    """
    owners = {member_id: sorted(place for place in shares[member_id] if place[0] == topic) for member_id in subscribers}
    most = [(-len(shares[member_id]), member_id) for member_id, places in owners.items() if places]
    least = [(len(shares[member_id]), member_id) for member_id in subscribers]
    heapq.heapify(most)
    heapq.heapify(least)
    moved = False
    while most and least:
        load, giver = -most[0][0], most[0][1]
        if load != len(shares[giver]) or not owners[giver]:
            heapq.heappop(most)  # outdated by a move
            continue
        few, taker = least[0]
        if few != len(shares[taker]):
            heapq.heapreplace(least, (len(shares[taker]), taker))
            continue
        if load - few < 2:
            break
        place = owners[giver].pop()
        shares[giver].remove(place)
        shares[taker].add(place)
        owners[taker].append(place)
        moved = True
        for each in (giver, taker):
            heapq.heappush(most, (-len(shares[each]), each))
            heapq.heappush(least, (len(shares[each]), each))
    return moved
