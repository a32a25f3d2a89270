"""The cluster's own counters, over the admin HTTP, and what became of each address's connections."""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Mapping
from dataclasses import dataclass, field, replace

from turnstile.admin_client import AdminClient, AdminError, AdminRefused, AdminUnreachable

ADMITTED = "turnstile_connections_admitted_total"
REFUSED = "turnstile_connections_refused_total"
BLOCKED = "kafka_network_acceptor_acceptorblockedpercent_count_total"
"""The name in the parser's spelling, which gives every counter a `_total`."""
ADMITTED_OUTCOME = "admitted"
"""The outcome of admitted connections in GET /v1/sources; the others are reasons of refusals."""
AFTER_LOGIN = ("user_cap", "user_rate")
"""Reasons of connections that a cluster counts as admitted, and again when it refuses them for the user that logged in."""


@dataclass(frozen=True)
class BySource:
    """The outcomes of each address's connections: ip -> outcome -> how many, as GET /v1/sources has it. Only tables
    with the same `forgotten` can be subtracted."""

    forgotten: int
    counts: dict[str, dict[str, int]]

    def since(self, before: BySource) -> BySource | None:
        """The counts since `before`; None where a shard has forgotten its counts in between."""
        if self.forgotten != before.forgotten:
            return None
        risen = {}
        for ip, outcomes in self.counts.items():
            old = before.counts.get(ip, {})
            if changed := {name: n - old.get(name, 0) for name, n in outcomes.items() if n != old.get(name, 0)}:
                risen[ip] = changed
        return BySource(self.forgotten, risen)


@dataclass(frozen=True)
class Counters:
    """Connections the cluster has admitted and refused since it started, and the incarnation of every shard. One that it admitted,
    and then refused for its user, is refused here alone, as its client sees it."""

    admitted: int = 0
    refused: dict[str, int] = field(default_factory=dict)
    epochs: dict[tuple[int, int], int] = field(default_factory=dict)
    by_source: BySource | None = None
    """None: the cluster doesn't tell, or some shard did not answer."""
    was_blocked: bool = False
    """True if a rate, or a cap that lets connections wait, ever stopped a listener."""

    def since(self, before: Counters) -> Counters:
        """The counts since `before`; reasons that did not occur are left out."""
        refused = {reason: n - before.refused.get(reason, 0) for reason, n in self.refused.items()}
        changed = {reason: n for reason, n in refused.items() if n}
        by_source = None
        if self.by_source is not None and before.by_source is not None and self.epochs == before.epochs:
            by_source = self.by_source.since(before.by_source)
        return Counters(self.admitted - before.admitted, changed, self.epochs, by_source)

    def of(self, own: Container[str]) -> Counters:
        """The outcomes of these addresses' connections. Only where `by_source` is known."""
        assert self.by_source is not None
        total: Counter[str] = Counter()
        for ip, outcomes in self.by_source.counts.items():
            if ip in own:
                total.update(outcomes)
        return Counters(_let_in(total.pop(ADMITTED_OUTCOME, 0), total), dict(total), self.epochs)

    def of_others(self, own: Container[str]) -> dict[str, int]:
        """The number of connections of each other address, the most first."""
        counts = self.by_source.counts if self.by_source is not None else {}
        found = {ip: _let_in(sum(outcomes.values()), outcomes) for ip, outcomes in counts.items() if ip not in own}
        return dict(sorted(found.items(), key=lambda each: (-each[1], each[0])))

    @property
    def refused_in_all(self) -> int:
        """Refusals, of all reasons together."""
        return sum(self.refused.values())


def read(admin: AdminClient) -> Counters | None:
    """The counters behind the admin API; None when nothing there has them, as with a broker that is not Turnstile.

    Raises AdminRefused when the token is missing or wrong.
    """
    try:
        counters = parse(admin.text("/metrics"))
        shards = admin.get("/v1/shards")["shards"]
    except AdminRefused as fault:
        if fault.status == 401:
            raise
        return None
    except (AdminUnreachable, ValueError, KeyError, TypeError):
        return None
    epochs = {(shard["broker"], shard["shard"]): shard["epoch"] for shard in shards}
    by_source = _by_source(admin, len(epochs))
    return counters and replace(counters, epochs=epochs, by_source=by_source)


def _by_source(admin: AdminClient, shards: int) -> BySource | None:
    try:
        answer = admin.get("/v1/sources")
        return BySource(answer["forgotten"], answer["sources"]) if answer["shards"] == shards else None
    except (AdminError, KeyError, TypeError):
        return None


def parse(exposition: str) -> Counters | None:
    """Counters from the Prometheus text format, summed over shards and listeners; None when they are not in it.

    Raises ValueError for what is not that format.
    """
    from prometheus_client.parser import text_string_to_metric_families

    refused: dict[str, int] = {}
    admitted, found, blocked = 0, False, False
    for family in text_string_to_metric_families(exposition):
        for sample in family.samples:
            if sample.name == ADMITTED:
                admitted += int(sample.value)
            elif sample.name == REFUSED:
                reason = sample.labels.get("reason", "unknown")
                refused[reason] = refused.get(reason, 0) + int(sample.value)
            elif sample.name == BLOCKED:
                blocked = blocked or sample.value > 0
            found = found or sample.name in (ADMITTED, REFUSED)
    return Counters(_let_in(admitted, refused), refused, was_blocked=blocked) if found else None


def _let_in(admitted: int, refused: Mapping[str, int]) -> int:
    """The admitted connections, without those that were refused later."""
    return admitted - sum(refused.get(reason, 0) for reason in AFTER_LOGIN)
