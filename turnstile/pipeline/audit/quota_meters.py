"""Checks that each charge of a client quota was answered by Kafka's arithmetic, by the right meter, under the quota in force.

`beyond` is a kernel over all that was noted of some meters. Each shard's part of a meter is replayed from its first note on, up
to a gap (shards/limits/quota_replay.py); a meter is judged by itself, and needs nothing of others.

quota_charges       the throttle time of a charge, to the millisecond: shorter is `exceeded`, longer `not justified`
quota_in_force      the quota that a charge was decided by is that of its version for its client, and the version was in force
quota_one_meter     a charge is decided at its meter's home; elsewhere by a stand-in, for its own clients only
quota_carried_on    what a meter goes on from was recorded before: it forgets nothing that it had itself, and has nothing that no
                    shard recorded. What it has of a shard that is gone is counted
"""

import json
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

import pyarrow

from shards.limits.client_quota_managers import MUTATION
from shards.limits.quota_replay import LEAST_SHARE, UNTOLD_SHARE, MeterReplay
from turnstile.pipeline.audit.audit_result import EXCEEDED, NOT_JUSTIFIED, UNKNOWN
from turnstile.pipeline.audit.quota_findings import Findings, client
from turnstile.pipeline.audit.quota_recorded import Recorded, recorded
from turnstile.pipeline.audit.quota_rows import BAD, CHARGE, INCARNATION, RESET, STATE, TOLD
from turnstile.pipeline.audit.quota_tables import QuotaTables
from turnstile.pipeline.events import arrays
from turnstile.pipeline.events.arrays import TableRow
from turnstile.pipeline.events.sequence import Incarnation

CHARGES, IN_FORCE, ONE_METER, CARRIED_ON = "quota_charges", "quota_in_force", "quota_one_meter", "quota_carried_on"
SLICE = 100_000
SETTLED_MS = 2_000
"""A shard that has run for so long was told what the others recorded before."""
TOLD_WITHIN_MS = 1_000
"""The time after which a record of another shard has arrived, whatever was stopped: a process that goes on reads it first."""
MS = 1_000_000


class Known(NamedTuple):
    """The facts that a meter is judged by.

    until         incarnation -> the first of its numbers that is missing
    acknowledged  (when, version) of each acknowledgement of a version that is higher than all before, in order
    stored        version -> when the coordinator stored it
    began_ms      incarnation -> when it began
    unsure        brokers of which events are missing
    """

    tables: QuotaTables
    until: Mapping[Incarnation, int]
    acknowledged: Sequence[tuple[int, int]]
    stored: Mapping[int, int]
    began_ms: Mapping[Incarnation, int]
    unsure: frozenset[int]


def beyond(known: Known, table: pyarrow.Table) -> pyarrow.Table:
    """FOUND of NOTED, which has all of each of its meters."""
    found = Findings()
    places = [arrays.numbers(table, name) for name in INCARNATION]
    names = [arrays.codes(table, name)[0] for name in ("quota", "meter_user", "meter_client")]
    seq = arrays.numbers(table, "seq")
    order, _ = arrays.grouped(places[0], *names, *places[1:], seq)
    rows = table.take(pyarrow.array(order))
    keys = [each[order] for each in (places[0], *names)]
    starts = [*arrays.begins(*keys), len(order)]
    for first, end in pairwise(starts):
        of_meter = rows.slice(first, end - first)
        judged = _Meter(known, found, recorded(of_meter))
        for row in _each(of_meter):
            judged.note(row)
    return found.table()


def _each(rows: pyarrow.Table) -> Iterator[TableRow]:
    """Rows one by one; SLICE at a time as Python objects, of which millions would take gigabytes."""
    for start in range(0, rows.num_rows, SLICE):
        yield from rows.slice(start, SLICE).to_pylist()


class _Meter:
    """One meter of a broker: the notes of each incarnation of its shards, one after the other."""

    def __init__(self, known: Known, found: Findings, recorded: Recorded) -> None:
        self._known = known
        self._found = found
        self._recorded = recorded
        self._place: Incarnation | None = None
        self._part: _Part | None = None

    def note(self, row: TableRow) -> None:
        """The next note, in order of incarnation and number."""
        place = row["broker"], row["shard"], row["epoch"]
        if row["seq"] >= self._known.until.get(place, row["seq"] + 1):
            return
        if row["what"] == RESET:
            return
        if self._part is None or place != self._place or row["era"] != self._part.era:
            self._place, self._part = place, _Part(self._known, self._found, self._recorded, row)
        self._part.note(row, place)


