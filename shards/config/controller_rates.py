"""Redpanda's limits of controller operations (`rps_limit_*`), which hold while `enable_controller_log_rate_limiting` is true.

an_operation_each  A topic that is created, extended, deleted, moved or has its configs changed is an operation; so is a user. A
    change of settings is one, and so is a request that creates or deletes ACLs, however many they are. What is only validated,
    or is refused for another reason, is none.
refused_alone      Of a batch of topics each that finds no token is refused by itself; another change is refused whole.
a_second_at_first  A group has a bucket of `controller_log_accummulation_rps_capacity_*` operations, else of a second's worth. It
    begins with a second's worth; a changed rate keeps the tokens.
others_are_free    Client quotas, delegation tokens, features and faults are in no group, nor is what the cluster is started with.
    Redpanda has one more, of node management, of which nothing can be asked here.

Source: controller_log_limiter (Redpanda 24.3).
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Final, NamedTuple

import trio

from shards.config.config_state import Change
from shards.errors import ControllerThrottled
from shards.settings.config_types import Value
from shards.settings.redpanda_controller import ENABLED, capacity_of, rate_of

TOPICS, ACLS_AND_USERS, MOVES, CONFIGURATION = (
    "topic_operations", "acls_and_users_operations", "move_operations", "configuration_operations",
)  # fmt: skip
EXEMPT: Final = "turnstile up"
_REFUSED: Final = "THROTTLING_QUOTA_EXCEEDED"


class Admitted(NamedTuple):
    """The part of a batch that is admitted: the records to store, and the answer for each name."""

    delta: list[Change]
    answers: list[list[str]]


class _Bucket:
    """`milli`: thousandths of a token, counted at `now_ms`."""

    def __init__(self, milli: int, now_ms: int) -> None:
        self.milli = milli
        self.now_ms = now_ms

    def draw(self, operations: int) -> bool:
        """Takes their tokens, if there are so many."""
        if self.milli < 1000 * operations:
            return False
        self.milli -= 1000 * operations
        return True


class ControllerRates:
    """The buckets of one controller. `get(name)`: a setting in force. Trio's clock counts."""

    def __init__(self, get: Callable[[str], Value]) -> None:
        self._get = get
        self._buckets: dict[str, _Bucket] = {}

    def take(self, group: str, who: str, delta: Sequence[Change]) -> None:
        """Charges a change that is made or refused as a whole; group "": none. Raises ControllerThrottled, and takes nothing."""
        if group and delta and self._limits(who) and not self._bucket(group).draw(_operations(group, delta)):
            raise ControllerThrottled(self._why(group))

    def each(
        self, group: str, who: str, wanted: Sequence[tuple[str, *tuple[object, ...]]]
    ) -> Callable[[list[Change], list[list[str]]], Admitted]:
        """The function that admits the items of a batch one by one. `wanted`: rows with their names first. It is given the
        records, one for each name that would be changed, and the answers."""
        return partial(self._admit, group, who, [each[0] for each in wanted])

    def _admit(
        self, group: str, who: str, names: Sequence[str], delta: list[Change], answers: list[list[str]]
    ) -> Admitted:
        if not self._limits(who):
            return Admitted(delta, answers)
        bucket = self._bucket(group)
        late = {record[1] for record in delta if not bucket.draw(1)}
        refused = [_REFUSED, self._why(group)]
        answered = [refused if name in late else answer for name, answer in zip(names, answers, strict=True)]
        return Admitted([record for record in delta if record[1] not in late], answered)

    def _limits(self, who: str) -> bool:
        return bool(self._get(ENABLED)) and who != EXEMPT

    def _bucket(self, group: str) -> _Bucket:
        """The bucket of a group, with the tokens that have fallen due by now."""
        rate, capacity = self._get(rate_of(group)), self._get(capacity_of(group))
        now_ms = int(1000 * trio.current_time())
        assert isinstance(rate, int) and (capacity is None or isinstance(capacity, int))
        most = 1000 * (rate if capacity is None else capacity)
        bucket = self._buckets.get(group)
        if bucket is None:
            bucket = self._buckets[group] = _Bucket(min(1000 * rate, most), now_ms)
        bucket.milli = min(most, bucket.milli + (now_ms - bucket.now_ms) * rate)
        bucket.now_ms = now_ms
        return bucket

    def _why(self, group: str) -> str:
        return f"The controller takes no more operations for now ({rate_of(group)})."


def _operations(group: str, delta: Sequence[Change]) -> int:
    """The number of operations that a change counts as if it is made as a whole (an_operation_each)."""
    return len(delta) if group == TOPICS or delta[0][0] == "user" else 1
