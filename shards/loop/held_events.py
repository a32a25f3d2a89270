"""The events of watchers that are not called for a while, as those of a thread that blocks.

held_events_are_kept  An event of a held watcher is delivered once, in the pass after the release; those of one watcher together.
released_for_a_pass  Watchers that are held again before that pass are called in it all the same, and then held: so none starves.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

Events = Iterable[tuple[int, int]]
"""(descriptor, its events)."""


class HeldEvents:
    """The events of the watchers of a class, and of those that derive from it."""

    def __init__(self, kind: type) -> None:
        self._kind = kind
        self._kept: dict[int, tuple[object, int]] = {}
        self.released = False
        self.after_release: HeldEvents | None = None
        """Holds the same watchers again, after the pass in which these events are delivered; None: they are not held again."""

    @property
    def descriptors(self) -> Collection[int]:
        """The descriptors whose events are kept."""
        return self._kept.keys()

    def hold(self) -> None:
        """Holds events; after a release, once the kept ones are delivered (released_for_a_pass)."""
        if self.released and self.after_release is None:
            self.after_release = HeldEvents(self._kind)

    def release(self) -> None:
        """Holds events no more, for good."""
        self.released = True
        self.after_release = None

    def sift(self, ready: Events, again: dict[int, None], watchers: Mapping[int, object]) -> list[tuple[int, int]]:
        """The events of a pass that are delivered in it, of those that are `ready`; takes out of `again` whatever is not called
        again in this pass, or is called anyway."""
        return self._deliver(ready, again, watchers) if self.released else self._keep(ready, again, watchers)

    def _keep(self, ready: Events, again: dict[int, None], watchers: Mapping[int, object]) -> list[tuple[int, int]]:
        passed = []
        for fd, events in ready:
            watcher = watchers.get(fd)
            if isinstance(watcher, self._kind):
                self._add(fd, watcher, events)
            else:
                passed.append((fd, events))
        for fd in [fd for fd in again if isinstance(watchers.get(fd), self._kind)]:
            del again[fd]
            self._add(fd, watchers[fd], 0)
        return passed

    def _add(self, fd: int, watcher: object, events: int) -> None:
        before, kept = self._kept.get(fd, (watcher, 0))
        self._kept[fd] = watcher, (events | kept if before is watcher else events)

    def _deliver(self, ready: Events, again: dict[int, None], watchers: Mapping[int, object]) -> list[tuple[int, int]]:
        """A descriptor that another watcher has by now gets nothing of what was kept."""
        found = {fd: events for fd, (watcher, events) in self._kept.items() if watchers.get(fd) is watcher}
        for fd, events in ready:
            found[fd] = found.get(fd, 0) | events
        for fd in found:
            again.pop(fd, None)
        return list(found.items())
