"""ApiVersions (18), versions 0-4: KIP-35, KIP-511 (client software, answered in version 0 when too new), KIP-584.

The versions are those of the routes. Produce is listed from version 0, as Kafka 4.1 does for librdkafka's sake, though
it is served from 3. Client telemetry is listed while there is a client metrics resource, and in Kafka while a plugin takes
what is pushed: clients that see it listed ask for subscriptions, and say so in their logs.

In the place of another release (`turnstile.as.version`) both lists are that release's, as far as they are known here.

Of the features that are listed, clients that know level 2 of `transaction.version` use KIP-890's second version of the protocol,
level 1 of `group.version` is the consumer group protocol (KIP-848), and level 1 of `share.version` are share groups (KIP-932).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from broker.kafka.security.guarded_route import OPEN, GuardedRoute
from broker.serve.call import Call, Route
from broker.wire import apis, codes, wire
from broker.wire.codec import Message
from broker.wire.releases import VersionRange, ranges_of
from shards.config.image import ClusterImage
from shards.settings.features import features_as
from shards.settings.releases import AS_VERSION, OWN_VERSION

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
        ranges = {route.api_key: VersionRange(route.min_version, route.max_version) for route in routes}
        own = apis.APIS[apis.API_VERSIONS]
        ranges[apis.API_VERSIONS] = VersionRange(own.min_version, own.max_version)
        if PRODUCE in ranges:
            ranges[PRODUCE] = VersionRange(0, ranges[PRODUCE].most)
        self._releases = {OWN_VERSION: self}
        self._take(ranges)

    def _take(self, ranges: Mapping[int, VersionRange]) -> None:
        self.ranges = dict(sorted(ranges.items()))
        self._without_telemetry = {key: each for key, each in self.ranges.items() if key not in TELEMETRY}

    def as_release(self, release: str) -> SupportedVersions:
        """The APIs that are served in the place of a release."""
        if release not in self._releases:
            theirs = ranges_of(release)
            both = {key: ours.within(theirs[key]) for key, ours in self.ranges.items() if key in theirs}
            found = self._releases[release] = SupportedVersions([])
            found._take({key: each for key, each in both.items() if each is not None})
        return self._releases[release]

    def narrowed(self, route: Route) -> Route | None:
        """A route for the versions that are served; None where none is."""
        ours = self.ranges.get(route.api_key)
        both = None if ours is None else ours.within(VersionRange(route.min_version, route.max_version))
        return None if both is None else route._replace(min_version=both.least, max_version=both.most)

    def listed(self, image: ClusterImage) -> dict[int, VersionRange]:
        """The versions of the APIs that are offered under this configuration."""
        found = self.as_release(image.get(AS_VERSION))
        return found.ranges if image.client_metrics else found._without_telemetry

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
    call: Call[ApiVersionsTypes], error: int, ranges: Mapping[int, VersionRange], image: ClusterImage | None = None
) -> ApiVersionsTypes.ApiVersionsResponse:
    types = call.types
    features = {} if image is None else features_as(image.get(AS_VERSION))
    levels = {} if image is None else {name: image.feature_level(name) for name in features}
    return types.ApiVersionsResponse(
        error_code=error,
        api_keys=tuple(
            types.ApiVersion(api_key=key, min_version=low, max_version=high) for key, (low, high) in ranges.items()
        ),
        supported_features=tuple(
            types.SupportedFeatureKey(name=name, min_version=features[name].least, max_version=features[name].most)
            for name in levels
            if features[name].least or call.api_version >= ANY_LEAST_SINCE
        ),
        finalized_features_epoch=-1 if image is None else image.version,
        finalized_features=tuple(
            types.FinalizedFeatureKey(name=name, max_version_level=level, min_version_level=level)
            for name, level in levels.items()
            if level
        ),
    )
