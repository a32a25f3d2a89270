"""Any order of fetches, acknowledgements, time, leaving and restarts: the invariants of share_partition.py, against plain lists.

The model knows of each offset who has it and how often it was given; the file of a share partition is replayed at each restart.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from broker.kafka.share.acknowledgement import AcknowledgementBatch, AcknowledgeType
from broker.kafka.share.in_flight import RecordState
from broker.kafka.share.share_log import ShareKey, ShareLog
from broker.kafka.share.share_partition import Lock, OffsetSpan, SharePartition, Wanted
from broker.kafka.share.share_session import TopicIdPartition

MEMBERS = st.sampled_from(["a", "b", "c"])
MOST, LIMIT, LOCK_MS = 12, 3, 50
KEY = ShareKey("g", TopicIdPartition("00" * 16, 0))


class ShareMachine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()
        self.now_ms = 0
        self.spans: list[OffsetSpan] = []
        self.given: dict[int, int] = {}
        self.done: set[int] = set()
        self.started = 0

    @initialize()
    def begin(self) -> None:
        self.log = ShareLog(Path(self.folder.name))
        self.log.begin(KEY, 0)

    @property
    def partition(self) -> SharePartition:
        found = self.log.get(KEY)
        assert found is not None
        return found

    def keep(self, before: tuple[int, list]) -> None:
        self.log.write(KEY, self.partition, before)

    @property
    def before(self) -> tuple[int, list]:
        return self.partition.start_offset, self.partition.runs

    def lock(self, member: str) -> Lock:
        return Lock(member, self.now_ms + LOCK_MS, LIMIT)

    @rule(size=st.integers(1, 6), hole=st.sampled_from([0, 0, 0, 2]))
    def produce(self, size: int, hole: int) -> None:
        start = (self.spans[-1].last + 1 if self.spans else 0) + hole
        self.spans.append(OffsetSpan(start, start + size - 1, 1))

    @rule(member=MEMBERS, most=st.integers(1, 8), size=st.integers(1, 5), strict=st.booleans(), dropped=st.booleans())
    def fetch(self, member: str, most: int, size: int, strict: bool, dropped: bool) -> None:
        partition, before = self.partition, self.before
        if not partition.can_acquire(MOST):
            return
        held = {offset for run in partition.runs if run.member for offset in range(run.first, run.last + 1)}
        read = [span for span in self.spans if span.last >= partition.next_fetch_offset()][:3]
        drop = read[-1:] if dropped else []
        acquired = partition.acquire(read, self.lock(member), Wanted(most, size, MOST, strict), drop)
        offsets = [offset for each in acquired for offset in range(each.first, each.last + 1)]
        assert len(offsets) == len(set(offsets)) and (not strict or len(offsets) <= most)
        assert not held & set(offsets) and not self.done & set(offsets)
        for each in acquired:
            for offset in range(each.first, each.last + 1):
                self.given[offset] = self.given.get(offset, 0) + 1
                assert self.given[offset] == each.deliveries <= LIMIT
        live = sum(run.size for run in partition.runs if run.state is not RecordState.ARCHIVED)
        assert live <= MOST
        self.keep(before)

    @rule(member=MEMBERS, first=st.integers(-1, 20), size=st.integers(1, 8), kind=st.sampled_from(AcknowledgeType))
    def acknowledge(self, member: str, first: int, size: int, kind: AcknowledgeType) -> None:
        partition, before = self.partition, self.before
        first += partition.start_offset
        offsets = range(first, first + size)
        mine = {o for run in partition.runs if run.member == member for o in range(run.first, run.last + 1)}
        code, _ = partition.acknowledge([AcknowledgementBatch(first, first + size - 1, [kind])], self.lock(member))
        live = [offset for offset in offsets if offset >= before[0]]
        assert (code == 0) == (set(live) <= mine)
        if code:
            assert self.before == before
        elif kind in (AcknowledgeType.ACCEPT, AcknowledgeType.REJECT, AcknowledgeType.GAP):
            self.done |= set(live)
        self.keep(before)

    @rule(ms=st.integers(1, 40))
    def wait(self, ms: int) -> None:
        partition, before = self.partition, self.before
        self.now_ms += ms
        late = [run for run in partition.runs if run.member and run.until_ms <= self.now_ms]
        kept = [run for run in partition.runs if run.member and run.until_ms > self.now_ms]
        assert partition.expire(LIMIT, now_ms=self.now_ms) == bool(late)
        assert [run for run in partition.runs if run.member] == kept
        self.keep(before)

    @rule(member=MEMBERS)
    def leave(self, member: str) -> None:
        before = self.before
        self.partition.release(member, LIMIT)
        assert not [run for run in self.partition.runs if run.member == member]
        self.keep(before)

    @rule(up=st.integers(1, 5))
    def delete_records(self, up: int) -> None:
        before = self.before
        self.partition.log_starts_at(self.partition.start_offset + up)
        self.keep(before)

    @rule()
    def restart(self) -> None:
        """kill -9: what is on disk is as it was, but that nobody has acquired anything."""
        expected = [(run.first, run.last, run.state, run.deliveries) for run in self.partition.runs]
        start = self.partition.start_offset
        self.log.close()
        self.log = ShareLog(Path(self.folder.name))
        assert self.partition.start_offset == start
        there = {o: (r.state, r.deliveries) for r in self.partition.runs for o in range(r.first, r.last + 1)}
        for first, last, state, deliveries in expected:
            known = RecordState.AVAILABLE if state is RecordState.ACQUIRED else state
            assert all(there[offset] == (known, deliveries) for offset in range(first, last + 1))

    @precondition(lambda self: hasattr(self, "log"))
    @invariant()
    def holds(self) -> None:
        self.partition.check()
        assert self.partition.start_offset >= self.started
        self.started = self.partition.start_offset

    def teardown(self) -> None:
        if hasattr(self, "log"):
            self.log.close()
        self.folder.cleanup()


TestSharePartition = ShareMachine.TestCase
TestSharePartition.settings = settings(max_examples=60, stateful_step_count=30, deadline=None)
