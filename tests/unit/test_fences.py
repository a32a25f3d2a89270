"""fences.py: one question at a time, for all pools that need one."""

from typing import Any

from shards.fences import Fences
from shards.peers import Peers

HOLDERS = {"a": [1, 2], "b": [2], "c": []}


class Asking:
    """Fences of shard 0, and what they posted."""

    def __init__(self) -> None:
        self.peers = Peers(0, 4, epoch=1)
        for peer in (1, 2, 3):
            self.peers.up(peer, 1 + peer)
        self.fences = Fences(self.peers)

    def begin(self, *keys: str) -> dict[int, list[Any]]:
        for key in keys:
            self.fences.want(key)
        self.fences.begin(lambda key: HOLDERS[key])
        posted: dict[int, list[Any]] = {}
        self.peers.flush(lambda peer, message: posted.__setitem__(peer, message[1]))
        return posted


def test_each_holder_is_asked_once_for_all_pools() -> None:
    assert Asking().begin("a", "b") == {1: [("fence", 1)], 2: [("fence", 1)]}


def test_the_last_answer_confirms_every_pool() -> None:
    asking = Asking()
    asking.begin("a", "b")
    assert asking.fences.answered(1, 1) == []
    assert asking.fences.answered(2, 1) == ["a", "b"]


def test_a_pool_that_comes_later_gets_the_next_fence() -> None:
    asking = Asking()
    asking.begin("b")
    assert asking.begin("a") == {}
    assert not asking.fences.wanted
    assert asking.fences.answered(2, 1) == ["b"]
    assert asking.fences.wanted
    assert asking.begin() == {1: [("fence", 2)], 2: [("fence", 2)]}


def test_an_answer_to_an_earlier_fence_says_nothing() -> None:
    asking = Asking()
    asking.begin("b")
    asking.fences.answered(2, 1)
    asking.begin("b")
    assert asking.fences.answered(2, 1) == []
    assert asking.fences.answered(2, 2) == ["b"]


def test_the_dead_have_nothing_on_the_way() -> None:
    asking = Asking()
    asking.begin("a")
    assert asking.fences.lost(3) == []
    assert asking.fences.answered(1, 1) == []
    assert asking.fences.lost(2) == ["a"]


def test_a_pool_without_holders_needs_no_fence() -> None:
    assert Asking().begin("c") == {}
