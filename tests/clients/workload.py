"""What every client library has to manage: a topic, 100,000 records, a group of two members, committed offsets."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterable, Mapping

RECORDS = 100_000
PARTITIONS = 4
DEADLINE_S = 60.0


def value(number: int) -> bytes:
    """The record of this number."""
    return b"record-%08d" % number


class Members:
    """Two members, each in a thread of its own: `member(me)` polls until `me.stop` is set.

    A member reports the partitions it owns and the values it consumed; records are produced only once both own their
    share, so that no rebalance falls into the middle and "exactly once" can be asserted.
    """

    def __init__(self, member: Callable[[Member], None]) -> None:
        self.changed = threading.Condition()
        self.members = [Member(self.changed), Member(self.changed)]
        self._threads = [threading.Thread(target=self._run, args=(member, me), daemon=True) for me in self.members]
        for thread in self._threads:
            thread.start()

    def _run(self, member: Callable[[Member], None], me: Member) -> None:
        try:
            member(me)
        except BaseException as error:
            with self.changed:
                me.error = error
                self.changed.notify_all()

    def wait_for(self, condition: Callable[[], bool], what: str) -> None:
        """Wait until `condition`, looked at whenever a member reported something."""
        with self.changed:
            met = self.changed.wait_for(lambda: condition() or any(me.error for me in self.members), DEADLINE_S)
        for me in self.members:
            if me.error is not None:
                raise me.error
        assert met, f"{what} within {DEADLINE_S:.0f} s; " + ", ".join(
            f"a member owns {sorted(me.owned)} and has {len(me.values):,} records" for me in self.members
        )

    def wait_until_shared_out(self) -> None:
        """Both members own half of the partitions."""
        self.wait_for(
            lambda: (
                all(len(me.owned) == PARTITIONS // 2 for me in self.members)
                and not self.members[0].owned & self.members[1].owned
            ),
            "both members own their share",
        )

    def wait_until_consumed(self) -> None:
        """As many records as were produced have arrived, and each exactly once."""
        self.wait_for(lambda: sum(len(me.values) for me in self.members) >= RECORDS, "all records consumed")
        counted = Counter(value for me in self.members for value in me.values)
        assert counted.keys() == {value(number) for number in range(RECORDS)}
        assert set(counted.values()) == {1}
        assert all(me.values for me in self.members), "one member had nothing to do"

    def finish(self) -> None:
        """Let both commit and leave."""
        for me in self.members:
            me.stop.set()
        for thread in self._threads:
            thread.join(DEADLINE_S)
            assert not thread.is_alive(), "a member did not leave"
        for me in self.members:
            if me.error is not None:
                raise me.error


class Member:
    """One member of the group, as its thread reports it."""

    def __init__(self, changed: threading.Condition) -> None:
        self.stop = threading.Event()
        self.owned: set[int] = set()
        self.values: list[bytes] = []
        self.error: BaseException | None = None
        self._changed = changed

    def report(self, owned: Iterable[int], values: Iterable[bytes] = ()) -> None:
        """What it owns now, and what has arrived since the last report."""
        with self._changed:
            self.owned = set(owned)
            self.values.extend(values)
            self._changed.notify_all()


def assert_committed_to_the_end(committed: Mapping[int, int], ends: Mapping[int, int]) -> None:
    """The group has committed every record of every partition."""
    assert committed == ends
    assert sum(ends.values()) == RECORDS
    assert len(ends) == PARTITIONS
