"""Limits of a cluster under test that are observed instead of enforced."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from random import Random
from socket import socket
from typing import Any, NamedTuple

from harness import Cluster, admitted, connect, until
from user_logins import open_here

Address = tuple[str, int]


def observe(cluster: Cluster, **values: Any) -> None:
    """Observes these values, by the names of their settings; None: no more."""
    remove = [name for name, value in values.items() if value is None]
    upsert = {name: value for name, value in values.items() if value is not None}
    cluster.client.put("/v1/cluster_config", {"upsert": upsert, "remove": remove}, observe=True)


def summary(cluster: Cluster) -> dict[str, Any]:
    """The counts of what observed limits would have refused or delayed."""
    return cluster.get("/v1/refusals?observed=true")["summary"]


class Rehearsed(NamedTuple):
    """The decisions about connections: whether each `would` have been refused where a limit is observed, and whether it `did` get
    refused where the same limit is enforced."""

    would: list[bool]
    did: list[bool]


class Arrival(NamedTuple):
    """A connection from `ip`, to an address of the cluster that observes, and to the same of the one that enforces."""

    there: Address
    here: Address
    ip: str


def decisions(
    rehearsing: Cluster,
    enforcing: Cluster,
    draw: Random,
    *,
    count: int,
    arrival: Callable[[], Arrival],
    observed_use: Callable[[Cluster], int],
) -> Rehearsed:
    """So many arrivals and closes, the same in both clusters and in the same order, each awaited. `observed_use`: the tokens of the
    observed limit that are in use."""
    found = Rehearsed([], [])
    pairs: list[tuple[socket, socket]] = []
    with ExitStack() as opened:
        for _ in range(count):
            if pairs and draw.random() < 0.35:
                for sock in pairs.pop(draw.randrange(len(pairs))):
                    sock.close()
                until(lambda: observed_use(rehearsing) == len(pairs), what="the closed one has left")
                until(lambda: open_here(enforcing) == len(pairs), what="the closed one has left")
                continue
            coming, refused = arrival(), sum(found.did)
            there, here = (opened.enter_context(connect(where, coming.ip)) for where in (coming.there, coming.here))
            assert admitted(there), "an observed limit refuses nobody"
            expected = len(pairs) + refused + 1
            until(lambda n=expected: decided(rehearsing, observed_use) == n, what="an observed decision")
            found.would.append(summary(rehearsing)["refused"] > refused)
            found.did.append(not admitted(here))
            if not found.did[-1]:
                pairs.append((there, here))
    return found


def decided(cluster: Cluster, observed_use: Callable[[Cluster], int]) -> int:
    """The connections about which an observed limit has decided, but for those that have closed."""
    told = summary(cluster)
    return observed_use(cluster) + told["refused"] + told["waited"]
