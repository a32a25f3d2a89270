"""The notes of a shard on its meters, so that their arithmetic can be done again elsewhere (shards/limits/quota_replay.py).

all_of_it   from the first charge of a key, or from a note `began`, its sensor can be rebuilt from the notes alone: each charge
            here, and what other shards told. Where it may hold more, as a client that had no quota before, `began` notes it
            whole before the next charge. Sensors that clients share are not followed: their charges say so.
"""

from collections.abc import Mapping
from typing import NamedTuple, Protocol

from shards.quotas.charge_history import MeterKey
from shards.quotas.meters import Decision


class Charge(NamedTuple):
    """The charge of a client: bytes, handler ms or partitions, in the unit of its kind."""

    kind: str
    user: str
    client_id: str
    amount: float
    strict: bool


class ChargeNotes(Protocol):
    """Hears of every change of the sensors from which charges under a quota are decided, in their order. Times are ms."""

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
        """A charge of a client of shard `asker` was decided; `shares`: by a sensor that clients share."""
        ...

    def began(self, place: MeterKey, state: Mapping[str, object], *, at_ms: int) -> None:
        """The sensor of a key holds this (`state` of rate.py or bucket.py) before its next charge; empty: nothing."""
        ...

    def inserted(self, place: MeterKey, amount: float, *, recorded_ms: int, at_ms: int) -> None:
        """Another shard told what it had recorded of a key, in its sensor's own unit."""
        ...

    def reset(self, *, at_ms: int) -> None:
        """All sensors begin anew."""
        ...
