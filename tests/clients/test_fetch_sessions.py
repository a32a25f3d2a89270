"""Fetch sessions (KIP-227) in raw frames: what an incremental answer has in it, and what ends a session.

With CLIENTS_PEER=kafka all of it holds for a real Kafka 4.1.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest
from batches import batch
from harness import until
from wired import Wired, wired

from broker.wire import codes

BY_NAME, BY_ID = 12, 17
MB = 1 << 20
BATCH = len(batch(b"x"))


class Fetcher:
    """Fetches one topic's partitions in a session, over a connection of its own."""

    def __init__(self, connection: Wired, topic: str, topic_id: UUID, version: int) -> None:
        self.connection = connection
        self.topic = topic
        self.topic_id = topic_id
        self.version = version
        self.session = 0
        self.epoch = 0

    def ask(self, offsets: dict[int, int] | None = None, forget: tuple[int, ...] = (), **more: Any) -> Any:
        """The next request of the session; the first one begins it."""
        types = self.connection.types("fetch", more.get("version", self.version))
        by_id = more.get("version", self.version) >= 13
        named: dict[str, Any] = {"topic_id": self.topic_id} if by_id else {"topic": self.topic}
        partitions = tuple(
            types.FetchPartition(
                partition=number, fetch_offset=offset, partition_max_bytes=MB, current_leader_epoch=-1,
                log_start_offset=-1, last_fetched_epoch=-1, replica_directory_id=None,
            )
            for number, offset in (offsets or {}).items()
        )  # fmt: skip
        fields: dict[str, Any] = {
            "session_id": self.session,
            "session_epoch": self.epoch,
            "topics": (types.FetchTopic(**named, partitions=partitions),) if partitions else (),
            "forgotten_topics_data": (types.ForgottenTopic(**named, partitions=forget),) if forget else (),
            "max_bytes": MB,
            "replica_id": -1,
        }
        version = more.pop("version", self.version)
        answered = self.connection.ask("fetch", version, **{**fields, **more})
        if not answered.error_code and "session_id" not in more:
            self.session = answered.session_id
            self.epoch += 1
        return answered

    def told(self, *args: Any, **more: Any) -> dict[int, tuple[int, int]]:
        """(error code, bytes of records) by partition, of those in the answer."""
        answered = self.ask(*args, **more)
        assert answered.error_code == codes.NONE
        return {
            each.partition_index: (each.error_code, len(each.records or b""))
            for topic in answered.responses
            for each in topic.partitions
        }


