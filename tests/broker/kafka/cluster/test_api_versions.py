"""ApiVersions: every version, the fall-back for those not known, and what Kafka lists."""

from typing import Any

import pytest

from broker.kafka.cluster import api_versions
from broker.kafka.cluster.api_versions import SupportedVersions
from broker.serve.call import Call, Route
from broker.wire import codes, wire
from shards.config.image import ClusterImage
from shards.settings.releases import AS_VERSION


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


def image_as(release: str) -> ClusterImage:
    image = ClusterImage()
    image.apply(1, [("static", f"/{AS_VERSION}", release)])
    return image


def test_in_the_place_of_another_release_its_versions_and_features_are_listed() -> None:
    supported = SupportedVersions([*ROUTES, Route.of(68, nothing)])
    assert supported.listed(image_as("2.8")) == {0: (0, 9), 1: (4, 12), 3: (0, 11), 18: (0, 3)}
    assert supported.listed(image_as("redpanda-24.3")) == {0: (0, 7), 1: (4, 11), 3: (0, 8), 18: (0, 3)}
    assert 68 in supported.listed(image_as("4.0"))
    for release, most in (("2.8", {}), ("3.6", {"metadata.version": 14}), ("4.0", {"metadata.version": 25})):
        (route,) = api_versions.routes(supported, image_as(release))
        request = wire.request_types(18, 3).ApiVersionsRequest(
            client_software_name="apache-kafka-java", client_software_version="4.1.0"
        )
        response = route.function(request, Call(18, 3, 99))
        told = {each.name: each.max_version for each in response.supported_features}
        assert told.items() >= most.items() and bool(told) == bool(most)


def test_a_route_is_narrowed_to_what_the_release_has() -> None:
    supported = SupportedVersions([*ROUTES, Route.of(68, nothing)]).as_release("2.8")
    fetch = supported.narrowed(ROUTES[2])
    assert fetch is not None and (fetch.min_version, fetch.max_version) == (4, 12)
    assert supported.narrowed(Route.of(68, nothing)) is None
    response = wire.parse_response(supported.unsupported(99)[4:], 18, 0).body
    assert listed(response) == [(18, 0, 3)]


def test_a_feature_is_at_most_at_the_level_of_the_release() -> None:
    image = image_as("3.6")
    image.features["group.version"] = 1
    assert (image.feature_level("group.version"), image.feature_level("metadata.version")) == (0, 14)
    assert ClusterImage().feature_level("group.version") == 1
