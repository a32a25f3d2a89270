"""The charges of a journal of Turnstile's own: what its meters noted (docs/internals/journal.md)."""

import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pyarrow
import pyarrow.compute

from broker.journal.schema import COORDINATOR
from shards.limits.client_quota_managers import FETCH, REQUEST
from turnstile.pipeline.errors import PipelineError
from turnstile.pipeline.events import arrays
from turnstile.pipeline.events.arrays import TableRow
from turnstile.pipeline.events.digest import DIGEST, digest
from turnstile.pipeline.events.journal import EVENTS, here
from turnstile.pipeline.events.survey import survey
from turnstile.pipeline.quota_plan.usage import Charge, Usage, in_order

MS = 1_000_000
REFUSED = "mutations that were refused: they are asked again"
WITHHELD = "fetches that were throttled: they are asked again"
TAKEN_BACK = "charges that were taken back"
NO_CHARGES = (
    "{places} has no charges: a broker counts what a client uses only while it has a quota. Set one that is never reached, such as "
    "turnstile quota set 'client-id=<default>' producer_byte_rate=1000000000000 consumer_byte_rate=1000000000000 "
    "request_percentage=1000000, and run the traffic again."
)
BY_REDPANDAS_RULES = (
    "{places} has no charges: its cluster held client quotas by Redpanda's rules (turnstile.quota.semantics=redpanda), and such "
    "a cluster notes none. Run the traffic against a cluster without that setting, and give its clients a quota, however high."
)
BY_CALLBACK = (
    "{places} has no charges: a class (client.quota.callback.class) decided about the client quotas of its cluster, which then "
    "notes none. Run the traffic against a cluster without that setting, and give its clients a quota, however high."
)
PARTLY_BY_REDPANDAS_RULES = (
    "What clients used under quotas by Redpanda's rules (turnstile.quota.semantics=redpanda) is not in the journal, "
    "nor in this plan."
)
OWN_LIMITS = (
    "The journal's clients were throttled {count:,} times in {total:,} charges: else they might have asked for more."
)


def read(folders: Sequence[Path], places: Sequence[str], *, until_ns: int | None = None) -> Usage:
    """The charges of journals. Raises NoInput, or PipelineError when there is none in them."""
    journal = here(folders, until_ns=until_ns)
    assert journal is not None
    events = journal.rows.table()
    charges = events.filter(pyarrow.array(arrays.is_one_of(events, "kind", ("charge",))))
    timeline = survey(journal.rows.each(digest, DIGEST).table()).timeline()
    if not charges.num_rows:
        why = BY_REDPANDAS_RULES if timeline.has_redpandas_quotas else NO_CHARGES
        why = BY_CALLBACK if timeline.has_quota_callback else why
        raise PipelineError(why.format(places=", ".join(places)))
    put_aside: Counter[str] = Counter()
    offset_ms = round(_offset_us(charges) / 1000)
    uses, throttled = [], 0
    for row in charges.select(
        [each for each in EVENTS.names if each not in ("ts_us", "ip", "port", "listener")]
    ).to_pylist():
        throttled += row["throttle_ms"] > 0
        use = _charge(row, offset_ms, put_aside)
        if use is not None:
            uses.append(use)
    if not uses:
        raise PipelineError(NO_CHARGES.format(places=", ".join(places)))
    notes = [OWN_LIMITS.format(count=throttled, total=charges.num_rows)] if throttled else []
    if timeline.has_redpandas_quotas:
        notes.append(PARTLY_BY_REDPANDAS_RULES)
    usage = Usage(in_order(uses), put_aside, notes)
    if timeline.versions:
        limits = timeline.limits(timeline.versions[-1], int(charges["broker"][0].as_py())).limits
        return usage._replace(window=limits.window, mutations=limits.mutation_window)
    return usage


def _offset_us(charges: pyarrow.Table) -> float:
    """The wall clock less mono_ns, of the first charge: one machine has one clock."""
    return float(charges["ts_us"][0].as_py() or 0) - float(charges["mono_ns"][0].as_py()) / 1000


def _charge(row: TableRow, offset_ms: int, put_aside: Counter[str]) -> Charge | None:
    """A charge as it would be without its quota. None for one that is asked again or was taken back: `put_aside` counts
    why."""
    try:
        detail = json.loads(row["detail"] or "{}")
        amount, kind = int(row["bytes"]), row["limit"]
    except (ValueError, TypeError):
        put_aside["a charge that can't be read"] += 1
        return None
    if row["broker"] == COORDINATOR or not isinstance(detail, dict):
        put_aside["a charge that can't be read"] += 1
        return None
    if not detail.get("accepted", True):
        put_aside[REFUSED] += 1
        return None
    if amount < 0:
        put_aside[TAKEN_BACK] += 1
        return None
    if kind == FETCH and row["throttle_ms"] > 0:
        put_aside[WITHHELD] += 1
        return None
    used = amount / 1e6 if kind == REQUEST else amount
    at_ms = row["mono_ns"] // MS + offset_ms
    return Charge(
        at_ms, str(row["broker"]), row["user"] or "", row["client_id"] or "", kind, used, bool(detail.get("strict"))
    )