def append(bootstrap: str, topic: str, partition: int) -> None:
    with wired(bootstrap) as connection:
        types = connection.types("produce", 9)
        data = types.PartitionProduceData(
            index=partition, records=batch(b"x", timestamps=[time.time_ns() // 1_000_000])
        )
        topics = (types.TopicProduceData(name=topic, partition_data=(data,)),)
        answered = connection.ask("produce", 9, acks=1, timeout=timedelta(seconds=10), topic_data=topics)
        assert answered.responses[0].partition_responses[0].error_code == codes.NONE


@pytest.fixture(params=[BY_NAME, BY_ID], ids=["by name", "by id"])
def fetcher(request: pytest.FixtureRequest, two_shards: Any) -> Iterator[Fetcher]:
    """Of a topic of four partitions; nothing is fetched yet."""
    topic = f"fetched-{uuid4().hex[:8]}"
    with wired(two_shards.bootstrap) as connection:
        types = connection.types("create_topics", 7)
        wanted = types.CreatableTopic(name=topic, num_partitions=4, replication_factor=1, assignments=(), configs=())
        connection.ask("create_topics", 7, topics=(wanted,), timeout=timedelta(seconds=20))

        def there() -> Any:
            named = connection.types("metadata", 12).MetadataRequestTopic(name=topic, topic_id=None)
            (found,) = connection.ask("metadata", 12, topics=(named,)).topics
            return None if found.error_code or any(each.error_code for each in found.partitions) else found

        found = until(there, what="the topic has leaders")
        with wired(two_shards.bootstrap) as connection:
            fetcher = Fetcher(connection, topic, found.topic_id, request.param)
            with wired(two_shards.bootstrap) as other:
                once = Fetcher(other, topic, found.topic_id, request.param)
                until(lambda: set(once.told(dict.fromkeys(range(4), 0), session_epoch=-1, session_id=0).values())
                      == {(0, 0)}, what="its partitions are there")  # fmt: skip
            yield fetcher


ALL = dict.fromkeys(range(4), 0)
NOTHING = (codes.NONE, 0)


def test_a_full_fetch_tells_all_and_the_next_what_is_new(fetcher, two_shards):
    assert fetcher.told(ALL) == dict.fromkeys(range(4), NOTHING)
    assert fetcher.session > 0
    assert fetcher.told() == {}
    append(two_shards.bootstrap, fetcher.topic, 2)
    assert fetcher.told() == {2: (codes.NONE, BATCH)}
    assert fetcher.told() == {2: (codes.NONE, BATCH)}, "its offset is as it was"
    assert fetcher.told({2: 1}) == {}


def test_partitions_with_records_are_told_last_the_next_time(fetcher, two_shards):
    for partition in (0, 3):
        append(two_shards.bootstrap, fetcher.topic, partition)
    assert [*fetcher.told(ALL)] == [0, 1, 2, 3]
    assert [*fetcher.told()] == [0, 3]
    append(two_shards.bootstrap, fetcher.topic, 1)
    assert [*fetcher.told()] == [1, 0, 3]


def test_a_partition_is_forgotten_and_another_added(fetcher, two_shards):
    fetcher.told({0: 0, 1: 0})
    for partition in range(3):
        append(two_shards.bootstrap, fetcher.topic, partition)
    assert fetcher.told({2: 0}, forget=(0,)) == {1: (codes.NONE, BATCH), 2: (codes.NONE, BATCH)}
    assert fetcher.told(forget=(3,)) == {1: (codes.NONE, BATCH), 2: (codes.NONE, BATCH)}, "it was none of the session"


def test_a_session_without_partitions_ends(fetcher):
    fetcher.told({0: 0})
    session = fetcher.session
    answered = fetcher.ask(forget=(0,))
    assert (answered.error_code, answered.session_id, answered.responses) == (codes.NONE, 0, ())
    assert fetcher.ask(session_id=session, session_epoch=2).error_code == codes.FETCH_SESSION_ID_NOT_FOUND


def test_a_partition_with_an_error_is_told_each_time_and_once_more_when_it_is_over(fetcher):
    out_of_range = (codes.OFFSET_OUT_OF_RANGE, 0)
    assert fetcher.told({0: 7, 1: 0}) == {0: out_of_range, 1: NOTHING}
    assert fetcher.told() == {0: out_of_range}
    assert fetcher.told({0: 0}) == {0: NOTHING}
    assert fetcher.told() == {}


def test_a_partition_that_is_not_there_is_told_each_time(fetcher):
    unknown = (codes.UNKNOWN_TOPIC_OR_PARTITION, 0)
    assert fetcher.told({9: 0, 1: 0}) == {9: unknown, 1: NOTHING}
    assert fetcher.told() == {9: unknown}


@pytest.mark.parametrize(
    ("what", "session", "epoch", "error"),
    [("no such session", 1, 1, codes.FETCH_SESSION_ID_NOT_FOUND), ("none at all", 0, 3, codes.FETCH_SESSION_ID_NOT_FOUND),
     ("an epoch again", None, 1, codes.INVALID_FETCH_SESSION_EPOCH),
     ("an epoch left out", None, 3, codes.INVALID_FETCH_SESSION_EPOCH)],
)  # fmt: skip
def test_a_wrong_session_or_epoch(fetcher, what, session, epoch, error):
    fetcher.told(ALL)
    fetcher.told()
    session = fetcher.session if session is None else session
    answered = fetcher.ask(session_id=session, session_epoch=epoch)
    assert (answered.error_code, answered.session_id, answered.responses) == (error, 0, ())
    assert fetcher.told() == {}, "the session goes on"


def test_a_session_of_names_is_none_of_ids(fetcher):
    fetcher.told(ALL)
    other = BY_ID if fetcher.version == BY_NAME else BY_NAME
    assert fetcher.ask({0: 0}, version=other).error_code == codes.FETCH_SESSION_TOPIC_ID_ERROR


def test_a_full_fetch_with_a_sessions_id_ends_it_and_the_final_epoch_begins_none(fetcher):
    fetcher.told(ALL)
    first = fetcher.session
    again = fetcher.ask(ALL, session_id=first, session_epoch=0)
    assert again.error_code == codes.NONE and again.session_id not in (0, first)
    assert fetcher.ask(session_id=first, session_epoch=1).error_code == codes.FETCH_SESSION_ID_NOT_FOUND
    last = fetcher.ask(ALL, session_id=again.session_id, session_epoch=-1)
    assert (last.error_code, last.session_id) == (codes.NONE, 0)
    assert len(last.responses[0].partitions) == 4
    ended = fetcher.ask(session_id=again.session_id, session_epoch=1)
    assert ended.error_code == codes.FETCH_SESSION_ID_NOT_FOUND


def test_an_incremental_fetch_waits_for_any_of_its_partitions(fetcher, two_shards):
    fetcher.told(ALL)
    fetcher.connection.send(
        "fetch", fetcher.version, session_id=fetcher.session, session_epoch=1, max_bytes=MB, min_bytes=1,
        max_wait=timedelta(seconds=20), replica_id=-1,
    )  # fmt: skip
    append(two_shards.bootstrap, fetcher.topic, 3)
    answered = fetcher.connection.answer("fetch", fetcher.version)
    assert [each.partition_index for topic in answered.responses for each in topic.partitions] == [3]
