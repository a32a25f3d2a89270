"""A limit observed in one cluster and enforced in another, fed the same: the same decisions up to the first that acting changes.

Quota windows are 31 samples of a second, so that what fits into them is the same however slow the machine is within half a minute.
Caps: test_rehearsal.py, test_a_limit_observed_decides_as_the_same_limit_enforced.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from batches import batch
from harness import Cluster, admitted, connect, running, until
from request_bytes import THROTTLING_QUOTA_EXCEEDED, answer, create_topics, created, produce, produced

from broker.journal.reader import events

IP = "127.1.0.1"
TOPIC = ("--topic", "t:1")
RECORD = b"x" * 3150
"""Of a size at which no sum of requests is between 30 and 31 seconds' worth of the quota: what such a sum is depends on the part of
a second that has passed (shards/limits/rate.py), which two clusters need not agree about."""
SAMPLES = 31


class Pair(NamedTuple):
    observing: Cluster
    enforcing: Cluster


@contextmanager
def pair(folder: Path, *options: str, shards: int = 2) -> Iterator[Pair]:
    """Two clusters that are alike."""
    options = (*options, "--set", f"quota.window.num={SAMPLES}")
    with (
        running(folder / "observed", *options, shards=shards) as observing,
        running(folder / "enforced", *options, shards=shards) as enforcing,
    ):
        yield Pair(observing, enforcing)


def quota(clusters: Pair, entity: dict[str, str], **values: float) -> None:
    body = {"alter": [{"entity": entity, "set": values, "remove": []}]}
    clusters.observing.client.put("/v1/quotas", body, observe=True)
    clusters.enforcing.put("/v1/quotas", body)


@pytest.mark.parametrize("rate", [1, 2])
def test_a_rate_of_an_address_refuses_the_same_arrivals(tmp_path: Path, rate: int) -> None:
    with pair(tmp_path, shards=1) as clusters, ExitStack() as opened:  # of several, each accepts in its own order
        quota(clusters, {"ip": IP}, connection_creation_rate=rate)
        here, there = [], []
        for _ in range(35 * rate):
            here.append(opened.enter_context(connect(clusters.enforcing.address, IP)))
            there.append(opened.enter_context(connect(clusters.observing.address, IP)))
        assert all(map(admitted, there)), "an observed limit refuses nothing"
        refused = [not admitted(sock) for sock in here]
        ports = [sock.getsockname()[1] for sock in there]
        within, beyond = (
            (SAMPLES - 1) * rate,
            SAMPLES * rate - 1,
        )  # of one between, the part of a second that has passed decides
        told = until(lambda: would_refuse(clusters.observing, set(ports[beyond:])), what="what would be refused")
        assert not any(refused[:within]) and all(refused[beyond:])
        assert told.isdisjoint(ports[:within])
        assert clusters.observing.metric("turnstile_connections_refused_total") == 0


def would_refuse(cluster: Cluster, least: set[int]) -> set[int] | None:
    """The ports of the clients that would have been refused, once these are among them."""
    ports = {row["port"] for row in events(cluster.data_dir / "journal") if row["kind"] == "observed"}
    return ports if ports >= least and cluster.get("/v1/refusals?observed=true")["total"] >= len(ports) else None


@pytest.mark.parametrize("size", [1, 4])
def test_a_producers_quota_throttles_the_same_request_first(tmp_path: Path, size: int) -> None:
    """From then on the enforced one slows the client down, and the observed one does not."""
    with pair(tmp_path, *TOPIC) as clusters, ExitStack() as opened:
        quota(clusters, {"client-id": "app"}, producer_byte_rate=1000)
        socks = [opened.enter_context(connect(cluster.address)) for cluster in clusters]
        first = None
        for n in range(40):
            throttles = []
            for sock in socks:
                sock.sendall(produce("app", "t", 0, batch(RECORD * size)))
                error, throttle_ms = produced(answer(sock))
                assert error == 0
                throttles.append(throttle_ms)
            assert throttles[0] == 0, "an observed quota throttles nobody"
            if throttles[1]:
                first = n
                break
        assert first is not None and first > 0
        told = until(lambda: throttled(clusters.observing), what="what the observed quota would have done")
        assert (told["requests"], [each["client_id"] for each in told["clients"]]) == (1, ["app"])


def throttled(cluster: Cluster) -> dict[str, Any] | None:
    told: dict[str, Any] = cluster.get("/v1/quotas/observed")
    return told if told["requests"] else None


def test_a_quota_of_mutations_refuses_the_same_request_first(tmp_path: Path) -> None:
    with pair(tmp_path) as clusters, ExitStack() as opened:
        quota(clusters, {"client-id": "app"}, controller_mutation_rate=1)
        socks = [opened.enter_context(connect(cluster.address)) for cluster in clusters]
        for n in range(20):  # 30 pass: the fourth request comes to 40, which takes longer than the test to be below 31
            errors = []
            for sock in socks:
                sock.sendall(create_topics("app", {f"t{n}": 10}, strict=True))
                errors.append(created(answer(sock), strict=True).errors[f"t{n}"])
            assert errors[0] == 0, "an observed quota refuses nothing"
            told = clusters.observing.get("/v1/quotas/observed")
            refused = sum(each["refused"] for each in told["quotas"])
            assert refused == (1 if errors[1] else 0)
            if errors[1]:
                break
        assert (errors[1], n > 1) == (THROTTLING_QUOTA_EXCEEDED, True)
