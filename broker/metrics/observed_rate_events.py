"""The journal's events of observed creation rates: `observed_rate`, written by the home of the rate."""

from __future__ import annotations

import json

from broker.journal.writer import JournalWriter
from shards.config.image import ClusterImage
from shards.rates.observed_rates import ADDRESS, BACK, LISTENER, USER, AnswerRun, Ask

KIND = "observed_rate"


class ObservedRateEvents:
    """The notes of one shard's observed rates."""

    def __init__(self, journal: JournalWriter, image: ClusterImage) -> None:
        self._journal = journal
        self._image = image
        self._details: dict[tuple[int, bool], str] = {}

    def answered(self, ask: Ask, run: AnswerRun, *, asker: int, at_ms: int) -> None:
        """A row for arrivals that were answered alike, and for those that were taken back."""
        key = asker, ask.what == BACK
        detail = self._details.get(key)
        if detail is None:
            of = {"asker": asker, "back": True} if key[1] else {"asker": asker}
            detail = self._details[key] = json.dumps(of, separators=(",", ":"))
        self._journal.add(
            KIND, ip=ask.name if ask.what == ADDRESS else None, user=ask.name if ask.what == USER else None,
            listener=ask.name if ask.what in (LISTENER, BACK) else None, bytes_moved=run.arrivals,
            throttle_ms=run.answer.ms, version=self._image.version, detail=detail, at_ns=at_ms * 1_000_000,
        )  # fmt: skip

    def began(self, *, at_ms: int) -> None:
        """Every window of this home begins empty."""
        self._journal.add(KIND, version=self._image.version, detail={"began": True}, at_ns=at_ms * 1_000_000)
