"""Batches whose records are laid out alike, as a producer with one kind of record sends them again and again.

Walking over 146 records of 100 bytes takes longer than writing them to the file. If an earlier batch of the same size and
number of records was uniform, its plan says at which places of every record which byte stands. In a batch with the same
bytes there, the records are laid out the same; each comparison is of one column of all records, in C.

plans_compare_delimiters  A plan compares every byte that delimits a record (its lengths, its offset delta, its number of
    headers), and takes a timestamp delta of one byte that is not negative. So what passes would pass the walk of
    record_scan.py.
plans_are_bounded  At most MOST_PLANS plans of MOST_RECORDS records are kept; when there are as many, all are dropped.
"""

from typing import Final, NamedTuple

from broker.wire.primitives import Buffer

MOST_PLANS: Final = 512
MOST_RECORDS: Final = 1024
ONE_BYTE_OFFSETS: Final = 64
TWO_BYTE_OFFSETS: Final = 8192
FIRST: Final = bytes(2 * n & 0x7F | (0x80 if n >= ONE_BYTE_OFFSETS else 0) for n in range(TWO_BYTE_OFFSETS))
SECOND: Final = bytes(2 * n >> 7 for n in range(TWO_BYTE_OFFSETS))
"""The varints of the offset deltas 0 to 8191: the first byte of each, and the second of those that have one."""
_DELTAS: Final = bytes(range(0, 128, 2))
"""The varints of timestamp deltas of one byte that are not negative."""


class RecordLayout(NamedTuple):
    """The places of a record's parts, counted from its start; a length stands before its part."""

    attributes: int
    offset: int
    key_length: int
    key: int
    value_length: int
    value: int
    headers: int
    size: int


class _Plan(NamedTuple):
    columns: list[tuple[slice, bytes]]  # bytes of all records at one place, and what they must be
    deltas: list[slice]  # the places of the timestamp deltas
    has_keys: bool


class UniformRecords:
    """The plans found so far. `position` is where the records of a batch begin in its buffer, which they fill to its end."""

    def __init__(self) -> None:
        self._plans: dict[tuple[int, int, int], _Plan] = {}

    def match(self, buffer: Buffer, position: int, count: int) -> tuple[int, int, bool] | None:
        """(earliest, latest timestamp delta in ms, whether all have keys; else none has) of `count` records that follow a plan;
        None if they do not."""
        plan = self._plans.get((position, len(buffer), count))
        if plan is None:
            return None
        for place, expected in plan.columns:
            if buffer[place] != expected:
                return None
        deltas = b"".join([bytes(buffer[column]) for column in plan.deltas])
        if deltas.translate(None, _DELTAS):
            return None
        if deltas.count(deltas[0]) == count:  # mostly: a batch is filled within a millisecond
            return deltas[0] >> 1, deltas[0] >> 1, plan.has_keys
        return min(deltas) >> 1, max(deltas) >> 1, plan.has_keys

    def learn(self, buffer: Buffer, position: int, count: int, layout: RecordLayout) -> None:
        """A sound batch, whose first record has this layout, no headers: keeps a plan if all records are laid out like it."""
        if layout.offset - layout.attributes != 2 or layout.key_length - layout.offset != 1 or count > MOST_RECORDS:
            return
        few = min(count, ONE_BYTE_OFFSETS)
        behind = position + few * layout.size
        if behind + (count - few) * (layout.size + 1) != len(buffer):
            return
        first = bytes(buffer[position : position + layout.size])
        plan = _Plan([], [], has_keys=first[layout.key_length] & 1 == 0)
        _add(plan, first, layout, position, range(few))
        if count > few:  # their offset deltas have two bytes
            longer = _longer(first, layout)
            if longer is None:
                return
            _add(plan, *longer, behind, range(few, count))
        if len(self._plans) >= MOST_PLANS:
            self._plans.clear()
        key = position, len(buffer), count
        self._plans[key] = plan
        if self.match(buffer, position, count) is None:
            del self._plans[key]


def _longer(record: bytes, layout: RecordLayout) -> tuple[bytes, RecordLayout] | None:
    """A record like this one with one more byte in its offset delta; None if its own length would have one more, too."""
    head = int.from_bytes(record[: layout.attributes], "little")
    head += 2  # the length is zigzag, and its last seven bits come first
    if head & 0x80 != record[0] & 0x80:
        return None
    longer = head.to_bytes(layout.attributes, "little") + record[layout.attributes : layout.offset] + b"\0"
    return longer + record[layout.offset :], RecordLayout(*layout[:2], *(place + 1 for place in layout[2:]))


def _add(plan: _Plan, record: bytes, layout: RecordLayout, start: int, indexes: range) -> None:
    """Adds to the plan: records from `start` on, all laid out like `record`, with these offset deltas."""
    end = start + len(indexes) * layout.size

    def column(at: int) -> slice:
        return slice(start + at, end, layout.size)

    fixed = [
        layout.headers,
        *range(layout.key_length, layout.key),
        *range(layout.value_length, layout.value),
        *range(layout.attributes),
    ]
    plan.columns.extend((column(at), record[at : at + 1] * len(indexes)) for at in fixed)
    plan.columns.append((column(layout.offset), FIRST[indexes.start : indexes.stop]))
    if layout.key_length - layout.offset == 2:
        plan.columns.append((column(layout.offset + 1), SECOND[indexes.start : indexes.stop]))
    plan.deltas.append(column(layout.attributes + 1))
