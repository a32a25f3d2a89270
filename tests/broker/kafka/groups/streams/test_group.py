"""A streams group under members that come, go, are silent and repeat themselves: who has which task, and who is refused."""

from __future__ import annotations

import random
from typing import Any

import pytest

from broker.kafka.groups.streams.endpoints import Endpoint
from broker.kafka.groups.streams.group import StreamsGroup
from broker.kafka.groups.streams.member import StreamsGroupConfig, StreamsHeartbeat, StreamsResult
from broker.kafka.groups.streams.status import (
    ASSIGNMENT_DELAYED,
    MISSING_INTERNAL_TOPICS,
    SHUTDOWN_APPLICATION,
    STALE_TOPOLOGY,
)
from broker.kafka.groups.streams.tasks import NOTHING, Tasks
from broker.kafka.groups.streams.topology import InternalTopic, Subtopology, Topology
from broker.wire import codes

CONFIG = StreamsGroupConfig(heartbeat_ms=5000, session_ms=45_000, max_size=100)
PLAIN = Topology(0, (Subtopology("0", ("t",)),))
STATEFUL = Topology(0, (Subtopology("0", ("t",), changelogs=(InternalTopic("t-changelog"),)),))


class Topics:
    """StreamsTopics."""

    def __init__(self, **sizes: int) -> None:
        self.sizes = {name.replace("_", "-"): size for name, size in sizes.items()}
        self.version = 1

    def get(self, name: str) -> tuple[str, int] | None:
        return (f"id of {name}", self.sizes[name]) if name in self.sizes else None

    def set(self, name: str, size: int) -> None:
        self.sizes[name] = size
        self.version += 1


class Client:
    """A member that does what it is told: it takes tasks, and gives up those that it is not told any more."""

    def __init__(
        self, group: StreamsGroup, topics: Topics, name: str, topology: Topology = PLAIN, **fields: Any
    ) -> None:
        self.group, self.topics, self.name, self.topology = group, topics, name, topology
        self.fields: dict[str, Any] = {"process_id": f"process of {name}", **fields}
        self.config = CONFIG
        self.epoch = 0
        self.owned = NOTHING
        self.told: StreamsResult | None = None

    def beat(self, now_ms: int = 0, **fields: Any) -> StreamsResult:
        first: dict[str, Any] = {"topology": self.topology, "rebalance_ms": 60_000} if self.epoch == 0 else {}
        request = StreamsHeartbeat(self.name, self.epoch, **{"owned": self.owned, **first, **self.fields, **fields})
        result = self.group.heartbeat(request, self.config, self.topics, now_ms)
        self.group.check()
        if not result.code:
            self.epoch, self.told = result.epoch, result
            self.owned = self.owned if result.tasks is None else result.tasks
        return result

    @property
    def active(self) -> list[int]:
        return sorted(number for _, number in self.owned.active)


@pytest.fixture
def group() -> StreamsGroup:
    return StreamsGroup(id="g")


def test_one_member_has_all_tasks(group: StreamsGroup) -> None:
    topics = Topics(t=4)
    one = Client(group, topics, "one")
    result = one.beat()
    assert (result.code, result.epoch, result.interval_ms, one.active) == (codes.NONE, 2, 5000, [0, 1, 2, 3])
    assert one.beat().tasks is None, "told once"
    assert group.state(topics) == "Stable"


def test_a_group_is_assigned_anew_when_its_interval_is_over(group: StreamsGroup) -> None:
    topics = Topics(t=4)
    one, two = (Client(group, topics, name) for name in ("one", "two"))
    for each in (one, two):
        each.config = CONFIG._replace(assignment_interval_ms=1000)
    one.beat()
    told = two.beat(now_ms=1)
    assert (told.epoch, two.active, group.epoch, group.assignment_epoch) == (2, [], 3, 2)
    assert [each.detail for each in told.statuses] == ["Assignment delayed due to the configured assignment interval."]
    assert (one.beat(now_ms=999).epoch, one.active) == (2, [0, 1, 2, 3])
    one.beat(now_ms=1000)
    assert len(one.active) == 2 and group.assignment_epoch == 3
    assert two.beat(now_ms=1001).statuses == ()


def test_a_second_member_gets_tasks_once_the_first_has_given_them_up(group: StreamsGroup) -> None:
    one, two = (Client(group, Topics(t=4), name) for name in ("one", "two"))
    one.beat()
    two.beat()
    assert (two.active, group.state(two.topics)) == ([], "Reconciling")
    told = one.beat()
    assert told.tasks is not None and len(one.active) == 2 and one.epoch == 2
    assert two.beat().tasks is None, "what the first is to revoke is still active there"
    one.beat()
    assert one.epoch == 3
    two.beat()
    assert sorted(one.active + two.active) == [0, 1, 2, 3] and group.state(one.topics) == "Stable"


