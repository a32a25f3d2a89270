"""A shard's end of the push: puts the parts of a version together, swaps the image, and answers once it is enforced.

no_part_of_a_version_shows  The image never shows part of a version.
answered_when_enforced  `apply` answers its last part only after `enforce` has reported the version enforced here: then
    nothing on this shard decides by an older one.
each_version_reported_with_its_delta  Each enforced version is reported with its own delta, also when the next one arrives
    meanwhile.
"""

from collections.abc import Callable
from typing import NamedTuple

import trio

from shards.config.image import ClusterImage, ImageChange


class AppliedVersion(NamedTuple):
    """A version that the image has become. `delta` made it, and was all there is if it was `whole`."""

    version: int
    delta: list[list[object]]
    whole: bool
    changed: ImageChange


Enforce = Callable[[AppliedVersion, Callable[[], None]], None]
"""enforce(applied, done): act on the image's new version; call `done` once every token beyond it is revoked."""


class Subscriber:
    """Serves the coordinator's `apply` calls."""

    def __init__(self, image: ClusterImage, enforce: Enforce) -> None:
        self.image = image
        self._enforce = enforce
        self._parts: list[list[object]] = []
        self._parts_of = -1  # the version they belong to

    async def apply(self, peer: object, version: int, part: list[list[object]], whole: bool, more: bool) -> int:
        """Called by the coordinator; answers with the version this shard has come to."""
        if version != self._parts_of:
            self._parts, self._parts_of = [], version
        self._parts += part
        if more:
            return self.image.version
        delta, self._parts = self._parts, []
        changed = self.image.apply(version, delta, whole=whole)
        done = trio.Event()
        self._enforce(AppliedVersion(version, delta, whole, changed), done.set)
        await done.wait()
        return version

    def coordinator_lost(self) -> None:
        """The link ended: parts of an unfinished push are void; the next coordinator begins with everything."""
        self._parts = []
