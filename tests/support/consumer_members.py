"""Topics as a consumer group sees them, and heartbeats of members, for tests."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from broker.kafka.groups.consumer.group import ConsumerGroup
from broker.kafka.groups.consumer.member import ConsumerGroupConfig, Heartbeat
from broker.kafka.groups.modern.member import HeartbeatResult, TopicIdPartitions
from shards.settings.patterns import BadPattern, whole

CONFIG = ConsumerGroupConfig(5000, 45_000, 1000, ("uniform", "range"))


class FakeTopics:
    """`sizes`: name -> number of partitions; an id is the name and a number that rises with each creation."""

    def __init__(self, **sizes: int) -> None:
        self.version = 0
        self._topics: dict[str, tuple[str, int]] = {}
        for name, size in sizes.items():
            self.put(name, size)

    def put(self, name: str, size: int) -> None:
        self.version += 1
        known = self._topics.get(name)
        self._topics[name] = (known[0] if known else f"{name}#{self.version}", size)

    def remove(self, name: str) -> None:
        self.version += 1
        self._topics.pop(name, None)

    def places(self, *names: str) -> set[tuple[str, int]]:
        found = [self._topics[name] for name in names if name in self._topics]
        return {(topic, number) for topic, size in found for number in range(size)}

    def get(self, name: str) -> tuple[str, int] | None:
        return self._topics.get(name)

    def fault(self, regex: str) -> str | None:
        try:
            whole(regex)
        except BadPattern as fault:
            return str(fault)
        return None

    def knows(self, regex: str) -> bool:
        return True

    def matching(self, regex: str, reader: tuple[str, str]) -> Collection[str]:
        matches = whole(regex)
        return [name for name in self._topics if matches(name)]


class FakeMember:
    """A client that does what it is told: revokes and takes over at once, or when it is asked to."""

    def __init__(
        self, group: ConsumerGroup, topics: FakeTopics, member_id: str, names: Iterable[str] = ("a",), *,
        instance_id: str | None = None, regex: str | None = None, assignor: str | None = None, config: ConsumerGroupConfig = CONFIG,
    ) -> None:  # fmt: skip
        self.group, self.topics, self.id = group, topics, member_id
        self.names: tuple[str, ...] | None = tuple(sorted(names)) if regex is None else None
        self.instance_id, self.regex, self.assignor, self.config = instance_id, regex, assignor, config
        self.epoch = 0
        self.owned: TopicIdPartitions = frozenset()
        self.told: TopicIdPartitions = frozenset()

    def send(self, *, now_ms: int = 0, full: bool = False, says: bool = True, **other: object) -> HeartbeatResult:
        """`says`: whether it tells what it has."""
        whole = full or self.epoch == 0
        request = Heartbeat(
            member_id=self.id, epoch=self.epoch, instance_id=self.instance_id, rack_id=None,
            rebalance_ms=10_000 if whole else -1, names=self.names if whole else None, regex=self.regex if whole else None,
            assignor=self.assignor if whole else None, owned=self.owned if says or whole else None, client_id="c",
            client_host="/127.0.0.1", reader=("", ""),
        )._replace(**other)  # type: ignore[arg-type]  # fmt: skip
        result = self.group.heartbeat(request, self.config, self.topics, now_ms)
        self.group.check()
        if not result.code:
            self.epoch = result.epoch
            if result.assignment is not None:
                self.told = result.assignment
        return result

    def beat(self, *, now_ms: int = 0) -> HeartbeatResult:
        """Answers with what it was told the last time: it gave up what it had to, and took over what it got."""
        self.owned = self.told
        return self.send(now_ms=now_ms)

    def restart(self) -> None:
        self.epoch, self.owned, self.told = 0, frozenset(), frozenset()


def settle(*members: FakeMember, rounds: int = 12, now_ms: int = 0) -> None:
    """Everybody heartbeats until nothing moves."""
    for _ in range(rounds):
        before = [(member.epoch, member.told) for member in members]
        for member in members:
            assert member.beat(now_ms=now_ms).code == 0
        if before == [(member.epoch, member.told) for member in members]:
            return
    raise AssertionError(f"{[(member.id, member.epoch, sorted(member.told)) for member in members]}")
