"""When a client instance may ask and push, and what is kept of it. Kafka's codes: tests/clients/test_telemetry_codes.py."""

from __future__ import annotations

import zlib
from types import SimpleNamespace
from uuid import UUID, uuid4

import pytest

from broker.kafka.telemetry.client_metrics_manager import ClientMetricsManager, Push
from broker.wire import codes
from shards.config.image import ClusterImage
from shards.uuids import uuid_text

EARLY = codes.THROTTLING_QUOTA_EXCEEDED


class Shard:
    """One, with a subscription to everything each second, and a clock that stands still until it is told."""

    def __init__(self) -> None:
        self.image = ClusterImage()
        self.manager = ClientMetricsManager(self.image)
        self.now_ms = 10_000_000
        self.connection = self.connect()
        self.change({"metrics": "*", "interval.ms": "1000"})

    def connect(self) -> SimpleNamespace:
        return SimpleNamespace(closed=False)

    def change(self, configs: dict[str, str] | None) -> None:
        self.image.apply(self.image.version + 1, [("client_metrics", "all", configs)])
        self.manager.image_changed({"client_metrics"})

    def set(self, **settings: int) -> None:
        delta = [("setting", f"/turnstile.telemetry.{name.replace('_', '.')}", str(n)) for name, n in settings.items()]
        self.image.apply(self.image.version + 1, delta)

    def get(self, instance_id: UUID | None = None, connection: SimpleNamespace | None = None) -> int:
        code, self.instance = self.manager.get(
            instance_id, {"client_id": "app"}, connection or self.connection, now_ms=self.now_ms
        )
        return code

    def push(self, metrics: bytes = b"x", codec: int = 0, last: bool = False, of: UUID | None = None) -> int:
        push = Push(self.instance.subscription_id, last, codec, metrics)
        return self.manager.push(
            of or self.instance.id, push, {"client_id": "app"}, self.connection, now_ms=self.now_ms, wall_ms=self.now_ms
        )

    def described(self, most: int = 100) -> list[dict[str, object]]:
        return self.manager.describe(most, now_ms=self.now_ms)


@pytest.fixture
def shard() -> Shard:
    return Shard()


def test_between_two_pushes_lies_the_interval(shard: Shard) -> None:
    assert shard.get() == codes.NONE
    assert [shard.push(), shard.push()] == [codes.NONE, EARLY]
    shard.now_ms += 999
    assert shard.push() == EARLY
    shard.now_ms += 1
    assert shard.push() == codes.NONE
    assert shard.push(last=True) == codes.NONE, "the last one need not wait"


def test_after_asking_again_a_push_need_not_wait(shard: Shard) -> None:
    shard.get()
    shard.push()
    assert shard.get(shard.instance.id) == EARLY
    shard.now_ms += 1000
    assert [shard.get(shard.instance.id), shard.push()] == [codes.NONE] * 2


def test_another_subscription_is_told_at_once(shard: Shard) -> None:
    shard.get()
    shard.push()
    shard.change({"metrics": "a.", "interval.ms": "500"})
    assert shard.push() == codes.UNKNOWN_SUBSCRIPTION_ID
    shard.change({"metrics": "b.", "interval.ms": "400"})
    assert shard.get(shard.instance.id) == codes.NONE
    assert shard.instance.asked == (("b.",), 400)
    shard.change(None)
    assert shard.get(shard.instance.id) == codes.NONE and shard.instance.asked == ((), 300_000)


def test_an_instance_ends_with_its_connection(shard: Shard) -> None:
    shard.get()
    shard.push()
    other = shard.connect()
    assert shard.get(shard.instance.id, other) == EARLY, "it is known by its id"
    shard.connection.closed = True
    assert shard.get(shard.instance.id, other) == codes.NONE
    assert shard.manager.count(now_ms=shard.now_ms) == 1


def test_an_instance_that_is_silent_is_forgotten(shard: Shard) -> None:
    shard.get()
    shard.now_ms += 60_000
    assert shard.manager.count(now_ms=shard.now_ms) == 1
    shard.now_ms += 1
    assert shard.manager.count(now_ms=shard.now_ms) == 0


def test_instances_are_bounded_and_the_oldest_go(shard: Shard) -> None:
    shard.set(instances_max=3)
    ids = [uuid4() for _ in range(5)]
    for each in ids:
        shard.get(each)
        shard.push()
    assert [each["client_instance_id"] for each in shard.described()] == [uuid_text(each) for each in reversed(ids[2:])]
    assert len(shard.described(2)) == 2


def test_the_last_pushes_are_kept_within_their_bytes(shard: Shard) -> None:
    shard.set(kept_bytes=100)
    ids = [uuid4() for _ in range(3)]
    for each in ids:
        shard.get(each)
        shard.push(bytes(40))
    kept = [shard.manager.last_push(uuid_text(each)) for each in ids]
    assert kept == [None, [shard.now_ms, 0, bytes(40)], [shard.now_ms, 0, bytes(40)]]
    assert [each["bytes"] for each in shard.described()] == [40, 40, 0]
    shard.now_ms += 1000
    shard.push(bytes(101), of=ids[2])
    assert all(shard.manager.last_push(uuid_text(each)) is None for each in ids)


def test_what_was_pushed_outlives_its_client(shard: Shard) -> None:
    shard.get()
    shard.push(zlib.compress(b"metrics", wbits=31), codec=1)
    shard.push()
    shard.connection.closed = True
    (told,) = shard.described()
    assert (told["connected"], told["pushes"], told["refused"]) == (False, 1, {EARLY: 1})
    assert shard.manager.last_push(uuid_text(shard.instance.id)) is not None
    shard.manager.reset()
    assert shard.described() == []
