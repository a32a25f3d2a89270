"""ApiVersions (18), versions 0-4: KIP-35, KIP-511 (client software, answered in version 0 when too new), KIP-584.

The versions are those of the routes. Produce is listed from version 0, as Kafka 4.1 does for librdkafka's sake, though
it is served from 3. Features are not emulated: none are listed. Every client sends this first, often on a connection it
then closes, so answers are kept encoded.
"""

import re
import struct
from collections.abc import Iterable

from broker.protocol import codes, wire
from broker.protocol.codec import Message
from broker.protocol.primitives import uvarint
from broker.protocol.requests import ApiVersionsRequest
from broker.serve.call import Call, Route

PRODUCE = 0
_SOFTWARE = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9\-.]*[a-zA-Z0-9])?")
_PREFIX = struct.Struct(">ii")


class ApiVersionsCache:
    """Encoded responses by version. `routes` need not contain ApiVersions itself."""

    def __init__(self, routes: Iterable[Route]) -> None:
        ranges = {route.api_key: (route.min_version, route.max_version) for route in routes}
        own = wire.APIS[wire.API_VERSIONS]
        ranges[wire.API_VERSIONS] = (own.min_version, own.max_version)
        if PRODUCE in ranges:
            ranges[PRODUCE] = (0, ranges[PRODUCE][1])
        self.ranges = dict(sorted(ranges.items()))
        self._bodies = {
            version: _encode(version, codes.NONE, self.ranges)
            for version in range(own.min_version, own.max_version + 1)
        }
        self._too_new = _encode(0, codes.UNSUPPORTED_VERSION, {wire.API_VERSIONS: ranges[wire.API_VERSIONS]})

    def respond(self, version: int, correlation_id: int) -> bytes:
        """The whole response. A version that isn't known is answered in version 0, with error 35 and the range."""
        body = self._bodies.get(version, self._too_new)
        return _PREFIX.pack(len(body) + 4, correlation_id) + body


def _encode(version: int, error: int, ranges: dict[int, tuple[int, int]]) -> bytes:
    """By hand, so that a shard's first connections need not wait for the codec to be imported."""
    flexible = version >= wire.APIS[wire.API_VERSIONS].flexible_from
    tail = b"\0" if flexible else b""
    items = b"".join(struct.pack(">hhh", key, low, high) + tail for key, (low, high) in ranges.items())
    count = uvarint(len(ranges) + 1) if flexible else struct.pack(">i", len(ranges))
    throttle_ms = struct.pack(">i", 0) if version >= 1 else b""
    return struct.pack(">h", error) + count + items + throttle_ms + tail


def routes(cache: ApiVersionsCache) -> list[Route]:
    def api_versions(request: ApiVersionsRequest, call: Call) -> Message:
        """What `cache.respond` answers, as a message; INVALID_REQUEST for software names that KIP-511 forbids."""
        named = (request.client_software_name, request.client_software_version)
        valid = call.api_version < 3 or all(_SOFTWARE.fullmatch(name) for name in named)
        listed = cache.ranges.items() if valid else ()
        return call.types.ApiVersionsResponse(
            error_code=codes.NONE if valid else codes.INVALID_REQUEST,
            api_keys=tuple(
                call.types.ApiVersion(api_key=key, min_version=low, max_version=high) for key, (low, high) in listed
            ),
        )

    return [Route.of(wire.API_VERSIONS, api_versions)]
