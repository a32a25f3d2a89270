"""One-way messages between shards, each handed to its receiver.

A message begins with the name of its receiver. Those of tokens, by far the most, have none: they begin with a number
(shards/tokens/outbox.py), and go to `tokens`.

every_message_has_a_receiver  A message of a name that has no receiver raises: shards of one broker run the same program.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

Receiver = Callable[[int, Sequence[object]], None]
"""Called with (peer, message)."""


class Exchange:
    """The receivers of one shard: `tokens`, and `named` by the first field of their messages."""

    def __init__(self, tokens: Receiver, named: Mapping[str, Receiver]) -> None:
        self._tokens = tokens
        self._named = dict(named)

    def receive(self, peer: int, message: Sequence[object]) -> None:
        """A one-way message of another shard, as Mesh.on_message gets it."""
        first = message[0]
        if isinstance(first, str):
            self._named[first](peer, message)
        else:
            self._tokens(peer, message)
