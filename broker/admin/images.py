"""The configuration of each broker as its shards see it, for answers about limits. Made anew when the version changes."""

from __future__ import annotations

from shards.config.coordinator import Coordinator
from shards.config.image import ClusterImage
from shards.limits.client_buckets import KINDS, ClientBuckets
from shards.limits.precedence import Match, QuotaTable
from shards.limits.quota_callback import CallbackQuotaTable, ClientQuotaCallback, make_callback
from shards.limits.quota_entities import CALLBACK, CLIENT_KEYS, KAFKAS, SEMANTICS, entity_of_key, is_of_kafka
from shards.limits.redpanda_precedence import RedpandaMatch, user_of


class Images:
    """Read-only. Topics are left out: no answer about limits needs them, and there may be many."""

    def __init__(self, coordinator: Coordinator) -> None:
        self._coordinator = coordinator
        self._version = -1
        self._images: dict[int, ClusterImage] = {}
        self._quotas: dict[str, QuotaTable] = {}
        self._buckets: ClientBuckets | None = None
        self._callback: ClientQuotaCallback | None = None

    def of(self, broker: int) -> ClusterImage:
        """The settings and quotas that hold on a broker."""
        self._renew()
        found = self._images.get(broker)
        if found is None:
            state = self._coordinator.state
            found = self._images[broker] = ClusterImage(broker)
            found.apply(state.version, [change for change in state.dump() if change[0] != "topic"], whole=True)
        return found

    def quotas(self, key: str) -> QuotaTable:
        """The client quotas of one key, such as producer_byte_rate; they hold on each broker by itself."""
        self._renew()
        found = self._quotas.get(key)
        if found is None:
            found = self._quotas[key] = self._table(key)
            for text, values in self._coordinator.state.quotas.items():
                entity = entity_of_key(text)
                if key in values and is_of_kafka(entity):
                    found.update(dict(entity), values[key])
        return found

    def _table(self, key: str) -> QuotaTable:
        path = self._coordinator.state.value(CALLBACK)
        if not path:
            return QuotaTable()
        if self._callback is None:
            self._callback = make_callback(str(path))
        return CallbackQuotaTable(key, self._callback, lambda fault: None)

    def matches(self, user: str, client_id: str) -> dict[str, Match | RedpandaMatch]:
        """The quota that holds for a client by the semantics in force, by quota key; `user`: the name in its principal."""
        if self._coordinator.state.text(SEMANTICS) == KAFKAS:
            return {key: self.quotas(key).match(user, client_id) for key in CLIENT_KEYS}
        self._renew()
        if self._buckets is None:
            self._buckets = ClientBuckets()
            stored = self._coordinator.state.quotas.items()
            self._buckets.set_quotas({entity_of_key(text): values for text, values in stored})
        buckets, user = self._buckets, user_of(user)
        return {key: buckets.match(key, user, client_id) for key in KINDS}

    def _renew(self) -> None:
        if self._version != self._coordinator.state.version:
            self._version = self._coordinator.state.version
            self._callback = None  # the next table makes a new one, and tells it all quotas
            self._images.clear()
            self._quotas.clear()
            self._buckets = None
