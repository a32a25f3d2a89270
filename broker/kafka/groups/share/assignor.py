"""The assignor of share groups (KIP-932), `simple`: which members are to read which partitions. A pure function.

every_partition_is_read  Every partition of a topic that a member subscribes to is read by one member at least, who
    subscribes to it; no other is read.
share_assignment_is_even  If all subscribe to the same topics, shares differ by one partition at most, and every member has
    one if there are any. If not, the same holds for each topic and the members that subscribe to it.
readers_are_few_and_sticky  With M members and P partitions, ceil(M / P) members at most read a partition. A member keeps
    what it had as far as that allows.

Source: SimpleAssignor of Kafka 4.2; which of several members gets what is not Kafka's choice.
"""

import heapq
from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

from broker.kafka.groups.modern.member import TopicIdPartition, TopicIdPartitions

SIMPLE = "simple"


class ShareSubscriber(NamedTuple):
    """A member: `topics` are ids, `target` is what it was to read so far."""

    id: str
    topics: frozenset[str]
    target: TopicIdPartitions


_Shares = dict[str, set[TopicIdPartition]]


def simple(members: Sequence[ShareSubscriber], numbers: Mapping[str, Collection[int]]) -> dict[str, TopicIdPartitions]:
    """`numbers`: topic id -> the partitions to be assigned -> member id -> its target."""
    shares: _Shares = {member.id: set() for member in members}
    if len({member.topics for member in members}) == 1:
        asked = sorted(members[0].topics)
        _hand_out(members, [(topic, number) for topic in asked for number in sorted(numbers.get(topic, ()))], shares)
    else:
        for topic in sorted(numbers):
            subscribers = [member for member in members if topic in member.topics]
            _hand_out(subscribers, [(topic, number) for number in sorted(numbers[topic])], shares)
    return {member_id: frozenset(share) for member_id, share in shares.items()}


def _hand_out(members: Sequence[ShareSubscriber], places: Sequence[TopicIdPartition], shares: _Shares) -> None:
    """Adds the members' parts of the places to their shares."""
    if not members or not places:
        return
    readers = -(-len(members) // len(places))
    share, odd = divmod(readers * len(places), len(members))
    count = dict.fromkeys(places, 0)
    got = _keep(members, count, readers, share, odd)
    odd -= sum(len(owned) > share for owned in got.values())
    free = [(held, place) for place, held in count.items() if held < readers]
    heapq.heapify(free)
    for owned in got.values():
        _take(owned, free, share - len(owned), readers)
    for owned in got.values():
        if odd > 0 and len(owned) == share:
            odd -= _take(owned, free, 1, readers)
    for member_id, owned in got.items():
        shares[member_id] |= owned


def _keep(
    members: Sequence[ShareSubscriber], count: dict[TopicIdPartition, int], readers: int, share: int, odd: int
) -> _Shares:
    """The partitions that each may keep of what it had, in the order in which the others are to be filled; `count` is of
    readers."""
    had = {member.id: [place for place in sorted(member.target) if place in count] for member in members}
    got: _Shares = {}
    for member in sorted(members, key=lambda each: (-len(had[each.id]), each.id)):
        owned = got[member.id] = set()
        for place in sorted(had[member.id], key=lambda each: count[each]):
            if len(owned) < share + (odd > 0) and count[place] < readers:
                owned.add(place)
                count[place] += 1
        odd -= len(owned) > share
    return got


def _take(owned: set[TopicIdPartition], free: list[tuple[int, TopicIdPartition]], wanted: int, readers: int) -> int:
    """Takes places that fewest read from the heap `free`; how many it got."""
    aside = []
    taken = 0
    while taken < wanted and free:
        held, place = heapq.heappop(free)
        if place in owned:
            aside.append((held, place))
            continue
        owned.add(place)
        taken += 1
        if held + 1 < readers:
            aside.append((held + 1, place))
    for each in aside:
        heapq.heappush(free, each)
    return taken
