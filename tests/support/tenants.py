"""A class for client.quota.callback.class: clients acme-1, acme-2, ... share the quota that is set for client-id=acme."""

from __future__ import annotations

from collections.abc import Mapping


class TenantQuotas:
    def __init__(self) -> None:
        self.limits: dict[tuple[str, str | None], float] = {}
        self.is_reset = False

    def quota_metric_tags(self, quota_type: str, user: str, client_id: str) -> Mapping[str, str]:
        if client_id == "fault":
            raise ValueError("of the class itself")
        if client_id.startswith("user"):
            return {"user": user, "client-id": client_id}
        return {"tenant": client_id.partition("-")[0]}

    def quota_limit(self, quota_type: str, metric_tags: Mapping[str, str]) -> float | None:
        return self.limits.get((quota_type, metric_tags.get("tenant")))

    def update_quota(self, quota_type: str, entity: Mapping[str, str | None], value: float) -> None:
        self.limits[quota_type, entity.get("client-id")] = value

    def remove_quota(self, quota_type: str, entity: Mapping[str, str | None]) -> None:
        self.limits.pop((quota_type, entity.get("client-id")), None)

    def quota_reset_required(self, quota_type: str) -> bool:
        was_reset, self.is_reset = self.is_reset, False
        return was_reset


class Half:
    """It lacks most methods."""

    def quota_metric_tags(self, quota_type: str, user: str, client_id: str) -> Mapping[str, str]:
        return {}
