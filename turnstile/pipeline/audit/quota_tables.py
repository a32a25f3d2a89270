"""The client quotas that each version of a journal sets, and the homes and windows of their meters in each process."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Mapping
from typing import Any

from shards.limits.precedence import QuotaTable
from shards.limits.rate import Window
from shards.ownership import home_of
from turnstile.pipeline.events.sequence import Incarnation
from turnstile.pipeline.events.survey import Survey
from turnstile.pipeline.events.timeline import Timeline


class QuotaTables:
    """Look-ups for the checks of client quotas. `resets`: incarnation -> (seq, version) of each reset, in order."""

    def __init__(self, seen: Survey, timeline: Timeline, resets: Mapping[Incarnation, list[tuple[int, int]]]) -> None:
        self._resets = {place: [seq for seq, _ in each] for place, each in resets.items()}
        self._shards = {place: span.shards for place, span in seen.spans().items()}
        self._timeline = timeline
        self._quotas = {version: timeline.client_quotas(version) for version in timeline.versions}
        self._tables: dict[tuple[int, str], QuotaTable | None] = {}

    @property
    def was_reset(self) -> bool:
        """True if any process began its meters anew."""
        return bool(self._resets)

    @property
    def any(self) -> bool:
        """True if any version sets a quota of users or client ids."""
        return any(any(kinds.values()) for kinds in self._quotas.values() if kinds)

    def is_known(self, version: int) -> bool:
        """True if what a version sets is known."""
        return self._quotas.get(version) is not None

    def era(self, place: Incarnation, seq: int) -> int:
        """The number of meter resets that the process `place` had journaled by its event number `seq`."""
        return bisect_right(self._resets.get(place, ()), seq)

    def table(self, version: int, kind: str) -> QuotaTable | None:
        """The quotas of a kind that a version sets; None where that is not known."""
        key = version, kind
        if key not in self._tables:
            self._tables[key] = self._made(*key)
        return self._tables[key]

    def always_limits(self, version: int, kind: str, key: tuple[str, str]) -> bool:
        """True if every version up to this one that sets any quota of that kind sets one for this key. If not, what the key used
        before may be missing from the journal."""
        for each in self._quotas:
            table = self.table(each, kind) if each <= version else None
            if each <= version and (table is None or (table.in_use and table.limit(key) is None)):
                return False
        return True

    def home(self, place: Incarnation, kind: str, key: tuple[str, str]) -> int | None:
        """The shard that is home to a key while this process runs; None where the number of shards is not told."""
        shards = self._shards.get(place, 0)
        return home_of("\0".join((kind, *key)), shards) if shards else None

    def shards(self, place: Incarnation) -> int:
        """The number of shards of its broker while this process runs; 0 where that is not told."""
        return self._shards.get(place, 0)

    def window(self, place: Incarnation, version: int, *, mutations: bool) -> Window:
        """The window of its meters."""
        limits = self._timeline.limits(version, place[0]).limits
        return limits.mutation_window if mutations else limits.window

    def _made(self, version: int, kind: str) -> QuotaTable | None:
        quotas = self._quotas.get(version)
        if quotas is None or kind not in quotas:
            return None
        table = QuotaTable()
        for entity, value in quotas[kind].items():
            table.update(dict(entity), value)
        return table


def resets_of(rows: Iterable[Mapping[str, Any]]) -> dict[Incarnation, list[tuple[int, int]]]:
    """Incarnation -> (seq, version) of each of its notes that all meters begin anew, in order. `rows`: these notes."""
    found: dict[Incarnation, list[tuple[int, int]]] = {}
    for row in rows:
        found.setdefault((row["broker"], row["shard"], row["epoch"]), []).append((row["seq"], row["version"]))
    return {place: sorted(each) for place, each in found.items()}
