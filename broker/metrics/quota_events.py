"""The journal's events of meters: `charge` and `meter`, written by the shard that decided, at a quota's home or as its stand-in;
of observed quotas `observed_charge` and `observed_meter`."""

import json
from collections.abc import Callable, Mapping
from typing import Final, NamedTuple

from broker.journal.writer import K_CHARGE, K_OBSERVED_CHARGE, JournalWriter
from shards.limits.client_quota_managers import REQUEST
from shards.limits.short_names import short_name
from shards.limits.throttle_time import java_round
from shards.quotas.charge_history import MeterKey
from shards.quotas.charge_notes import Charge
from shards.quotas.meters import Decision


class EventKinds(NamedTuple):
    """The names of the events of some meters: the code of their charges, and the kind of what they note besides."""

    charge: int
    meter: str


CHARGES: Final = EventKinds(K_CHARGE, "meter")
OBSERVED_CHARGES: Final = EventKinds(K_OBSERVED_CHARGE, "observed_meter")


class QuotaEvents:
    """Notes of one shard's meters (charge_notes.py). `version()` is the configuration version in force for them."""

    def __init__(self, journal: JournalWriter, version: Callable[[], int], kinds: EventKinds = CHARGES) -> None:
        self._kinds = kinds
        self._journal = journal
        self._version = version
        self._details: dict[tuple[int, bool, bool, bool], str] = {}

    def charged(
        self,
        charge: Charge,
        decision: Decision,
        limit: float,
        *,
        asker: int,
        at_ms: int,
        stand_in: bool,
        shares: bool,
    ) -> None:
        """A row for each charge, also without a throttle."""
        kind, user, client_id, amount, strict = charge
        key = asker, strict, decision.accepted, shares
        detail = self._details.get(key)
        if detail is None:
            detail = self._details[key] = _detail(*key)
        self._journal.charge(
            short_name(user) or None, client_id or None, amount=java_round(amount * 1e6) if kind == REQUEST else int(amount),
            throttle_ms=decision.throttle_ms, limit=kind, limit_value=limit, version=self._version(), at_ms=at_ms, detail=detail,
            stand_in=stand_in, code=self._kinds.charge,
        )  # fmt: skip

    def began(self, place: MeterKey, state: Mapping[str, object], *, at_ms: int) -> None:
        """Notes the state that a meter goes on from."""
        self._add(place, state, at_ms)

    def inserted(self, place: MeterKey, amount: float, *, recorded_ms: int, at_ms: int) -> None:
        """Notes the charges that another shard recorded."""
        self._add(place, {"recorded_ms": recorded_ms, "amount": amount}, at_ms)

    def reset(self, *, at_ms: int) -> None:
        """All meters begin anew."""
        self._journal.add(self._kinds.meter, version=self._version(), detail={"reset": True}, at_ns=at_ms * 1_000_000)

    def _add(self, place: MeterKey, detail: Mapping[str, object], at_ms: int) -> None:
        self._journal.add(
            self._kinds.meter,
            user=place.user or None,
            client_id=place.client_id or None,
            limit=place.kind,
            version=self._version(),
            detail=detail,
            at_ns=at_ms * 1_000_000,
        )


def _detail(asker: int, strict: bool, accepted: bool, shares: bool) -> str:
    of: dict[str, object] = {"asker": asker}
    if strict:
        of["strict"] = True
    if not accepted:
        of["accepted"] = False
    if shares:
        of["shared"] = True
    return json.dumps(of, separators=(",", ":"))
