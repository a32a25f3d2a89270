"""What quotas cost request by request, in raw frames: how Fetch fills its bytes, what counts as a mutation, which answers tell it.

With CLIENTS_PEER=kafka all of it holds for a real Kafka 4.1, to the byte and to the partition.
"""

from __future__ import annotations

import time
from datetime import timedelta
from typing import Any, NamedTuple
from uuid import uuid4

import pytest
from batches import batch
from harness import until
from request_bytes import THROTTLING_QUOTA_EXCEEDED, answer, produce, produced
from wired import KEYS, Wired, wired

from broker.wire import apis, codes, wire

TIMEOUT = timedelta(seconds=20)


class Client:
    """A client-id of its own. Quotas hold when `limit` returns."""

    def __init__(self, bootstrap: str) -> None:
        self.bootstrap = bootstrap
        self.id = f"c{uuid4().hex[:10]}"
        self._limited: dict[tuple[str, str], None] = {}

    def ask(self, api: str, version: int, **fields: Any) -> Any:
        """Asks on a connection of its own, which no earlier answer has muted."""
        with wired(self.bootstrap, self.id) as connection:
            return connection.ask(api, version, **fields)

    def limit(self, **quotas: float | None) -> None:
        """Sets quotas; None removes one."""
        self._alter(self.id, quotas)
        # Kafka takes up changes in order, and later than it answers: once the marker is in force, so are the quotas.
        marker = f"m{uuid4().hex[:10]}"
        self._alter(marker, {"producer_byte_rate": 1.0})
        until(lambda: self._described(marker), what="quotas are in force")

    def unlimit(self) -> None:
        """Removes the quotas: the next test that reads all quotas of the cluster must not find them."""
        for client_id, quota in list(self._limited):
            self._alter(client_id, {quota: None})

    def _alter(self, client_id: str, quotas: dict[str, float | None]) -> None:
        self._limited.update(dict.fromkeys((client_id, quota) for quota in quotas))
        with wired(self.bootstrap) as connection:
            types = connection.types("alter_client_quotas", 1)
            entity = (types.EntityData(entity_type="client-id", entity_name=client_id),)
            ops = tuple(types.OpData(key=k, value=float(v or 0), remove=v is None) for k, v in quotas.items())
            answered = connection.ask("alter_client_quotas", 1, entries=(types.EntryData(entity=entity, ops=ops),))
            assert [entry.error_code for entry in answered.entries] == [codes.NONE]

    def _described(self, client_id: str) -> bool:
        with wired(self.bootstrap) as connection:
            component = connection.types("describe_client_quotas", 1).ComponentData
            asked = (component(entity_type="client-id", match_type=0, match=client_id),)
            return bool(connection.ask("describe_client_quotas", 1, components=asked, strict=True).entries)


@pytest.fixture
def client(two_shards):
    client = Client(two_shards.bootstrap)
    yield client
    client.unlimit()


def create(
    client: Client,
    topics: dict[str, int],
    version: int = 7,
    *,
    factor: int = 1,
    leaders: tuple[int, ...] = (),
    config: tuple[str, str] | None = None,
    validate_only: bool = False,
) -> Any:
    types = wire.request_types(KEYS["create_topics"], version)
    assignments = tuple(
        types.CreatableReplicaAssignment(partition_index=number, broker_ids=(leader,))
        for number, leader in enumerate(leaders)
    )
    configs = () if config is None else (types.CreatableTopicConfig(name=config[0], value=config[1]),)
    wanted = tuple(
        types.CreatableTopic(
            name=name, num_partitions=count, replication_factor=factor, assignments=assignments, configs=configs
        )
        for name, count in topics.items()
    )
    return client.ask("create_topics", version, topics=wanted, timeout=TIMEOUT, validate_only=validate_only)


def there(client: Client, topic: str) -> Any:
    """The topic, once all of it has leaders."""

    def found() -> Any:
        asked = (wire.request_types(KEYS["metadata"], 8).MetadataRequestTopic(name=topic),)
        (answered,) = client.ask("metadata", 8, topics=asked, allow_auto_topic_creation=False).topics
        whole = not answered.error_code and not any(each.error_code for each in answered.partitions)
        return answered if whole else None

    return until(found, what=f"{topic} has leaders")


