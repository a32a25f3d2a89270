"""exchange.py: a message goes to the receiver that its first field names; one of tokens begins with a number."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from shards.mesh.exchange import Exchange


def test_each_message_goes_to_its_receiver_alone() -> None:
    received: list[tuple[str, int, Sequence[Any]]] = []
    exchange = Exchange(
        lambda peer, message: received.append(("tokens", peer, message)),
        {
            "rates": lambda peer, message: received.append(("rates", peer, message)),
            "eviction": lambda peer, message: received.append(("eviction", peer, message)),
        },
    )
    exchange.receive(1, ["rates", [["ask"]]])
    exchange.receive(2, [7, [["borrow"]]])
    exchange.receive(1, ["eviction", 3])
    assert received == [
        ("rates", 1, ["rates", [["ask"]]]),
        ("tokens", 2, [7, [["borrow"]]]),
        ("eviction", 1, ["eviction", 3]),
    ]


def test_a_message_without_a_receiver_is_a_mistake() -> None:
    exchange = Exchange(lambda peer, message: None, {})
    with pytest.raises(KeyError):
        exchange.receive(1, ["rates", []])
