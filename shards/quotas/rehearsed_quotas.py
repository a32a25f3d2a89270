"""The quotas that the meters of a rehearsal read from the image: those in force with the observed ones in them."""

from __future__ import annotations

from collections.abc import Mapping

from shards.config.image import ClusterImage
from shards.limits.quota_entities import CALLBACK, Entity


class RehearsedQuotas:
    """A QuotaImage (meters.py); it has no quota while none is observed."""

    def __init__(self, image: ClusterImage) -> None:
        self._image = image

    @property
    def quotas(self) -> Mapping[Entity, Mapping[str, float]]:
        """The quotas by entity and key; none beside a class that decides about client quotas (quota_callback.py)."""
        return {} if self._image.get(CALLBACK) else self._image.rehearsed_quotas

    def get(self, name: str) -> object:
        """As ClusterImage.get; no class decides about observed quotas."""
        return None if name == CALLBACK else self._image.get(name)
