"""Client quotas that are observed instead of enforced (shadow mode, dry run): charged by the same protocol, and never acted on.

While a client quota is observed there is an observed world beside the real one: the quotas in force with the observed ones in
them, and meters of their own, with the same homes, stand-ins and arithmetic (shards/quotas/sharded_quotas.py).

real_charge_first  A request is charged there after the quotas in force have answered, and the outcome changes nothing for
    its client. While no quota is observed, no request calls this module.
other_quotas_only  Only a client whose observed quota differs, in its value or its meter, is charged there.
nothing_withheld_is_charged  A Fetch that a quota in force answers without records costs no bytes there, and a mutation that one
    refuses costs nothing.
observed_throttles_take_back  What the observed quotas would have withheld or refused is not recorded there, as in Kafka: the
    bytes of a Fetch that one of them throttles, and mutations beyond a quota in strict versions.
one_count_a_request  A request that several observed quotas would have throttled is counted once, with the longest of their
    delays. Metadata, whose answer has no throttle time for the topics that it creates, is counted for refused ones alone.
observed_meters_begin_empty  When a first quota is observed, and when the last one ends, these meters begin anew.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial

from broker.metrics.observed_quota_counts import ObservedQuotaCounts, WouldThrottle
from broker.metrics.shard_counters import ShardCounters
from broker.serve.call import Call
from shards.config.image import ClusterImage
from shards.limits.client_quota_managers import FETCH, MUTATION
from shards.limits.quota_entities import Entity
from shards.loop.deferred import MaybeDeferred, gather, use_unawaited
from shards.quotas.sharded_quotas import RecordedCharge, ShardedQuotas


class QuotaRehearsal:
    """The observed world of one shard. `meters`: of the quotas in force; `observed`: of the observed ones; `mistaken(error)` is
    called for a mistake in a charge."""

    def __init__(
        self,
        meters: ShardedQuotas,
        observed: ShardedQuotas,
        image: ClusterImage,
        counters: ShardCounters,
        mistaken: Callable[[Exception], None],
    ) -> None:
        self.is_on = False
        self.counts = ObservedQuotaCounts()
        self._meters = meters
        self._observed = observed
        self._image = image
        self._counters = counters
        self._mistaken = mistaken
        self._quotas: Mapping[Entity, Mapping[str, float]] = {}

    def follow(self) -> None:
        """The image has another version; the meters of the quotas in force have read it."""
        if self._image.observed_quotas != self._quotas:
            self._quotas = {entity: dict(values) for entity, values in self._image.observed_quotas.items()}
            self.counts.clear()
        is_on = bool(self._quotas)
        if is_on:
            self._observed.read_quotas()
        elif self.is_on:
            self._observed.reset()
        self.is_on = is_on

    def reset(self) -> None:
        """Forgets what clients have used of observed quotas."""
        self.counts.clear()
        if self.is_on:
            self._observed.reset()

    def in_use(self, kind: str) -> bool:
        """True if a quota of this kind is observed."""
        return self.is_on and any(kind in values for values in self._quotas.values())

    # Requests

    def charge(self, call: Call, asked: Iterable[tuple[str, float]], *, withheld: bool) -> None:
        """The charges of a request that has been answered; `withheld`: a quota in force throttles it, so that a Fetch has no
        records."""
        user, client_id = call.user, call.client_id or ""
        charges = [
            (kind, amount)
            for kind, amount in asked
            if not (withheld and kind == FETCH) and self._is_another(kind, user, client_id)
        ]
        mutations = call.observed_mutations
        if charges or mutations:
            recorded = [self._observed.charge(kind, user, client_id, amount) for kind, amount in charges]
            answers = gather([*recorded, *mutations])
            use_unawaited(answers, partial(self._charged, call, charges), self._mistaken)

    def _charged(self, call: Call, charges: Sequence[tuple[str, float]], answers: Sequence[RecordedCharge]) -> None:
        user, client_id = call.user, call.client_id or ""
        would = []
        for (kind, _), answer in zip(charges, answers, strict=False):
            limit = self._observed.limit(kind, user, client_id)
            if answer.throttle_ms and limit is not None:
                would.append(WouldThrottle(kind, limit, answer.throttle_ms))
        if would:
            for (kind, amount), answer in zip(charges, answers, strict=False):
                if kind == FETCH and not answer.throttle_ms:
                    self._observed.charge(FETCH, user, client_id, -amount)
        if mutations := answers[len(charges) :]:
            would += self._mutated(call, mutations)
        if would:
            self._count(user, client_id, would)

    # Mutations

    def mutate(self, call: Call, partitions: int, *, strict: bool) -> MaybeDeferred[RecordedCharge] | None:
        """Charges a mutation that the quotas in force have accepted; None: no observed quota charges it. Counted with the other
        charges of its request (one_count_a_request)."""
        user, client_id = call.user, call.client_id or ""
        if not (self.is_on and self._is_another(MUTATION, user, client_id)):
            return None
        answer = self._observed.charge(MUTATION, user, client_id, partitions, strict=strict)
        call.observed_mutations = (*call.observed_mutations, answer)
        return answer

    def _mutated(self, call: Call, answers: Sequence[RecordedCharge]) -> list[WouldThrottle]:
        limit = self._observed.limit(MUTATION, call.user, call.client_id or "")
        throttle_ms = max(each.throttle_ms for each in answers) if call.tells_mutations else 0
        refused = sum(not each.accepted for each in answers)
        return [WouldThrottle(MUTATION, limit, throttle_ms, refused)] if limit and (throttle_ms or refused) else []

    def take_back(self, call: Call, partitions: int, answer: MaybeDeferred[RecordedCharge]) -> None:
        """Returns the charge of a mutation that failed after all, if it was accepted there (observed_throttles_take_back)."""

        def accepted(recorded: RecordedCharge) -> None:
            if recorded.accepted:
                self._observed.charge(MUTATION, call.user, call.client_id or "", -partitions)

        use_unawaited(answer, accepted, self._mistaken)

    # Parts

    def _is_another(self, kind: str, user: str, client_id: str) -> bool:
        """True if the observed quota of a client differs from the one in force (other_quotas_only)."""
        return self._observed.in_use(kind) and not self._observed.is_metered_as(self._meters, kind, user, client_id)

    def _count(self, user: str, client_id: str, would: Sequence[WouldThrottle]) -> None:
        for quota, _, throttle_ms, refused in would:
            if throttle_ms:
                self._counters.add(f"observed_throttled_{quota}", 1)
                self._counters.add(f"observed_throttle_ms_{quota}", throttle_ms)
            if refused:
                self._counters.add("observed_mutations_refused", refused)
        self.counts.add(user, client_id, would)
