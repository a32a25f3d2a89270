"""ApiVersions (18), versions 0-4: KIP-35, KIP-511 (client software, answered in version 0 when too new), KIP-584.

The versions are those of the routes. Produce is listed from version 0, as Kafka 4.1 does for librdkafka's sake, though
it is served from 3. Client telemetry is listed while there is a client metrics resource, and in Kafka while a plugin takes
what is pushed: clients that see it listed ask for subscriptions, and say so in their logs.

Of the features that are listed, clients that know level 2 of `transaction.version` use KIP-890's second version of the protocol,
level 1 of `group.version` is the consumer group protocol (KIP-848), and level 1 of `share.version` are share groups (KIP-932).
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING

from broker.kafka.security.guarded_route import OPEN, GuardedRoute
from broker.serve.call import Call, Route
from broker.wire import apis, codes, wire
from broker.wire.codec import Message
from shards.config.image import ClusterImage
from shards.settings.features import FEATURES, level_of

if TYPE_CHECKING:
    from broker.wire.requests import ApiVersionsRequest
    from broker.wire.responses import ApiVersionsTypes

PRODUCE = 0
ANY_LEAST_SINCE = 4
TELEMETRY = (71, 72)
"""GetTelemetrySubscriptions, PushTelemetry: served always, listed while there is a subscription."""
_MOST_OF_A_NAME = 256
_SOFTWARE = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9\-.]*[a-zA-Z0-9])?")


class SupportedVersions:
    """The versions of each API. `routes` need not contain ApiVersions itself."""

    def __init__(self, routes: Iterable[Route]) -> None:
        ranges = {route.api_key: (route.min_version, route.max_version) for route in routes}
        own = apis.APIS[apis.API_VERSIONS]
        ranges[apis.API_VERSIONS] = (own.min_version, own.max_version)
        if PRODUCE in ranges:
            ranges[PRODUCE] = (0, ranges[PRODUCE][1])
        self.ranges = dict(sorted(ranges.items()))
        self._without_telemetry = {key: each for key, each in self.ranges.items() if key not in TELEMETRY}

    def listed(self, image: ClusterImage) -> dict[int, tuple[int, int]]:
        """The versions of the APIs that are offered under this configuration."""
        return self.ranges if image.client_metrics else self._without_telemetry

    def unsupported(self, correlation_id: int) -> bytes:
        """The whole response to a version that is not known: in version 0, with error 35 and the range (KIP-511)."""
        call: Call[ApiVersionsTypes] = Call(apis.API_VERSIONS, 0, correlation_id)
        own = {apis.API_VERSIONS: self.ranges[apis.API_VERSIONS]}
        return wire.encode_response(call, _response(call, codes.UNSUPPORTED_VERSION, own))


def routes(supported: SupportedVersions, image: ClusterImage) -> list[GuardedRoute]:
    def api_versions(request: ApiVersionsRequest, call: Call[ApiVersionsTypes]) -> Message:
        """INVALID_REQUEST for software names that KIP-511 forbids."""
        named = (request.client_software_name, request.client_software_version)
        if call.api_version >= 3 and not all(_SOFTWARE.fullmatch(name) for name in named):
            return _response(call, codes.INVALID_REQUEST, {})
        if call.channel is not None and call.api_version >= 3:
            name, version = named
            call.channel.software = name[:_MOST_OF_A_NAME], version[:_MOST_OF_A_NAME]
        return _response(call, codes.NONE, supported.listed(image), image)

    return [GuardedRoute(apis.API_VERSIONS, api_versions, OPEN, prepared=True)]


def _response(
    call: Call[ApiVersionsTypes], error: int, ranges: dict[int, tuple[int, int]], image: ClusterImage | None = None
) -> ApiVersionsTypes.ApiVersionsResponse:
    types = call.types
    levels = {} if image is None else {name: level_of(image.features, name) for name in FEATURES}
    return types.ApiVersionsResponse(
        error_code=error,
        api_keys=tuple(
            types.ApiVersion(api_key=key, min_version=low, max_version=high) for key, (low, high) in ranges.items()
        ),
        supported_features=tuple(
            types.SupportedFeatureKey(name=name, min_version=FEATURES[name].least, max_version=FEATURES[name].most)
            for name in levels
            if FEATURES[name].least or call.api_version >= ANY_LEAST_SINCE
        ),
        finalized_features_epoch=-1 if image is None else image.version,
        finalized_features=tuple(
            types.FinalizedFeatureKey(name=name, max_version_level=level, min_version_level=level)
            for name, level in levels.items()
            if level
        ),
    )
