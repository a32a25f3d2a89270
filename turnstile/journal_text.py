"""A loss in the journal in words, for `turnstile status` and the pytest plugin."""

from __future__ import annotations

from typing import TYPE_CHECKING

from turnstile.quantities import count

if TYPE_CHECKING:
    from broker.admin.cluster_answers import JournalAnswer


def journal_lines(journal: JournalAnswer) -> list[str]:
    """One line if events were dropped, none if not. `journal`: as /v1/cluster and /v1/live have it."""
    dropped = journal["events_dropped"]
    if not dropped:
        return []
    more = ", and more are being dropped now" if journal["is_losing"] else ""
    return [f"{count(dropped)} events dropped since the start{more}: audit and report lack them, the log says why"]
