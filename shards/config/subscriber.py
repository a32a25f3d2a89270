"""A shard's end of the push: puts the parts of a version together, swaps the View, and answers once it is enforced.

F1  The View never shows part of a version.
F2  `apply` answers its last part only after `enforce` has reported the version enforced here: then nothing on this
    shard decides by an older one (invariant 5 of the design).
"""

from collections.abc import Callable
from typing import Any

import trio

from shards.config.image import ClusterImage

Enforce = Callable[[int, frozenset[str], Callable[[], None]], None]
"""enforce(version, changed, done): act on the View's new version; call `done` once what exceeds it is revoked."""


class Subscriber:
    """Serves the coordinator's `apply` calls. `ready` is set when the first whole state is in force."""

    def __init__(self, image: ClusterImage, enforce: Enforce) -> None:
        self.image = image
        self.ready = trio.Event()
        self._enforce = enforce
        self._parts: list[list[Any]] = []
        self.delta: list[list[Any]] = []  # what made the View's present version, and whether it was everything
        self.whole = False

    async def apply(self, peer: object, version: int, part: list[list[Any]], whole: bool, more: bool) -> int:
        """As the coordinator calls it; answers with the version this shard has come to."""
        self._parts += part
        if more:
            return self.image.version
        self.delta, self._parts = self._parts, []
        self.whole = whole
        changed = self.image.apply(version, self.delta, whole=whole)
        done = trio.Event()
        self._enforce(version, changed, done.set)
        await done.wait()
        self.ready.set()
        return version

    def coordinator_lost(self) -> None:
        """The link ended: parts of an unfinished push are void; the next coordinator begins with everything."""
        self._parts = []
