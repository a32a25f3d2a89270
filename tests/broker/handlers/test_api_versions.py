"""ApiVersions: every version, the fall-back for those not known, and what Kafka lists."""

from typing import Any

import pytest

from broker.handlers import api_versions
from broker.handlers.api_versions import ApiVersionsCache
from broker.protocol import codes, wire
from broker.serve.call import Call, Route


def nothing(request: Any, call: Call) -> None: ...


ROUTES = [Route.of(3, nothing), Route.of(0, nothing), Route(1, 4, 12, nothing)]
CACHE = ApiVersionsCache(ROUTES)
LISTED = [(0, 0, 13), (1, 4, 12), (3, 0, 13), (18, 0, 4)]


def listed(response: Any) -> list[tuple[int, int, int]]:
    return [(each.api_key, each.min_version, each.max_version) for each in response.api_keys]


@pytest.mark.parametrize("version", range(5))
def test_the_encoded_response_is_what_the_codec_reads(version: int) -> None:
    frame = CACHE.respond(version, 99)
    assert int.from_bytes(frame[:4], "big") == len(frame) - 4
    correlation_id, response = wire.parse_response(frame[4:], 18, version)
    assert (correlation_id, response.error_code) == (99, codes.NONE)
    assert listed(response) == LISTED


@pytest.mark.parametrize("version", [5, 99, -1])
def test_a_version_not_known_is_answered_in_version_0(version: int) -> None:
    _, response = wire.parse_response(CACHE.respond(version, 99)[4:], 18, 0)
    assert response.error_code == codes.UNSUPPORTED_VERSION
    assert listed(response) == [(18, 0, 4)]


@pytest.mark.parametrize("version", range(5))
def test_the_handler_answers_the_same(version: int) -> None:
    (route,) = api_versions.routes(CACHE)
    call = Call(18, version, 99)
    request = wire.request_types(18, version).ApiVersionsRequest(
        client_software_name="apache-kafka-java", client_software_version="4.1.0"
    )
    assert wire.encode_response(call, route.function(request, call)) == CACHE.respond(version, 99)


@pytest.mark.parametrize("name", ["", "-a", "a_b", "a b", "a."])
def test_odd_software_names_are_an_invalid_request(name: str) -> None:
    (route,) = api_versions.routes(CACHE)
    call = Call(18, 3, 99)
    request = wire.request_types(18, 3).ApiVersionsRequest(client_software_name=name, client_software_version="1")
    response = route.function(request, call)
    assert (response.error_code, listed(response)) == (codes.INVALID_REQUEST, [])
