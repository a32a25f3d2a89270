"""The records of __consumer_offsets and __transaction_state: those of the coordinators, as Kafka writes them.

Groups and transactions are kept in files of their own (committed_offsets.py, transaction_log.py) and need no topic. Before a
Fetch or a ListOffsets of a partition the shard that is home to it brings its log up to date (broker/storage/compacted_view.py), so
who does not read pays nothing. What a log lacks when a shard dies comes with the next read.

acknowledged_commits_are_read  A read that begins after a commit was acknowledged finds it, or something later of the same
    key.
one_task_brings_up  One task at a time brings a partition up: that of the home of its groups or transactional ids.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Any

import trio

from broker.kafka.groups.classic.classic_groups import ClassicGroups
from broker.kafka.groups.classic.group import ClassicGroup
from broker.kafka.groups.classic.rebalance import GroupState
from broker.kafka.groups.committed_offsets import CLASSIC, MEMBERS, CommittedOffsets, GroupOffsets
from broker.kafka.groups.group_records import GROUP, OFFSET, GroupMember, GroupMetadata, consumer_group
from broker.kafka.groups.group_records import key_of as group_key
from broker.kafka.groups.group_records import value_of as group_value
from broker.kafka.remote import or_lost
from broker.kafka.transactions.homes import ClusterHomes, Shard
from broker.kafka.transactions.transaction_log import TransactionLog
from broker.kafka.transactions.transaction_records import key_of as transaction_key
from broker.kafka.transactions.transaction_records import value_of as transaction_value
from broker.runtime.logger import Logger
from broker.storage.compacted_view import CompactedView
from broker.storage.log_manager import LogManager
from broker.storage.record_batches import Record
from broker.storage.records import Rejected
from broker.storage.topic_partition import TopicPartition
from shards.config.image import ClusterImage
from shards.config.internal_topics import CONFIGS, GROUP_METADATA
from shards.loop.deferred import Deferred, MaybeDeferred, gather, then
from shards.loop.turns import Turns
from shards.ownership import PARTITIONS, home_of_bucket, leader_of_bucket

BRING_UP = "internal.bring_up"

log = Logger()


class InternalRecords:
    """The internal records of one shard: those of the groups and transactional ids that are at home here."""

    def __init__(
        self,
        homes: ClusterHomes,
        logs: LogManager,
        image: ClusterImage,
        *,
        offsets: CommittedOffsets,
        groups: ClassicGroups,
        transactions: TransactionLog,
        turns: Turns,
    ) -> None:
        self._homes = homes
        self._logs = logs
        self._image = image
        self._offsets = offsets
        self._groups = groups
        self._transactions = transactions
        self._turns = turns
        self._views: dict[TopicPartition, CompactedView] = {}
        self._locks: defaultdict[TopicPartition, trio.Lock] = defaultdict(trio.Lock)
        self._since_start_ms: int | None = None
        homes.serve(BRING_UP, lambda places: turns.spawn(self._bring_up([(topic, number) for topic, number in places])))

    def bring_up(self, places: Sequence[TopicPartition]) -> MaybeDeferred[Collection[TopicPartition]]:
        """Partitions.bring_up: asks the homes of the partitions that this broker leads."""
        by_home: defaultdict[int, list[TopicPartition]] = defaultdict(list)
        me, brokers, shards = self._homes.me.broker, self._homes.brokers, self._homes.shards
        for topic, number in dict.fromkeys(places):
            if topic in CONFIGS and 0 <= number < PARTITIONS and leader_of_bucket(number, brokers) == me:
                by_home[home_of_bucket(number, brokers, shards)].append((topic, number))
        asked = [
            or_lost(self._homes.call(Shard(me, home), BRING_UP, there), lambda there=there: there)  # type: ignore[misc]
            for home, there in by_home.items()
        ]
        return then(gather(asked), lambda late: {(topic, number) for there in late for topic, number in there})

    # --- at home -----------------------------------------------------------------------------------------------------

    async def _bring_up(self, places: Iterable[TopicPartition]) -> list[TopicPartition]:
        """Brings partitions up to date; returns those for which that failed."""
        late = []
        for topic, number in places:
            try:
                async with self._locks[topic, number]:
                    await self._bring_up_one(topic, number)
            except (Rejected, OSError) as fault:
                log.warning("an internal topic can't be read", topic=topic, partition=number, error=str(fault))
                late.append((topic, number))
            except Exception as fault:
                log.error("a mistake in showing an internal topic", topic=topic, partition=number, exc_info=fault)
                late.append((topic, number))
        return late

    async def _bring_up_one(self, topic: str, number: int) -> None:
        if topic not in self._image.topics:
            self._views.pop((topic, number), None)
            return
        partition = self._logs.log(topic, number)
        view = self._views.get((topic, number))
        if view is None or view.log is not partition:
            encode = _group_record if topic == GROUP_METADATA else _transaction_record
            view = self._views[topic, number] = CompactedView(partition, encode, self._turns)
        now_ms = time.time_ns() // 1_000_000
        if topic != GROUP_METADATA:
            await view.bring_up(dict(self._transactions.in_bucket(number)), now_ms)
            return
        version, known = self._offsets.in_bucket(number)
        live = [group for name in known if (group := self._groups.get(name)) is not None]
        seen = (self._image.version, version, [(group.id, group.generation, group.state) for group in live])
        if view.seen != seen or view.is_cut:
            pairs = self._turns.collect(self._pairs([*known.items()], view, now_ms))
            state = dict(await pairs if isinstance(pairs, Deferred) else pairs)
            await view.bring_up(state, now_ms)
            view.seen = seen

    def _pairs(
        self, known: Iterable[tuple[str, GroupOffsets]], view: CompactedView, now_ms: int
    ) -> Iterator[tuple[object, object]]:
        """Keys and values of group_records.py."""
        ids = {topic.name: topic.id.hex for topic in self._image.topics}
        for name, group in known:
            if group.stored is not None and group.stored.kind != CLASSIC:
                if group.stored.kind == MEMBERS:
                    yield from [*consumer_group(name, group.stored.row, [*group.stored.members.items()])]
            elif group.generation:
                yield (GROUP, name), self._classic(name, group, view, now_ms)
            for (topic, partition), committed in [*group.offsets.items()]:
                if ids.get(topic) == committed.topic_id:
                    yield (OFFSET, name, topic, partition), committed

    def _classic(self, name: str, group: GroupOffsets, view: CompactedView, now_ms: int) -> GroupMetadata:
        live = self._groups.get(name)
        if live is not None and live.state in (GroupState.STABLE, GroupState.EMPTY):
            return self._metadata(live, now_ms)
        # While members rejoin, Kafka's log has the generation before.
        held: GroupMetadata | None = None if live is None else view.held.get((GROUP, name))
        return held or GroupMetadata(group.protocol_type or "", group.generation)

    def _metadata(self, group: ClassicGroup, now_ms: int) -> GroupMetadata:
        if self._since_start_ms is None:
            self._since_start_ms = now_ms - int(trio.current_time() * 1000)
        protocol = group.protocol if group.members else None
        return GroupMetadata(
            group.protocol_type or "",
            group.generation,
            protocol,
            group.membership.leader if group.members else None,
            self._since_start_ms + group.changed_ms,
            tuple(
                GroupMember(
                    each.id, each.instance_id, each.client_id, each.client_host, each.rebalance_ms, each.session_ms,
                    each.metadata(protocol or ""), each.assignment,
                )
                for each in group.members.values()
            ),
        )  # fmt: skip


def _group_record(key: Any, value: object) -> Record:
    return Record(group_key(key), None, -1) if value is None else Record(group_key(key), *group_value(key, value))


def _transaction_record(key: str, value: Any) -> Record:
    if value is None:
        return Record(transaction_key(key), None, -1)
    return Record(transaction_key(key), transaction_value(value), value.update_ms)
