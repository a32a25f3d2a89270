"""The configuration of each broker as its shards see it, for answers about limits. Made anew when the version changes."""

from __future__ import annotations

from shards.config.coordinator import Coordinator
from shards.config.image import ClusterImage
from shards.limits.precedence import QuotaTable
from shards.limits.quota_entities import CLIENT_KEYS, entity_of_key


class Images:
    """Read-only. Topics are left out: no answer about limits needs them, and there may be many."""

    def __init__(self, coordinator: Coordinator) -> None:
        self._coordinator = coordinator
        self._version = -1
        self._images: dict[int, ClusterImage] = {}
        self._quotas: dict[str, QuotaTable] = {}

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
            found = self._quotas[key] = QuotaTable()
            for text, values in self._coordinator.state.quotas.items():
                entity = dict(entity_of_key(text))
                if key in values and "ip" not in entity:
                    found.update(entity, values[key])
        return found

    def client_quotas(self) -> dict[str, QuotaTable]:
        """All of them by key."""
        return {key: self.quotas(key) for key in CLIENT_KEYS}

    def _renew(self) -> None:
        if self._version != self._coordinator.state.version:
            self._version = self._coordinator.state.version
            self._images.clear()
            self._quotas.clear()