def test_tasks_wait_for_internal_topics(group: StreamsGroup) -> None:
    topics = Topics(t=3)
    one = Client(group, topics, "one", STATEFUL)
    result = one.beat()
    assert [(topic.name, topic.partitions) for topic in result.missing] == [("t-changelog", 3)]
    assert [each.code for each in result.statuses] == [MISSING_INTERNAL_TOPICS]
    assert (one.owned, group.state(topics)) == (NOTHING, "NotReady")
    topics.set("t-changelog", 3)
    result = one.beat()
    assert (result.statuses, one.active, group.state(topics)) == ((), [0, 1, 2], "Stable")


def test_more_partitions_of_a_source_topic_raise_the_epoch(group: StreamsGroup) -> None:
    topics = Topics(t=3)
    one = Client(group, topics, "one")
    one.beat()
    topics.set("t", 5)
    one.beat()
    assert (one.epoch, one.active) == (3, [0, 1, 2, 3, 4])
    topics.set("other", 1)
    one.beat()
    assert one.epoch == 3, "a topic that it does not read"


def test_standbys_are_at_another_process(group: StreamsGroup) -> None:
    topics = Topics(t=4, t_changelog=4)
    clients = [Client(group, topics, name, STATEFUL) for name in ("one", "two")]
    for client in clients:
        client.config = CONFIG._replace(standby_replicas=1)
    for _ in range(4):
        for client in clients:
            client.beat()
    one, two = clients
    assert len(one.active) == len(two.active) == 2
    assert (one.owned.standby, two.owned.standby) == (two.owned.active, one.owned.active)


def test_the_first_members_wait_for_each_other(group: StreamsGroup) -> None:
    one, two = (Client(group, Topics(t=4), name) for name in ("one", "two"))
    for client in (one, two):
        client.config = CONFIG._replace(initial_delay_ms=3000)
        result = client.beat()
        assert [each.code for each in result.statuses] == [ASSIGNMENT_DELAYED]
        assert (client.epoch, client.owned) == (1, NOTHING)
    for client in (one, two):
        assert client.beat(3000).statuses == ()
    assert sorted(one.active + two.active) == [0, 1, 2, 3] and len(one.active) == 2


def test_a_silent_member_and_one_that_does_not_revoke_are_fenced(group: StreamsGroup) -> None:
    one, two = (Client(group, Topics(t=4), name) for name in ("one", "two"))
    one.beat()
    two.beat()
    one.group.heartbeat(StreamsHeartbeat("one", 2, process_id="process of one"), CONFIG, one.topics, 10)
    assert group.next_deadline_ms() == 45_000
    two.beat(44_000)
    one.beat(44_000, owned=Tasks(frozenset({("0", n) for n in range(4)})))
    group.tick(60_010)
    assert set(group.members) == {"two"}, "one had 60 s to revoke"
    two.beat(60_011)
    assert two.active == [0, 1, 2, 3]
    group.tick(60_011 + 45_000)
    assert group.state(two.topics) == "Empty"


def test_epochs_that_are_not_the_members_are_fenced_but_a_lost_answer_is_repeated(group: StreamsGroup) -> None:
    topics = Topics(t=2)
    one = Client(group, topics, "one")
    one.beat()
    assert one.beat(owned=NOTHING).code == codes.NONE
    one.epoch = 9
    assert one.beat().code == codes.FENCED_MEMBER_EPOCH
    topics.set("t", 3)
    one.epoch = 2
    one.beat()
    one.epoch, one.owned = 2, Tasks(frozenset({("0", 0)}))
    assert one.beat().code == codes.NONE, "its last answer was lost"
    one.epoch = 1
    assert one.beat().code == codes.FENCED_MEMBER_EPOCH
    ghost = Client(group, topics, "ghost")
    ghost.epoch = 3
    assert ghost.beat().code == codes.UNKNOWN_MEMBER_ID


def test_another_topology_is_refused_and_an_older_one_is_stale(group: StreamsGroup) -> None:
    topics = Topics(t=2)
    newer = PLAIN._replace(epoch=1)
    Client(group, topics, "one", newer).beat()
    assert Client(group, topics, "two", STATEFUL._replace(epoch=1)).beat().code == codes.INVALID_REQUEST
    assert set(group.members) == {"one"}
    result = Client(group, topics, "old").beat()
    assert (result.code, [each.code for each in result.statuses]) == (codes.NONE, [STALE_TOPOLOGY])


