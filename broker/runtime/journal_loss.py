"""Dropped journal events, told while it happens: one line in the log when it begins, and one when it is over.

What was dropped is a gap for the audit, which then says `unknown` instead of passing; here an operator hears of it in time.
"""

from __future__ import annotations

from typing import Final

from broker.journal.writer import JournalWriter
from broker.runtime.logger import Logger

QUIET_S: Final = 2.0
"""A loss is over when for so long no event was dropped: a process that has nothing to write can't know that it could."""


class JournalLoss:
    """Watches one process's journal. `dropped`: its events that are in no file. `is_losing`: more were dropped a moment ago."""

    def __init__(self, journal: JournalWriter, log: Logger) -> None:
        self._journal = journal
        self._log = log
        self._before = 0  # dropped before the present loss
        self._over_s = 0.0
        self.dropped = 0
        self.is_losing = False

    def tick(self, now_s: float) -> None:
        """Looks at the journal's count; to be called a few times a second."""
        dropped = self._journal.dropped
        if dropped > self.dropped:
            if not self.is_losing:
                self.is_losing, self._before = True, self.dropped
                self._log.warning(
                    "journal events are dropped: audit and report will lack them", why=self._journal.fault
                )
            self.dropped, self._over_s = dropped, now_s + QUIET_S
        elif self.is_losing and now_s >= self._over_s:
            self.is_losing = False
            self._log.warning("no more journal events are dropped", dropped=dropped - self._before)