# --- Fetch ------------------------------------------------------------------------------------------------------------

SIZE, LARGE = len(batch(b"x" * 1000)), len(batch(b"x" * 5000))


@pytest.fixture(scope="module")
def filled(two_shards):
    """A topic: five batches of SIZE in partitions 0 to 3, none in 4, three of LARGE in 5."""
    filler, topic = Client(two_shards.bootstrap), f"filled-{uuid4().hex[:8]}"
    now_ms = time.time_ns() // 1_000_000  # older records would fall to retention before all tests have read them
    create(filler, {topic: 6})
    there(filler, topic)
    with wired(two_shards.bootstrap) as connection:
        for partition, size, count in [*((number, 1000, 5) for number in range(4)), (5, 5000, 3)]:
            for _ in range(count):
                frame = produce("filler", topic, partition, batch(b"x" * size, timestamps=[now_ms]))

                def sent(frame=frame) -> bool:
                    connection.sock.sendall(frame)
                    return produced(answer(connection.sock)).error == codes.NONE

                until(sent, what="a batch is in the log")
    return topic


class Asked(NamedTuple):
    """A Fetch: (partition, offset, partition_max_bytes) of each partition, max_bytes, and the bytes of records that each
    answers."""

    partitions: list[tuple[int, int, int]]
    max_bytes: int
    sizes: list[int]


MB = 1 << 20
FETCHES = {
    "all of it": Asked([(0, 0, MB)], MB, [5 * SIZE]),
    "the last batch is cut": Asked([(0, 0, 2500)], MB, [2500]),
    "even its header": Asked([(0, 0, SIZE + 10)], MB, [SIZE + 10]),
    "not from the middle of the log": Asked([(0, 3, 1500)], MB, [1500]),
    "the first batch is whole": Asked([(0, 0, 10)], MB, [SIZE]),
    "even for no bytes": Asked([(0, 0, 0)], 0, [SIZE]),
    "whatever all may have": Asked([(0, 0, MB)], 10, [SIZE]),
    "the first partition that has any": Asked([(4, 0, MB), (1, 0, MB), (5, 0, MB)], 10, [0, SIZE, 0]),
    "at the end there is none": Asked([(0, 5, MB), (1, 0, 10)], MB, [0, SIZE]),
    "nor out of range": Asked([(0, 9, MB), (1, 0, 10)], MB, [0, SIZE]),
    "partitions in order": Asked([(0, 0, MB), (1, 0, MB)], 3000, [3000, 0]),
    "no piece of a first batch": Asked([(0, 0, MB), (1, 0, MB)], 5 * SIZE + 500, [5 * SIZE, 0]),
    "a cut one for the next": Asked([(0, 0, MB), (1, 0, MB)], 7 * SIZE + 5, [5 * SIZE, 2 * SIZE + 5]),
    "each its own": Asked([(n, 0, 1500) for n in range(6)], 4000, [1500, 1500, 0, 0, 0, 0]),
    "not the order of the topic": Asked([(n, 0, 2000) for n in (3, 2, 1, 0)], 5000, [2000, 2000, 0, 0]),
    "one too large is left out": Asked([(0, 0, 1200), (5, 0, 3000), (1, 0, 1200)], MB, [1200, 0, 1200]),
    "by the limit of all, too": Asked([(0, 0, 1200), (5, 0, MB), (1, 0, 1200)], 3000, [1200, 0, 1200]),
    "one that just fits": Asked([(0, 0, 1200), (5, 0, LARGE)], 1200 + LARGE, [1200, LARGE]),
}


def fetch(client: Client | Wired, topic: str, asked: Asked, *, version: int = 11, **fields: Any) -> Any:
    types = wire.request_types(KEYS["fetch"], version)
    partitions = tuple(
        types.FetchPartition(partition=number, fetch_offset=offset, partition_max_bytes=most)
        for number, offset, most in asked.partitions
    )
    topics = (types.FetchTopic(topic=topic, partitions=partitions),)
    return client.ask("fetch", version, topics=topics, max_bytes=asked.max_bytes, min_bytes=1, **fields)