def test_tasks_that_there_are_not_are_refused(group: StreamsGroup) -> None:
    one = Client(group, Topics(t=2), "one")
    one.beat()
    for task, said in ((("0", 2), "Number of tasks for this subtopology: 2"), (("9", 0), "does not exist")):
        result = one.beat(owned=Tasks(frozenset({task})))
        assert result.code == codes.INVALID_REQUEST and said in (result.message or "")


def test_a_shutdown_is_told_to_all_until_the_group_is_empty(group: StreamsGroup) -> None:
    one, two = (Client(group, Topics(t=4), name) for name in ("one", "two"))
    one.beat()
    two.beat()
    one.beat(shutdown=True)
    assert [each.code for each in two.beat().statuses] == [SHUTDOWN_APPLICATION]
    for client in (one, two):
        assert group.leave(client.name, 0).epoch == -1
    assert Client(group, Topics(t=4), "three").beat().statuses == ()


def test_endpoints_are_told_when_they_change(group: StreamsGroup) -> None:
    topics = Topics(t=2)
    one = Client(group, topics, "one", endpoint=Endpoint("host", 7001))
    told = one.beat()
    assert told.endpoints is not None and told.endpoint_epoch == 1
    assert [(each.endpoint, each.active) for each in told.endpoints] == [(("host", 7001), (("t", (0, 1)),))]
    assert one.beat(endpoint_epoch=1).endpoints is None


def test_offsets_are_committed_by_members_that_have_the_task_since_that_epoch(group: StreamsGroup) -> None:
    topics = Topics(t=2)
    one = Client(group, topics, "one")
    one.beat()
    topics.set("t", 3)
    one.beat()
    assert one.epoch == 3

    def code(member: str, epoch: int, number: int, version: int | None = 9) -> int:
        return group.may_commit(member, epoch, [("t", number)], version)

    assert (code("one", 3, 2), code("one", 2, 1), code("one", 2, 1, None)) == (codes.NONE,) * 3
    assert code("one", 2, 2) == codes.STALE_MEMBER_EPOCH, "it has this task since epoch 3"
    assert code("one", 4, 1) == code("one", 1, 1) == codes.STALE_MEMBER_EPOCH
    assert code("two", 3, 1) == codes.UNKNOWN_MEMBER_ID == code("", -1, 1)
    assert group.may_commit("", -1, [("t", 0)], None) == codes.NONE, "a transaction without a member, as in Kafka"
    assert (group.may_fetch(None, -1), group.may_fetch("one", 3)) == (codes.NONE, codes.NONE)
    assert (group.may_fetch("one", 2), group.may_fetch("two", 3)) == (codes.STALE_MEMBER_EPOCH, codes.UNKNOWN_MEMBER_ID)
    assert group.subscribes_to("t") and not group.subscribes_to("other")


@pytest.mark.parametrize("seed", range(60))
def test_whatever_happens_no_task_is_active_twice_and_all_settles(seed: int) -> None:
    rng = random.Random(seed)
    group = StreamsGroup(id="g")
    topics = Topics(t=rng.randint(1, 9), t_changelog=9)
    topics.sizes["t-changelog"] = topics.sizes["t"]
    config = CONFIG._replace(
        standby_replicas=rng.randint(0, 2),
        initial_delay_ms=rng.choice([0, 3000]),
        assignment_interval_ms=rng.choice([0, 1000]),
    )
    clients: list[Client] = []
    now_ms = 0
    for number in range(200):
        now_ms += rng.choice([0, 100, 1000, 5000])
        group.tick(now_ms)
        clients = [each for each in clients if each.name in group.members]
        what = rng.random()
        if what < 0.1 and len(clients) < 6:
            client = Client(group, topics, f"m{number}", STATEFUL, process_id=rng.choice("pqr"))
            client.config = config
            if client.beat(now_ms).code == codes.NONE:
                clients.append(client)
        elif what < 0.14 and clients:
            group.leave(clients.pop(rng.randrange(len(clients))).name, now_ms)
        elif what < 0.16:
            size = topics.sizes["t"] + 1
            topics.set("t", size)
            topics.set("t-changelog", size)
        elif what < 0.3 and clients:
            rng.choice(clients).beat(now_ms, owned=None)
        elif clients:
            rng.choice(clients).beat(now_ms)
        group.check()
        held = [task for each in clients for task in each.owned.active]
        assert len(held) == len(set(held)), "two clients process the same task"
    for _ in range(12):
        now_ms += 1000
        for client in clients:
            client.beat(now_ms)
    if clients:
        assert group.state(topics) == "Stable"
        assert sorted(n for each in clients for n in each.active) == list(range(topics.sizes["t"]))
