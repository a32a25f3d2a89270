"""Benchmarks of the tokens themselves, in one process: what a decision costs where it is made.

The pools are those of the accept path: the broker, the listener, and the client's address.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

from scripts.bench.rounds import measured
from scripts.bench.table import Row
from shards.limits.caps import CapRule
from shards.ownership import home_of
from shards.tokens.tokens import Tokens

RULES = {"broker": CapRule(1_000_000, "kafka_connections_max"), "listener": CapRule(None, "")}
PER_IP = CapRule(100, "kafka_connections_max_per_ip")


def rule_of(pool: str) -> CapRule:
    """Caps that are never reached."""
    return RULES.get(pool.partition(":")[0], PER_IP)


class Waiter:
    """Counts what was decided later."""

    def __init__(self) -> None:
        self.count = 0

    def decided(self, decision: object) -> None:
        """Called by Tokens."""
        self.count += 1


class Pair:
    """Two shards in one process; messages go straight from one to the other."""

    def __init__(self) -> None:
        self.on_the_way: deque[tuple[int, int, tuple[Any, ...]]] = deque()
        self.shards = [Tokens(me, 2, epoch=me + 1, send=self._sender(me), rule_of=rule_of) for me in range(2)]
        for me, shard in enumerate(self.shards):
            shard.peer_up(1 - me, 2 - me)
        self.settle()

    def _sender(self, me: int) -> Callable[[int, tuple[Any, ...]], None]:
        return lambda peer, message: self.on_the_way.append((me, peer, message))

    def settle(self) -> None:
        """Pass messages until there are none."""
        for shard in self.shards:
            shard.flush()
        while self.on_the_way:
            sender, peer, message = self.on_the_way.popleft()
            self.shards[peer].receive(sender, message)
            self.shards[peer].flush()


def addresses(home: int, count: int) -> list[str]:
    """`count` pools of addresses whose home, of two shards, is `home`."""
    found, number = [], 0
    while len(found) < count:
        key = f"ip:10.{number >> 16 & 255}.{number >> 8 & 255}.{number & 255}"
        if home_of(key, 2) == home:
            found.append(key)
        number += 1
    return found


def decisions(count: int, rounds: int = 1) -> Iterator[Row]:
    """Microseconds of taking and giving back the three tokens of a connection, by where the decision is made."""
    alone, pair = Tokens(0, 1, epoch=1, send=lambda peer, message: None, rule_of=rule_of), Pair()
    for what, shard, home, budget in (("at home", alone, 0, None), ("from cached tokens", pair.shards[0], 1, 3.0)):
        pools = [("broker", "listener:PLAINTEXT", ip) for ip in addresses(home, 256)]
        for each in pools:  # first contact: what comes after finds tokens at hand
            shard.take(each, Waiter())
            pair.settle()
            shard.release(each)
        shard.flush()
        took = measured(rounds, partial(_decision_us, shard, pools, count))
        made = shard.decided_home if shard is alone else shard.decided_cached
        assert made >= count * rounds, f"only {made} of {count * rounds} decisions were made {what}"
        yield Row(
            f"decision {what}: three tokens taken and given back",
            took.text(".2f", " us"),
            budget=f"{budget:.0f} us" if budget else "",
            met=took.median <= budget if budget else None,
        )


def _decision_us(shard: Tokens, pools: Sequence[tuple[str, ...]], count: int) -> float:
    waiter = Waiter()
    began = time.perf_counter()
    for number in range(count):
        each = pools[number & 255]
        if shard.take_at_hand(each) != 3:  # as broker/accept/admission.py does; the rest is never needed here
            shard.take_rest(each, 0, waiter)
        shard.release(each)
    return (time.perf_counter() - began) / count * 1e6


def across(count: int, rounds: int = 1) -> Iterator[Row]:
    """The work of a decision that asks another shard, both sides together, without the link between them."""
    took = measured(rounds, partial(_across_us, addresses(1, count)))
    yield Row("decision across shards, work of both sides", took.text(".1f", " us"))


def _across_us(keys: Sequence[str]) -> float:
    """Each address is new to both sides."""
    pair, waiter = Pair(), Waiter()
    began = time.perf_counter()
    for key in keys:
        pair.shards[0].take((key,), waiter)
        pair.settle()
    took_us = (time.perf_counter() - began) / len(keys) * 1e6
    assert waiter.count == len(keys)
    return took_us