@pytest.mark.parametrize("version", [4, 11])
@pytest.mark.parametrize("what", FETCHES)
def test_fetch_fills_its_bytes_to_the_last_one(client, filled, what, version):
    asked = FETCHES[what]
    (answered,) = fetch(client, filled, asked, version=version).responses
    assert [len(each.records or b"") for each in answered.partitions] == asked.sizes


def test_a_cut_piece_is_charged_like_the_rest(client, filled):
    asked = Asked([(0, 0, MB)], 2000, [2000])
    # By another client: its bytes may be recorded, when a test before this one has limited any client.
    with wired(client.bootstrap, f"another {client.id}") as connection:
        fetch(connection, filled, asked)
        size = connection.size
    client.limit(consumer_byte_rate=200.0)  # a window of ten seconds: 2000 bytes of records, and the rest is too much
    throttled = fetch(client, filled, asked._replace(max_bytes=MB))
    assert throttled.responses == ()
    assert throttled.throttle_time == timedelta(milliseconds=size * 5 - 10_000)


def test_a_fetch_that_waited_is_charged_to_a_quota_that_was_set_meanwhile(client):
    topic = f"waited-{client.id}"
    create(client, {topic: 1})
    there(client, topic)
    types = wire.request_types(KEYS["fetch"], 11)
    partition = types.FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=MB)
    topics = (types.FetchTopic(topic=topic, partitions=(partition,)),)
    with wired(client.bootstrap, client.id) as waiting, wired(client.bootstrap) as another:
        waiting.send("fetch", 11, topics=topics, max_bytes=MB, min_bytes=1, max_wait=TIMEOUT)
        client.limit(consumer_byte_rate=10.0)
        another.sock.sendall(produce("another", topic, 0, batch(b"x" * 1000)))
        throttled = waiting.answer("fetch", 11)
    assert throttled.responses == ()
    assert throttled.throttle_time > timedelta(seconds=10)


# --- controller_mutation_rate -----------------------------------------------------------------------------------------

RATE, BURST = 0.05, 0.55  # one partition is worth 20 s of throttle time, so what a test takes itself does not matter
OVER = THROTTLING_QUOTA_EXCEEDED


class Mutation(NamedTuple):
    """A request, the error codes of its topics, the partitions beyond the burst that its throttle time is for, and the partitions
    that are charged in the end."""

    ask: Any
    errors: list[int]
    waits: int
    charged: int


def parts(
    client: Client, count: int, version: int = 3, *, leaders: tuple[int, ...] | None = None, validate_only: bool = False
) -> Any:
    """CreatePartitions for the topic that has 3."""
    types = wire.request_types(KEYS["create_partitions"], version)
    assignments = None if leaders is None else tuple(types.CreatePartitionsAssignment(broker_ids=(n,)) for n in leaders)
    topics = (types.CreatePartitionsTopic(name=client.id, count=count, assignments=assignments),)
    return client.ask("create_partitions", version, topics=topics, timeout=TIMEOUT, validate_only=validate_only)


def delete(client: Client, *names: str, version: int = 5) -> Any:
    return client.ask("delete_topics", version, topic_names=names, timeout=TIMEOUT)


def new(client: Client, **counts: int) -> dict[str, int]:
    return {f"{client.id}-{name}": count for name, count in counts.items()}


