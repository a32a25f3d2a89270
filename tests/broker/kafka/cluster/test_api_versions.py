"""ApiVersions: every version, the fall-back for those not known, and what Kafka lists."""

from typing import Any

import pytest

from broker.kafka.cluster import api_versions
from broker.kafka.cluster.api_versions import SupportedVersions
from broker.serve.call import Call, Route
from broker.wire import codes, wire
from shards.config.image import ClusterImage


def nothing(request: Any, call: Call) -> None: ...


ROUTES = [Route.of(3, nothing), Route.of(0, nothing), Route(1, 4, 12, nothing)]
SUPPORTED = SupportedVersions(ROUTES)
LISTED = [(0, 0, 13), (1, 4, 12), (3, 0, 13), (18, 0, 4)]


def listed(response: Any) -> list[tuple[int, int, int]]:
    return [(each.api_key, each.min_version, each.max_version) for each in response.api_keys]


def test_a_version_not_known_is_answered_in_version_0() -> None:
    correlation_id, response = wire.parse_response(SUPPORTED.unsupported(99)[4:], 18, 0)
    assert (correlation_id, response.error_code) == (99, codes.UNSUPPORTED_VERSION)
    assert listed(response) == [(18, 0, 4)]


@pytest.mark.parametrize("version", range(5))
def test_every_version_lists_what_the_routes_have(version: int) -> None:
    (route,) = api_versions.routes(SUPPORTED, ClusterImage())
    call = Call(18, version, 99)
    request = wire.request_types(18, version).ApiVersionsRequest(
        client_software_name="apache-kafka-java", client_software_version="4.1.0"
    )
    response = route.function(request, call)
    assert (response.error_code, listed(response)) == (codes.NONE, LISTED)


@pytest.mark.parametrize("name", ["", "-a", "a_b", "a b", "a."])
def test_odd_software_names_are_an_invalid_request(name: str) -> None:
    (route,) = api_versions.routes(SUPPORTED, ClusterImage())
    call = Call(18, 3, 99)
    request = wire.request_types(18, 3).ApiVersionsRequest(client_software_name=name, client_software_version="1")
    response = route.function(request, call)
    assert (response.error_code, listed(response)) == (codes.INVALID_REQUEST, [])


def test_telemetry_is_listed_while_a_client_metrics_resource_is_there() -> None:
    supported = SupportedVersions([*ROUTES, Route.of(71, nothing), Route.of(72, nothing)])
    image = ClusterImage()
    assert [key for key in supported.listed(image) if key in (71, 72)] == []
    image.client_metrics["all"] = {"metrics": "*"}
    assert [key for key in supported.listed(image) if key in (71, 72)] == [71, 72]
