"""A broker of several shards in one process with share groups: shards_in_process.py and what these need."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

import trio
from shards_in_process import SPAWN, Broker

from broker.kafka.security.guarded_route import GuardedRoute
from broker.kafka.share import api as share_fetch
from broker.kafka.share.share_homes import ShareHomes
from broker.kafka.share.share_log import ShareLog
from broker.kafka.share.share_partition_manager import SharePartitionManager
from broker.kafka.share.share_session import ShareSessions
from broker.kafka.share.share_store import ShareStore
from shards.loop.deferred import Deferred
from shards.ownership import home_of_bucket, home_of_coordinator_key

TOPIC_ID = UUID(int=1)


class SharingBroker(Broker):
    """Broker 0 of one, with the group "g" at the earliest."""

    def __init__(self, directory: Path, shards: int = 2) -> None:
        self.managers: list[SharePartitionManager] = [None] * shards  # type: ignore[list-item]
        self.share_homes: list[ShareHomes] = [None] * shards  # type: ignore[list-item]
        super().__init__(directory, shards)
        self.home = home_of_coordinator_key("g", 1, shards)
        self.configure("g", share_auto_offset_reset="earliest")

    def configure(self, group: str, **configs: str) -> None:
        self._apply(("group_config", group, {name.replace("_", "."): value for name, value in configs.items()}))

    def set(self, name: str, value: str) -> None:
        self._apply(("static", f"/{name}", value))

    def _routes(self, shard: int) -> dict[int, GuardedRoute]:
        owns = lambda bucket: home_of_bucket(bucket, 1, self.shards) == shard  # noqa: E731
        partitions = self.partitions[shard]
        store = ShareStore(ShareLog(self.directory / "shares", owns), partitions, self.image)
        sessions = ShareSessions(shard, self.shards)
        self.managers[shard] = SharePartitionManager(store, sessions, partitions, self.image, SPAWN)
        homes = self.share_homes[shard] = ShareHomes(self.homes_of(shard), range(1), self.image)
        homes.serve(self.managers[shard])
        routes = share_fetch.routes(partitions, homes, self.image, SPAWN)
        return {**super()._routes(shard), **{route.api_key: route for route in routes}}

    def run(self, nursery: trio.Nursery) -> None:
        for manager in self.managers:
            nursery.start_soon(manager.store.run)


class ShareMember:
    """`epoch`: of its next request; `shard`: the one it is connected to. Its last call is `call`."""

    def __init__(self, broker: SharingBroker, name: str = "m", shard: int = 0) -> None:
        self.broker, self.name, self.shard = broker, name, shard
        self.epoch = 0

    def send(self, *acks: tuple[int, int, list[int]], wait_ms: int = 0, version: int = 2, **more: Any) -> Any:
        """The response to a ShareFetch of partition 0, now or later."""

        def build(types: Any) -> Any:
            batches = [
                types.AcknowledgementBatch(first_offset=first, last_offset=last, acknowledge_types=kinds)
                for first, last, kinds in acks
            ]
            partitions = [
                types.FetchPartition(partition_index=number, acknowledgement_batches=batches)
                for number in more.pop("places", (0,))
            ]
            fields = {"min_bytes": 1, "max_bytes": 1 << 20, "max_records": 500, "batch_size": 500, **more}
            epoch, self.epoch = self.epoch, self.epoch + 1
            return types.ShareFetchRequest(
                group_id="g", member_id=self.name, share_session_epoch=fields.pop("epoch", epoch),
                max_wait=timedelta(milliseconds=wait_ms), forgotten_topics_data=(),
                topics=[types.FetchTopic(topic_id=TOPIC_ID, partitions=partitions)], **fields,
            )  # fmt: skip

        return self.broker.send(self.shard, share_fetch.FETCH, version, build)

    async def ask(self, *acks: tuple[int, int, list[int]], **more: Any) -> Any:
        response = self.send(*acks, **more)
        return await response if isinstance(response, Deferred) else response

    async def acquire(self, *acks: tuple[int, int, list[int]], **more: Any) -> list[tuple[int, int, int]]:
        return acquired(await self.ask(*acks, **more))


def acquired(response: Any) -> list[tuple[int, int, int]]:
    """(first, last, delivery count) each; there is no error."""
    assert not response.error_code
    found = [each for topic in response.responses for each in topic.partitions]
    assert not any(each.error_code or each.acknowledge_error_code for each in found)
    return [(a.first_offset, a.last_offset, a.delivery_count) for each in found for a in each.acquired_records]


def records(response: Any) -> bytes:
    return b"".join(each.records for topic in response.responses for each in topic.partitions)