MUTATIONS = {
    "nothing": Mutation(lambda c: delete(c), [], 0, 0),
    "a topic beyond the burst": Mutation(lambda c: create(c, new(c, a=7)), [0], 0, 7),
    "then the next ones": Mutation(lambda c: create(c, new(c, a=7, b=3, c=1)), [0, OVER, OVER], 7, 7),
    "permissively": Mutation(lambda c: create(c, new(c, a=7, b=3), 5), [0, 0], 10, 10),
    "only validated": Mutation(lambda c: create(c, new(c, a=7, b=3), validate_only=True), [0, OVER], 7, 7),
    "validated, permissively": Mutation(lambda c: create(c, new(c, a=7, b=3), 5, validate_only=True), [0, 0], 10, 10),
    "leaders given": Mutation(lambda c: create(c, new(c, a=-1), factor=-1, leaders=(0,) * 8), [0], 0, 8),
    "there already": Mutation(lambda c: create(c, {c.id: 9}), [codes.TOPIC_ALREADY_EXISTS], 0, 0),
    "no name": Mutation(lambda c: create(c, {"a b": 9}), [codes.INVALID_TOPIC_EXCEPTION], 0, 0),
    "too few brokers": Mutation(lambda c: create(c, new(c, a=9), factor=5), [codes.INVALID_REPLICATION_FACTOR], 0, 0),
    "no partitions": Mutation(lambda c: create(c, new(c, a=0)), [codes.INVALID_PARTITIONS], 0, 0),
    "no config": Mutation(lambda c: create(c, new(c, a=9), config=("nope", "1")), [codes.INVALID_CONFIG], 0, 0),
    "no broker": Mutation(
        lambda c: create(c, new(c, a=-1), factor=-1, leaders=(0, 9)), [codes.INVALID_REPLICA_ASSIGNMENT], 0, 0
    ),
    "only what succeeds": Mutation(
        lambda c: create(c, {c.id: 9, "a b": 9, **new(c, a=7, b=1)}),
        [codes.TOPIC_ALREADY_EXISTS, codes.INVALID_TOPIC_EXCEPTION, 0, OVER], 7, 7,
    ),
    "partitions that are added": Mutation(lambda c: parts(c, 10), [0], 0, 7),
    "added permissively": Mutation(lambda c: parts(c, 10, 2), [0], 7, 7),
    "only validated as well": Mutation(lambda c: parts(c, 10, validate_only=True), [0], 0, 7),
    "none added": Mutation(lambda c: parts(c, 3), [codes.INVALID_PARTITIONS], 0, 0),
    "leaders missing": Mutation(lambda c: parts(c, 10, leaders=(0,)), [codes.INVALID_REPLICA_ASSIGNMENT], 0, 0),
    "leaders that there are not": Mutation(
        lambda c: parts(c, 5, leaders=(0, 9)), [codes.INVALID_REPLICA_ASSIGNMENT], 0, 2
    ),
    "deleted": Mutation(lambda c: delete(c, c.id), [0], 0, 3),
    "deleted permissively": Mutation(lambda c: delete(c, c.id, version=4), [0], 3, 3),
    "deleted twice": Mutation(lambda c: delete(c, c.id, c.id), [codes.INVALID_REQUEST], 0, 0),
    "not there": Mutation(lambda c: delete(c, f"{c.id}-a"), [codes.UNKNOWN_TOPIC_OR_PARTITION], 0, 0),
}  # fmt: skip


def beyond(throttled: timedelta) -> int:
    """The partitions beyond the burst that were charged."""
    return round(throttled.total_seconds() * RATE + BURST) if throttled else 0


def charged(client: Client) -> int:
    """How many partitions a client has been charged, by the throttle time of a further one in a permissive version."""
    return beyond(create(client, new(client, probe=1), 4).throttle_time) - 1


@pytest.mark.parametrize("what", MUTATIONS)
def test_what_counts_as_a_mutation(client, what):
    ask, errors, waits, counted = MUTATIONS[what]
    create(client, {client.id: 3})
    there(client, client.id)
    client.limit(controller_mutation_rate=RATE)
    response = ask(client)
    answers = next(getattr(response, name) for name in ("topics", "results", "responses") if hasattr(response, name))
    in_order = sorted(answers, key=lambda each: errors.index(each.error_code)) if len(set(errors)) > 1 else answers
    assert [each.error_code for each in in_order] == errors
    assert all(each.error_message is None for each in answers if each.error_code == OVER), "clients know what it means"
    assert beyond(response.throttle_time) == waits
    assert charged(client) == counted


