"""UpdateFeatures (57), versions 0-2: KIP-584, KIP-778 (kinds of update, dry run). All updates of a request, or none.

Source: FeatureControlManager, QuorumController of Kafka 4.1; what may be updated is shards/settings/features.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker.kafka.cluster import guards
from broker.kafka.cluster_metadata import ClusterMetadata
from broker.kafka.remote import ChangeFailed, CoordinatorCalls, ask_coordinator, changed_by, spawned
from broker.kafka.security.guarded_route import GuardedRoute
from broker.serve.call import Call
from broker.wire import codes
from broker.wire.codec import Message
from shards.loop.deferred import Spawn
from shards.settings.features import SAFE_DOWNGRADE, UPGRADE

if TYPE_CHECKING:
    from broker.wire.requests import UpdateFeaturesRequest
    from broker.wire.responses import UpdateFeaturesTypes

UPDATE_FEATURES = 57


def routes(cluster: ClusterMetadata, mesh: CoordinatorCalls, spawn: Spawn) -> list[GuardedRoute]:
    async def update(request: UpdateFeaturesRequest, call: Call[UpdateFeaturesTypes]) -> Message:
        updates = {each.feature: each for each in request.feature_updates}
        wanted = [
            [name, each.max_version_level, _kind(call, each.upgrade_type, each.allow_downgrade)]
            for name, each in updates.items()
        ]
        try:
            refusal = await ask_coordinator(
                mesh, "update_features", changed_by(call), wanted, cluster.controller, request.validate_only
            )
        except ChangeFailed as failed:
            return call.types.UpdateFeaturesResponse(error_code=failed.code, error_message=failed.message, results=())
        code = codes.INVALID_UPDATE_VERSION if refusal else codes.NONE
        results = () if refusal or call.api_version >= 2 else tuple(
            call.types.UpdatableFeatureResult(feature=name, error_code=codes.NONE, error_message="NONE") for name in updates
        )  # fmt: skip
        return call.types.UpdateFeaturesResponse(error_code=code, error_message=refusal or None, results=results)

    return [GuardedRoute(UPDATE_FEATURES, spawned(spawn, update), guards.update_features)]


def _kind(call: Call[UpdateFeaturesTypes], upgrade_type: int, allow_downgrade: bool) -> int:
    """Version 0 says only whether the level may fall."""
    if call.api_version > 0:
        return upgrade_type
    return SAFE_DOWNGRADE if allow_downgrade else UPGRADE
