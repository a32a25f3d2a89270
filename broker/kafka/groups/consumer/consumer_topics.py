"""The topics of the cluster as groups of the consumer protocol see them, and which of them match clients' expressions.

An expression is compiled when a client first sends it and matched with every topic by a task, a slice at a time, so that
many topics delay no other client. A topic that is created or deleted later is matched with the known expressions alone.

expressions_match_this_version  The known matches of an expression are its matches among the topics of this version.
expressions_are_bounded  At most MAX_EXPRESSIONS are known; the one that was asked for longest ago is forgotten first, and
    matched again if it is needed.

Source: TopicRegexResolver of Kafka 4.1, which looks again every ten seconds at the earliest.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable

import trio
from cachetools import LRUCache

from broker.kafka.security.access import Access
from broker.kafka.security.acl import Operation
from shards.config.image import ClusterImage
from shards.loop.deferred import Deferred
from shards.settings.patterns import BadPattern, whole

MAX_EXPRESSIONS = 1000
SLICE_S = 0.002
AT_ONCE = 2000
"""Names that are matched without a pause when the topics change; if there are more, everything is matched anew on demand."""


class ConsumerTopics:
    """A group's `Topics`. `access` None: there is no authorizer."""

    def __init__(self, image: ClusterImage, access: Access | None = None) -> None:
        self._access = access
        self.version = 0
        self._image = image
        self._names: frozenset[str] = frozenset()
        self._compiled: LRUCache[str, Callable[[str], bool] | BadPattern] = LRUCache(MAX_EXPRESSIONS)
        self._matches: LRUCache[str, frozenset[str]] = LRUCache(MAX_EXPRESSIONS)
        self._waiting: dict[str, list[Deferred[None]]] = {}
        self._wake = trio.Event()

    # --- what groups ask ---------------------------------------------------------------------------------------------

    def get(self, name: str) -> tuple[str, int] | None:
        topic = self._image.topics.get(name)
        return None if topic is None else (topic.id.hex, len(topic.leaders))

    def fault(self, regex: str) -> str | None:
        """The error of the expression; None: it has none."""
        compiled = self._compile(regex)
        return str(compiled) if isinstance(compiled, BadPattern) else None

    def knows(self, regex: str) -> bool:
        return regex in self._matches

    def matching(self, regex: str, reader: tuple[str, str]) -> Collection[str]:
        found = self._matches.get(regex)
        if found is None:
            found = self._matches[regex] = self._match(regex, self._names)
        access = self._access
        if access is None or not access.is_on:
            return found
        return [name for name in found if access.member_may(reader, Operation.DESCRIBE, name)]

    def ask(self, regex: str) -> Deferred[None]:
        """Resolved when the matches of a valid expression are known."""
        answer: Deferred[None] = Deferred()
        self._waiting.setdefault(regex, []).append(answer)
        self._wake.set()
        return answer

    # --- changes -------------------------------------------------------------------------------------------------------

    def image_changed(self, kinds: Collection[str]) -> None:
        if "topic" in kinds:
            self._topics_changed()
        elif "acl" not in kinds or self._access is None or not self._access.is_on:
            return
        self.version += 1

    def _topics_changed(self) -> None:
        names = frozenset(topic.name for topic in self._image.topics)
        added, removed = names - self._names, self._names - names
        self._names = names
        if len(added) * len(self._matches) > AT_ONCE:
            self._matches.clear()
        elif added or removed:
            for regex, found in list(self._matches.items()):
                self._matches[regex] = (found - removed) | self._match(regex, added)

    async def run(self) -> None:
        """Matches what was asked for, until cancelled."""
        while True:
            await self._wake.wait()
            self._wake = trio.Event()
            while self._waiting:
                regex = next(iter(self._waiting))
                if not self.knows(regex):
                    await self._match_in_slices(regex)
                for answer in self._waiting.pop(regex):
                    answer.resolve(None)

    async def _match_in_slices(self, regex: str) -> None:
        names: frozenset[str] = frozenset()
        found: set[str] = set()
        while names != self._names:  # expressions_match_this_version: again if topics have changed meanwhile
            before, names = names, self._names
            found &= names
            pause_at = time.monotonic() + SLICE_S
            for name in names - before:
                found |= self._match(regex, (name,))
                if time.monotonic() > pause_at:
                    await trio.lowlevel.checkpoint()
                    pause_at = time.monotonic() + SLICE_S
        self._matches[regex] = frozenset(found)

    # --- expressions -----------------------------------------------------------------------------------------------------

    def _match(self, regex: str, names: Iterable[str]) -> frozenset[str]:
        compiled = self._compile(regex)
        if isinstance(compiled, BadPattern):
            return frozenset()
        return frozenset(name for name in names if compiled(name))

    def _compile(self, regex: str) -> Callable[[str], bool] | BadPattern:
        compiled = self._compiled.get(regex)
        if compiled is None:
            try:
                compiled = whole(regex)
            except BadPattern as fault:
                compiled = fault
            self._compiled[regex] = compiled
        return compiled