def asked_for(client: Client, *names: str) -> Any:
    """Metadata of topics, which creates them."""
    topic = wire.request_types(KEYS["metadata"], 9).MetadataRequestTopic
    return client.ask("metadata", 9, topics=tuple(topic(name=name) for name in names))


def test_topics_made_by_asking_for_them_count_and_beyond_the_quota_are_unknown(client):
    client.limit(controller_mutation_rate=RATE)
    names = [*new(client, a=1, b=1, c=1)]
    assert not asked_for(client, *names).throttle_time
    made = until(lambda: [t for t in asked_for(client, *names).topics if not t.error_code], what="the first is there")
    assert len(made) == 1, "it took the burst"
    left_out = [topic.name for topic in asked_for(client, *names).topics if topic.error_code]
    again = asked_for(client, *left_out)
    assert [topic.error_code for topic in again.topics] == [codes.UNKNOWN_TOPIC_OR_PARTITION] * 2
    assert not again.throttle_time, "it costs the client no time"
    assert charged(client) == 1


# --- request_percentage -----------------------------------------------------------------------------------------------

FIELDS: dict[str, dict[str, Any]] = {
    "produce": {"acks": 1},
    "describe_acls": {"resource_type_filter": 1, "pattern_type_filter": 1, "operation": 1, "permission_type": 1},
}
"""What Kafka needs to answer at all, or to answer without an error that has lost its throttle time."""

WITHOUT = {"sasl_handshake", "sasl_authenticate"}
"""Throttled, too, but their answers have no throttle time in any version."""


def coordinator(client: Client, version: int) -> Any:
    asked = {"coordinator_keys": ("g",)} if version >= 4 else {"key": "g"}
    return client.ask("find_coordinator", version, **asked)


def test_every_answer_that_can_tells_that_the_request_was_throttled(client):
    until(lambda: not coordinator(client, 3).error_code, what="there is a coordinator")
    served = client.ask("api_versions", 3, client_software_name="t", client_software_version="1").api_keys
    client.limit(request_percentage=0.000_001)
    told, silent = {}, set()
    for api_key, first, last in [(api.api_key, api.min_version, api.max_version) for api in served]:
        name = apis.APIS[api_key].name if api_key in apis.APIS else "unknown"
        if name in ("unknown", "add_partitions_to_txn"):  # Kafka does not answer one without transactions
            continue
        for version in range(max(first, apis.APIS[api_key].min_version), last + 1):
            if name == "find_coordinator":
                response = coordinator(client, version)
            else:
                response = client.ask(name, version, **FIELDS.get(name, {}))
            if "throttle_time" in response.field_names:
                told[name, version] = response.throttle_time
            else:
                silent.add(name)
    assert {each: time for each, time in told.items() if time != timedelta(seconds=1)} == {}
    assert len(told) > 100
    assert silent >= WITHOUT


@pytest.mark.parametrize(("api", "version"), [("sasl_handshake", 1), ("api_versions", 0), ("metadata", 2)])
def test_a_request_whose_answer_cannot_tell_is_throttled_all_the_same(client, api, version):
    client.limit(request_percentage=0.000_001)
    with wired(client.bootstrap, client.id) as connection:
        before = time.monotonic()  # the mute begins behind this
        connection.ask(api, version)
        connection.ask("heartbeat", 3)
        assert time.monotonic() - before > 0.9, "muted for a second"


def test_a_fetch_that_took_too_much_time_is_answered_empty_and_costs_no_bytes(client, filled):
    client.limit(request_percentage=0.000_001, consumer_byte_rate=400.0)
    asked = Asked([(0, 0, 3000)], MB, [3000])
    for _ in range(3):  # 9000 bytes, where 4000 are too many
        throttled = fetch(client, filled, asked)
        assert (throttled.responses, throttled.throttle_time) == ((), timedelta(seconds=1))
    client.limit(request_percentage=None)
    (answered,) = fetch(client, filled, asked).responses
    assert [len(each.records) for each in answered.partitions] == asked.sizes
