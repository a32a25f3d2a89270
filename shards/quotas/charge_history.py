"""The records under each key, and the shards that made them: what a meter elsewhere needs to go on from it. No clock, no I/O.

A shard that decides charges of a key keeps a *curve*: its running total of them. It publishes *points* of the curve, the
total at an instant, and remembers the points of the others. A point counts all that came before it, so a lost one is made up
for by the next, and one that arrives twice, or from two shards, changes nothing.

own_is_whole    the total of a curve that is decided here counts every amount that was ever recorded in it
counted_once    `merge` hands out an amount once, whichever shards tell it
only_later      an amount whose point was lost or dropped counts at the instant of the next point, never earlier
window_kept     a point stays until it is older than all that counts (`keep_ms`). Beyond MOST_POINTS, points are dropped so that
                no amount counts more than keep_ms / THINNED_TO later
one_name        a curve is named by its shard and the instant it began; a total that starts again is another curve
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

MOST_POINTS: Final = 256
THINNED_TO: Final = 64
"""Points of a curve, and how many about are left where there were more. A home has some 50 in a window (sharded_quotas.py,
UNTOLD_SHARE); a stand-in one for each pass of its loop."""


class MeterKey(NamedTuple):
    """A key of one kind of quota: the client's names that share a meter, "" where they do not tell clients apart."""

    kind: str
    user: str
    client_id: str


class Point(NamedTuple):
    """The total of a curve at an instant (ms); `number` rises from point to point of a shard, also from curve to curve of a key."""

    number: int
    at_ms: int
    total: float


class CurvePart(NamedTuple):
    """Points of one curve as they go to another shard; where none of it is known, they are counted from the first on."""

    key: MeterKey
    shard: int
    began_ms: int
    points: list[Point]

    @classmethod
    def read(cls, row: Sequence[Any]) -> CurvePart:
        """The part of a curve, from the lists that msgpack makes of it."""
        key, shard, began_ms, points = row
        return cls(MeterKey(*key), shard, began_ms, [Point(*point) for point in points])


class Recorded(NamedTuple):
    """An amount that another shard recorded."""

    key: MeterKey
    at_ms: int
    amount: float


class Curve:
    """The total of one key at one shard, and its published points in order; the first is a base and counts no more."""

    __slots__ = ("at_ms", "began_ms", "points", "total")

    def __init__(self, began_ms: int, points: list[Point]) -> None:
        self.began_ms = began_ms
        self.points = points
        self.total = points[-1].total
        self.at_ms = points[-1].at_ms  # the time of the last amount

    @property
    def untold(self) -> float:
        """The amount that is recorded and not in a point."""
        return self.total - self.points[-1].total

    def add_point(self, point: Point, keep_ms: int) -> None:
        """The next point (window_kept)."""
        self.points.append(point)
        if len(self.points) > MOST_POINTS:
            kept, *points = self.points
            self.points = [kept]
            for each, following in itertools.pairwise(points):
                if following.at_ms - kept.at_ms > keep_ms / THINNED_TO:
                    self.points.append(kept := each)
            self.points.append(point)

    def trim(self, before_ms: int) -> None:
        """Drops points from before that instant; the last of them becomes the base."""
        points = self.points
        while len(points) > 1 and points[1].at_ms <= before_ms:
            del points[0]