class _Part:
    """A meter at one incarnation of a shard, between two resets. `replay`: None while its sensor is not known."""

    def __init__(self, known: Known, found: Findings, recorded: Recorded, row: TableRow) -> None:
        self.era = row["era"]
        self._recorded = recorded
        self._known = known
        self._found = found
        place = row["broker"], row["shard"], row["epoch"]
        window = known.tables.window(place, row["version"], mutations=row["quota"] == MUTATION)
        self._replay: MeterReplay | None = MeterReplay(row["quota"], window)
        self._at_ms = 0
        self._version = row["version"]
        self._begun = False

    def note(self, row: TableRow, place: Incarnation) -> None:
        at_ms = row["at_ns"] // MS
        if row["what"] == BAD or at_ms < self._at_ms:
            why = (
                f"a note of {_meter(row)} can't be read"
                if row["what"] == BAD
                else f"the clock of {_meter(row)} goes back"
            )
            self._found.add(CHARGES, UNKNOWN, why, row)
            self._replay = None
            return
        if not self._begun and row["what"] == CHARGE:
            self._judge_start(row, place, at_ms, 0.0)
        if row["what"] == STATE:
            self._begin(row, place, at_ms)
        elif row["what"] == TOLD:
            detail = json.loads(row["detail"])
            if self._replay is not None:
                quota = row["in_force"]
                self._replay.insert(detail["amount"], quota, recorded_ms=int(detail["recorded_ms"]), now_ms=at_ms)
        elif row["what"] == CHARGE:
            self._charge(row, place, at_ms)
        self._at_ms, self._version, self._begun = at_ms, row["version"], True

    # What a meter goes on from

    def _begin(self, row: TableRow, place: Incarnation, at_ms: int) -> None:
        before, quota = self._replay, row["in_force"]
        window = self._known.tables.window(place, row["version"], mutations=row["quota"] == MUTATION)
        replay = MeterReplay(row["quota"], window)
        try:
            state = json.loads(row["detail"])
            replay.begin(state)
            used = replay.used(quota, now_ms=at_ms)
        except (ValueError, TypeError, KeyError, IndexError):
            self._replay = None
            self._found.add(CHARGES, UNKNOWN, f"what {_meter(row)} goes on from can't be read", row)
            return
        self._replay = replay
        self._found.looked_at(CARRIED_ON, "meters", row["broker"])
        self._judge_cause(row, place, at_ms, used)
        if not self._begun:
            self._judge_start(row, place, at_ms, used)
        if not self._begun or before is None or (row["quota"] == MUTATION and (not state or self._was_unlimited(row))):
            return
        had = before.used(quota, now_ms=at_ms)
        if used < had - abs(had) * LEAST_SHARE:
            self._found.add(
                CARRIED_ON, EXCEEDED, f"{_meter(row)} goes on from {used:g} of {had:g} that it had recorded", row
            )

    def _judge_cause(self, row: TableRow, place: Incarnation, at_ms: int, used: float) -> None:
        """Checks that the state from which a meter goes on was recorded by some shard."""
        key = row["meter_user"], row["meter_client"]
        is_all_noted = self._known.tables.always_limits(row["version"], row["quota"], key)
        if (
            not is_all_noted
            or row["broker"] in self._known.unsure
            or self._recorded.is_shared
            or self._known.tables.was_reset
        ):
            return
        if row["quota"] == MUTATION and not self._recorded.is_of(row["in_force"]):
            return  # under another quota a bucket holds more, or less
        window = self._known.tables.window(place, row["version"], mutations=row["quota"] == MUTATION)
        counts_ms = at_ms if row["quota"] == MUTATION else (window.samples + 1) * window.size_ms
        most = self._recorded.most(at_ms - counts_ms, at_ms)
        if row["quota"] != MUTATION:
            # What a shard had not told of what counts no more counts later with the rest of its total
            # (shards/quotas/charge_history.py, only_later).
            untold = self._known.tables.shards(place) * row["in_force"] * window.burst_s / UNTOLD_SHARE
            most += max(0.0, min(untold, self._recorded.most(0, at_ms - counts_ms)))
        if used > most + max(abs(most), 1.0) * 1e3 * LEAST_SHARE:
            why = f"{_meter(row)} goes on from {used:g}, and only {most:g} were recorded"
            self._found.add(CARRIED_ON, NOT_JUSTIFIED, why, row)

    def _judge_start(self, row: TableRow, place: Incarnation, at_ms: int, used: float) -> None:
        """A meter that was not used on a shard before has what the others told that shard, all but what each may keep untold. It
        may lack that for a moment where its shard was stopped itself, or its links broke; so that is counted, and no more."""
        if row["quota"] == MUTATION:
            return
        window = self._known.tables.window(place, row["version"], mutations=False)
        since_ms = max(at_ms - window.samples * window.size_ms + 1, self._known.began_ms.get(place, at_ms) + SETTLED_MS)
        least, quota = self._recorded.by_others(place, since_ms, at_ms - TOLD_WITHIN_MS)
        untold = self._known.tables.shards(place) * quota * window.burst_s / UNTOLD_SHARE
        if least > untold:
            self._found.looked_at(CARRIED_ON, "begun", row["broker"])
            self._found.looked_at(CARRIED_ON, "lacking", row["broker"], used < least - untold)

    def _was_unlimited(self, row: TableRow) -> bool:
        """True if a version since the last note gave the meter no quota: its bucket may have been filled without limit."""
        key = row["meter_user"], row["meter_client"]
        versions = range(self._version, row["version"] + 1)
        tables = (self._known.tables.table(each, row["quota"]) for each in versions)
        return any(table is None or table.limit(key) is None for table in tables)

    # Charges

    def _charge(self, row: TableRow, place: Incarnation, at_ms: int) -> None:
        self._judge_limit(row, at_ms)
        self._judge_home(row, place)
        self._found.looked_at(CHARGES, "charges", row["broker"])
        if row["is_shared"]:
            self._found.looked_at(CHARGES, "shared", row["broker"])
            self._replay = None
            return
        if self._replay is None:
            return
        amount, noted_ms = row["amount"], row["throttle_ms"]
        said = self._replay.charge(amount, row["limit_value"], strict=row["is_strict"], now_ms=at_ms)
        self._replay.settle(amount, throttled=noted_ms > 0, now_ms=at_ms)
        if said.throttle_ms == noted_ms and said.accepted == row["is_accepted"]:
            return
        is_less = noted_ms < said.throttle_ms or (row["is_accepted"] and not said.accepted)
        was = f"was {'accepted' if row['is_accepted'] else 'refused'} and throttled for {noted_ms:,} ms"
        should = f"{'accepted' if said.accepted else 'refused'}, {said.throttle_ms:,} ms"
        self._found.add(
            CHARGES, EXCEEDED if is_less else NOT_JUSTIFIED,
            f"{client(row)}: {amount:,} under {row['quota']}={row['limit_value']:g} {was}; by Kafka's arithmetic {should}", row,
        )  # fmt: skip

    def _judge_limit(self, row: TableRow, at_ms: int) -> None:
        version, at_ns = row["version"], row["at_ns"]
        passed = bisect_left(self._known.acknowledged, (at_ns, 0)) - 1
        if passed >= 0 and self._known.acknowledged[passed][1] > version:
            newer = self._known.acknowledged[passed][1]
            why = f"{client(row)} was charged under version {version} after version {newer} was acknowledged"
            self._found.add(IN_FORCE, EXCEEDED, why, row)
        if at_ns + MS <= self._known.stored.get(version, 0):
            self._found.add(IN_FORCE, UNKNOWN, f"version {version} was charged under before it was stored", row)
        if not row["is_known"]:
            return
        in_force, noted = row["in_force"], row["limit_value"]
        self._found.looked_at(IN_FORCE, "charges", row["broker"])
        if in_force == noted:
            return
        set_to = "has none" if in_force is None else f"has {in_force:g}"
        why = f"{client(row)} was charged under {row['quota']}={noted:g}, and {set_to} by version {version}"
        self._found.add(IN_FORCE, EXCEEDED if in_force is not None and noted > in_force else NOT_JUSTIFIED, why, row)

    def _judge_home(self, row: TableRow, place: Incarnation) -> None:
        home, shard = row["home"], row["shard"]
        if row["is_shared"] and row["is_named"]:
            why = f"{_meter(row)} has a quota that names it, and is said to be shared with other clients"
            self._found.add(ONE_METER, UNKNOWN, why, row)
        if home < 0:
            return
        if row["is_stand_in"]:
            self._found.looked_at(ONE_METER, "stand_ins", row["broker"])
            if home == shard or row["asker"] != shard:
                why = f"{_meter(row)} is at home on shard {home}; shard {shard} can't stand in for shard {row['asker']}"
                self._found.add(ONE_METER, UNKNOWN, why, row)
            return
        if home != shard:
            why = f"{_meter(row)} is at home on shard {home}, and shard {shard} decided by a meter of its own"
            self._found.add(ONE_METER, EXCEEDED, why, row)
        if not 0 <= row["asker"] < self._known.tables.shards(place):
            self._found.add(
                ONE_METER, UNKNOWN, f"{_meter(row)} was asked by shard {row['asker']}, which there is not", row
            )


def _meter(row: TableRow) -> str:
    return f"the meter of {client(row, 'meter_user', 'meter_client')} ({row['quota']})"
