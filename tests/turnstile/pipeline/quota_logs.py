"""Generated logs of requests, quotas to replay them under, and their lines in Kafka's request log."""

import json
import random
from collections import Counter
from datetime import UTC, datetime
from typing import Any

from shards.limits.client_quota_managers import FETCH, MUTATION, PRODUCE, REQUEST
from shards.limits.quota_entities import Entity, entity_of
from shards.limits.rate import Window
from turnstile.pipeline.quota_plan.usage import Charge, Usage, in_order

START_MS = 1_767_600_000_000
USERS, CLIENTS = ("alice", "bob", "ANONYMOUS"), ("app", "batch", "x:y", "")
VALUES: dict[str, tuple[float, ...]] = {
    PRODUCE: (500, 20_000, 1_000_000),
    FETCH: (500, 20_000, 1_000_000),
    REQUEST: (0.5, 12.5, 200.0),
    MUTATION: (0.3, 5, 50),
}


def usage(seed: int, length: int = 80, kinds: tuple[str, ...] = tuple(VALUES)) -> Usage:
    """Bursts and pauses of a few clients."""
    rng = random.Random(seed)
    users, clients = rng.sample(USERS, rng.randint(1, 3)), rng.sample(CLIENTS, rng.randint(1, 4))
    mine = rng.sample(kinds, rng.randint(1, len(kinds)))
    at_ms, uses = START_MS, []
    for _ in range(length):
        at_ms += rng.choice((0, 1, 7, 40, 300, 999, 1000, 1001, 2500, 12_000 if rng.random() < 0.1 else 5))
        kind = rng.choice(mine)
        scale = rng.choice(VALUES[kind])
        if kind == REQUEST:
            amount: float = round(rng.expovariate(1 / (scale * 3)), rng.choice((0, 3, 6)))
        elif kind == MUTATION:
            amount = rng.randint(0, int(scale * 8) + 1)
        else:
            amount = rng.randint(0, int(scale * 6))
        strict = kind == MUTATION and rng.random() < 0.5
        uses.append(Charge(at_ms, "0", rng.choice(users), rng.choice(clients), kind, amount, strict))
    windows = [Window(rng.choice((1, 2, 3, 11)), 1000 * rng.choice((1, 1, 2))) for _ in range(2)]
    return Usage(in_order(uses), Counter(), [], *windows)


def quotas(seed: int) -> dict[Entity, dict[str, float]]:
    """Quotas at each of the eight levels."""
    rng = random.Random(seed)
    found: dict[Entity, dict[str, float]] = {}
    for _ in range(rng.randint(1, 6)):
        names: dict[str, str | None] = {}
        if rng.random() < 0.6:
            names["user"] = rng.choice((None, *USERS))
        if not names or rng.random() < 0.6:
            names["client-id"] = rng.choice((None, *(each for each in CLIENTS if each)))
        kind = rng.choice(list(VALUES))
        found.setdefault(entity_of(names), {})[kind] = rng.choice(VALUES[kind])
    return found


def line(
    key: int, body: Any, response: Any, *, at_ms: int = START_MS, version: int = 12, client: str | None = "app",
    user: str = "alice", local_ms: float = 0.5, **more: Any,
) -> str:  # fmt: skip
    """A line of kafka.request.logger."""
    header = {
        "requestApiKey": key,
        "requestApiVersion": version,
        "correlationId": 7,
        "clientId": client,
        "requestApiKeyName": "X",
    }
    request = {
        "isForwarded": False, "requestHeader": header, "request": body, "response": response,
        "connection": "10.0.0.9:9092-10.0.0.1:51234-0-7", "totalTimeMs": 2.0, "requestQueueTimeMs": 0.1, "localTimeMs": local_ms,
        "remoteTimeMs": 0.0, "throttleTimeMs": 0, "responseQueueTimeMs": 0.0, "sendTimeMs": 0.0, "securityProtocol": "PLAINTEXT",
        "principal": f"User:{user}", "listener": "PLAINTEXT",
        "clientInformation": {"softwareName": "apache-kafka-java", "softwareVersion": "4.1.0"}, **more,
    }  # fmt: skip
    at = datetime.fromtimestamp(at_ms / 1000, UTC)
    text = json.dumps(request, separators=(",", ":"))
    return f"[{at:%Y-%m-%d %H:%M:%S},{at_ms % 1000:03}] DEBUG Completed request:{text} (kafka.request.logger)"


def produced(size: int, acks: int = -1, **same: Any) -> str:
    body = {"acks": acks, "topicData": [{"name": "t", "partitionData": [{"index": 0, "recordsSizeInBytes": size}]}]}
    return line(0, body, {"responses": []}, **same)


def fetched(size: int, replica: int = -1, **same: Any) -> str:
    answer = {"responses": [{"topicId": "t", "partitions": [{"partitionIndex": 0, "recordsSizeInBytes": size}]}]}
    return line(1, {"replicaState": {"replicaId": replica}}, answer, **same)


def created(name: str, partitions: int, error: int = 0, **same: Any) -> str:
    body = {"topics": [{"name": name, "numPartitions": partitions, "assignments": []}]}
    return line(
        19, body, {"topics": [{"name": name, "errorCode": error, "numPartitions": partitions}]}, version=7, **same
    )


def deleted(name: str, **same: Any) -> str:
    return line(20, {"topics": [{"name": name}]}, {"responses": [{"name": name, "errorCode": 0}]}, version=6, **same)
