"""probes.py: one question at a time, for all pools that need one."""

from typing import Any

from shards.tokens.peers import Peers
from shards.tokens.probes import Probes

HOLDERS = {"a": [1, 2], "b": [2], "c": []}


class Asking:
    """Probes of shard 0, and what they posted."""

    def __init__(self) -> None:
        self.peers = Peers(0, 4, epoch=1)
        for peer in (1, 2, 3):
            self.peers.mark_up(peer, 1 + peer)
        self.probes = Probes(self.peers)

    def begin(self, *keys: str) -> dict[int, list[Any]]:
        for key in keys:
            self.probes.want(key)
        self.probes.begin(lambda key: HOLDERS[key])
        posted: dict[int, list[Any]] = {}
        self.peers.outbox.flush(lambda peer, message: posted.__setitem__(peer, message[1]))
        return posted


def test_each_holder_is_asked_once_for_all_pools() -> None:
    assert Asking().begin("a", "b") == {1: [("probe", 1)], 2: [("probe", 1)]}


def test_the_last_answer_confirms_every_pool() -> None:
    asking = Asking()
    asking.begin("a", "b")
    assert asking.probes.answered(1, 1) == []
    assert asking.probes.answered(2, 1) == ["a", "b"]


def test_a_pool_that_comes_later_gets_the_next_fence() -> None:
    asking = Asking()
    asking.begin("b")
    assert asking.begin("a") == {}
    assert not asking.probes.wanted
    assert asking.probes.answered(2, 1) == ["b"]
    assert asking.probes.wanted
    assert asking.begin() == {1: [("probe", 2)], 2: [("probe", 2)]}


def test_an_answer_to_an_earlier_fence_says_nothing() -> None:
    asking = Asking()
    asking.begin("b")
    asking.probes.answered(2, 1)
    asking.begin("b")
    assert asking.probes.answered(2, 1) == []
    assert asking.probes.answered(2, 2) == ["b"]


def test_the_dead_have_nothing_on_the_way() -> None:
    asking = Asking()
    asking.begin("a")
    assert asking.probes.lost(3) == []
    assert asking.probes.answered(1, 1) == []
    assert asking.probes.lost(2) == ["a"]


def test_a_pool_without_holders_needs_no_fence() -> None:
    assert Asking().begin("c") == {}
