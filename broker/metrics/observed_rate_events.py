"""The journal's events of observed creation rates: `observed_rate`, written by the home of the rate."""

from __future__ import annotations

import json
from collections.abc import Sequence

from broker.journal.writer import JournalWriter
from shards.config.image import ClusterImage
from shards.limits.observed_windows import ADDRESS, BACK, LISTENER, USER, RateAnswer

KIND = "observed_rate"


class ObservedRateEvents:
    """The notes of one shard's observed rates."""

    def __init__(self, journal: JournalWriter, image: ClusterImage) -> None:
        self._journal = journal
        self._image = image
        self._details: dict[tuple[int, bool], str] = {}

    def within(self, what: str, names: Sequence[str], *, asker: int, at_ms: int) -> None:
        """One row for arrivals from addresses, or logins of users, that were within their rates: their names are in its detail."""
        self._journal.add(
            KIND, bytes_moved=len(names), throttle_ms=0, version=self._image.version, detail={"asker": asker, what: names},
            at_ns=at_ms * 1_000_000,
        )  # fmt: skip

    def answered(self, what: str, name: str, answer: RateAnswer, arrivals: int, *, asker: int, at_ms: int) -> None:
        """A row for arrivals that were answered alike, and for those that were taken back."""
        key = asker, what == BACK
        detail = self._details.get(key)
        if detail is None:
            of = {"asker": asker, "back": True} if key[1] else {"asker": asker}
            detail = self._details[key] = json.dumps(of, separators=(",", ":"))
        self._journal.add(
            KIND, ip=name if what == ADDRESS else None, user=name if what == USER else None,
            listener=name if what in (LISTENER, BACK) else None, bytes_moved=arrivals,
            throttle_ms=answer.ms, version=self._image.version, detail=detail, at_ns=at_ms * 1_000_000,
        )  # fmt: skip

    def began(self, *, at_ms: int) -> None:
        """Every window of this home begins empty."""
        self._journal.add(KIND, version=self._image.version, detail={"began": True}, at_ns=at_ms * 1_000_000)