class ChargeHistory:
    """The curves of one shard and those it was told of. `keep_ms`: by kind of quota, how long an amount counts."""

    def __init__(self, me: int, keep_ms: Mapping[str, int]) -> None:
        self._me = me
        self._numbers = itertools.count(1)
        self.start(keep_ms)

    def start(self, keep_ms: Mapping[str, int]) -> None:
        """Starts with nothing recorded."""
        self._keep_ms = keep_ms
        self._own: dict[MeterKey, Curve] = {}
        self._others: dict[MeterKey, dict[tuple[int, int], Curve]] = {}

    def __len__(self) -> int:
        return len(self._own) + len(self._others)

    def record(self, key: MeterKey, amount: float, *, now_ms: int) -> float:
        """Counts what was decided here; answers how much of that key, recorded or taken back, no point has told yet (>= 0)."""
        curve = self._own.get(key)
        if curve is None:
            curve = self._own[key] = Curve(now_ms, [Point(next(self._numbers), now_ms, 0)])
        curve.total += amount
        curve.at_ms = now_ms
        return abs(curve.untold)

    def publish(self, key: MeterKey, *, now_ms: int) -> int:
        """Makes a point of the untold amount of a key, if there is any: the number of the last point."""
        curve = self._own.get(key)
        if curve is None:
            return 0
        if curve.untold:
            curve.trim(now_ms - self._keep_ms[key.kind])
            curve.add_point(Point(next(self._numbers), curve.at_ms, curve.total), self._keep_ms[key.kind])
        return curve.points[-1].number

    def keys(self) -> list[MeterKey]:
        """Every key of which there is a point."""
        own = (key for key, curve in self._own.items() if len(curve.points) > 1)
        return [*dict.fromkeys(itertools.chain(self._others, own))]

    def since(self, key: MeterKey, number: int) -> Iterator[CurvePart]:
        """The points of the own curve of a key from that number on."""
        curve = self._own.get(key)
        if curve is not None:
            known = sum(point.number < number for point in curve.points[1:])
            points = curve.points[known:]
            if len(points) > 1:
                yield CurvePart(key, self._me, curve.began_ms, points)

    def whole(self, key: MeterKey) -> Iterator[CurvePart]:
        """All points of a key, whichever shards they are of: for a shard that knows none."""
        curve = self._own.get(key)
        if curve is not None and len(curve.points) > 1:
            yield CurvePart(key, self._me, curve.began_ms, curve.points)
        for (shard, began_ms), curve in self._others.get(key, {}).items():
            yield CurvePart(key, shard, began_ms, curve.points)

    def merge(self, row: CurvePart) -> list[Recorded]:
        """Takes over points, and says what was not known of (counted_once, only_later)."""
        own = self._own.get(row.key)
        if row.shard == self._me and own is not None and own.began_ms == row.began_ms:
            return []
        name = row.shard, row.began_ms
        curves = self._others.setdefault(row.key, {})
        curve = curves.get(name)
        if curve is None:
            curve = curves[name] = Curve(row.began_ms, [row.points[0]])
        recorded = []
        for point in row.points:
            last = curve.points[-1]
            if point.number > last.number:
                recorded.append(Recorded(row.key, point.at_ms, point.total - last.total))
                curve.add_point(point, self._keep_ms[row.key.kind])
        return recorded

    def expire(self, key: MeterKey, *, now_ms: int) -> None:
        """Forgets what counts no more of a key."""
        before_ms = now_ms - self._keep_ms[key.kind]
        own = self._own.get(key)
        if own is not None and own.at_ms <= before_ms:
            del self._own[key]
        curves = self._others.get(key)
        if curves is not None:
            for name, curve in list(curves.items()):
                curve.trim(before_ms)
                if curve.points[-1].at_ms <= before_ms:
                    del curves[name]
            if not curves:
                del self._others[key]

    def forget(self, key: MeterKey) -> None:
        """Forgets a key."""
        self._own.pop(key, None)
        self._others.pop(key, None)

    def turn(self) -> Iterator[MeterKey]:
        """The keys that are known now, one after the other."""
        yield from [*self._own, *self._others]

    def check(self) -> None:
        """Raises AssertionError when an invariant does not hold that can be seen here."""
        for curve in (*self._own.values(), *(each for curves in self._others.values() for each in curves.values())):
            numbers = [point.number for point in curve.points]
            assert numbers == sorted(set(numbers)), "window_kept: points are in order"
            assert len(numbers) <= MOST_POINTS, "window_kept: few points"
        assert all(self._others.values()), "window_kept: a key without curves is forgotten"
