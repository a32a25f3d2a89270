"""Client quotas over the wire: filters, entries one by one, Kafka 4.1's own messages."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from desk import Desk

from broker.wire import codes
from shards.mesh.mesh import COORDINATOR

EXACT, DEFAULT, ANY = range(3)
Entity = dict[str, str | None]


async def alter(desk: Desk, *entries: tuple[Entity, dict[str, float | None]], validate_only: bool = False) -> list[Any]:
    """(code, message) of each; a value of None removes."""
    types = desk.types("alter_client_quotas", 1)
    asked = tuple(
        types.EntryData(
            entity=tuple(types.EntityData(entity_type=kind, entity_name=name) for kind, name in entity.items()),
            ops=tuple(types.OpData(key=k, value=v or 0.0, remove=v is None) for k, v in ops.items()),
        )
        for entity, ops in entries
    )
    found = await desk.ask("alter_client_quotas", 1, entries=asked, validate_only=validate_only)
    assert [{e.entity_type: e.entity_name for e in entry.entity} for entry in found.entries] == [e for e, _ in entries]
    return [(entry.error_code, entry.error_message) for entry in found.entries]


async def describe(desk: Desk, *filters: tuple[str, int, str | None], strict: bool = False, version: int = 1) -> Any:
    """[(entity, quotas)], or the (code, message) of the refusal."""
    component = desk.types("describe_client_quotas", version).ComponentData
    asked = tuple(component(entity_type=kind, match_type=how, match=name) for kind, how, name in filters)
    found = await desk.ask("describe_client_quotas", version, components=asked, strict=strict)
    if found.error_code:
        return found.error_code, found.error_message
    return [
        ({e.entity_type: e.entity_name for e in entry.entity}, {v.key: v.value for v in entry.values})
        for entry in found.entries
    ]


@pytest.fixture
async def desk(tmp_path: Path) -> Desk:
    desk = Desk(tmp_path, brokers=2)
    await desk.start()
    return desk


async def test_prefixes_are_of_redpandas_semantics_alone(tmp_path: Path) -> None:
    prefix = ({"client-id-prefix": "app-"}, {"producer_byte_rate": 5.0})
    for each in ("redpanda", "kafka"):
        (tmp_path / each).mkdir()
    desk = Desk(tmp_path / "redpanda", turnstile_quota_semantics="redpanda")
    await desk.start()
    assert await alter(desk, prefix) == [(codes.NONE, None)]
    assert await describe(desk) == [prefix]
    assert await describe(desk, ("client-id-prefix", EXACT, "app-")) == [prefix]
    refused = [({"client-id-prefix": None}, {"producer_byte_rate": 5.0}), ({"client-id": "a"}, {"request_percentage": 5.0}),
               ({"client-id": "a", "client-id-prefix": "a"}, {"producer_byte_rate": 5.0})]  # fmt: skip
    assert [code for code, _ in await alter(desk, *refused)] == [codes.INVALID_REQUEST] * 3
    desk = Desk(tmp_path / "kafka")
    await desk.start()
    told = "Unhandled client quota entity type: client-id-prefix"
    assert await alter(desk, prefix) == [(codes.INVALID_REQUEST, told)]
    unknown = (codes.UNSUPPORTED_VERSION, "Unsupported entity type client-id-prefix")
    assert await describe(desk, ("client-id-prefix", EXACT, "app-")) == unknown


ALICE = ({"user": "alice"}, {"producer_byte_rate": 100.0, "consumer_byte_rate": 200.0})
ALICES_APP = ({"client-id": "app", "user": "alice"}, {"request_percentage": 12.5})
ANYONES_Z = ({"client-id": "z", "user": None}, {"producer_byte_rate": 1.0})
APP = ({"client-id": "app"}, {"producer_byte_rate": 9.0})
ANY_CLIENT = ({"client-id": None}, {"controller_mutation_rate": 3.5})
IP = ({"ip": "10.0.0.1"}, {"connection_creation_rate": 5.0})
ANY_IP = ({"ip": None}, {"connection_creation_rate": 6.0})
ALL = [ALICE, ALICES_APP, ANYONES_Z, APP, ANY_CLIENT, IP, ANY_IP]

FILTERS: list[tuple[list[tuple[str, int, str | None]], bool, list[Any]]] = [
    ([], False, ALL),
    ([], True, []),
    ([("ip", EXACT, "10.0.0.1")], False, [IP]),
    ([("ip", EXACT, "9.9.9.9")], False, []),
    ([("ip", DEFAULT, None)], False, [ANY_IP]),
    ([("ip", ANY, None)], False, [IP, ANY_IP]),
    ([("user", ANY, None)], False, [ALICE, ALICES_APP, ANYONES_Z]),
    ([("user", ANY, None)], True, [ALICE]),
    ([("user", EXACT, "alice")], False, [ALICE, ALICES_APP]),
    ([("user", EXACT, "alice"), ("client-id", ANY, None)], False, [ALICES_APP]),
    ([("user", ANY, None), ("client-id", ANY, None)], True, [ALICES_APP, ANYONES_Z]),
    ([("client-id", EXACT, "app")], False, [ALICES_APP, APP]),
    ([("client-id", DEFAULT, None)], True, [ANY_CLIENT]),
]


@pytest.mark.parametrize(("filters", "strict", "expected"), FILTERS)
async def test_quotas_are_described_by_filters(
    desk: Desk, filters: list[Any], strict: bool, expected: list[Any]
) -> None:
    assert await describe(desk) == [], "an empty list, never null"
    version = desk.images[0, 0].version
    assert await alter(desk, *ALL) == [(0, None)] * len(ALL)
    assert desk.images[1, 0].version == version + 1, "one request, one version"
    found = await describe(desk, *filters, strict=strict)
    assert sorted(map(repr, found)) == sorted(repr((dict(sorted(e.items())), q)) for e, q in expected)


async def test_a_quota_is_in_force_when_the_answer_is_there_and_gone_when_removed(desk: Desk) -> None:
    await alter(desk, IP)
    assert desk.images[1, 0].quota_for_ip("10.0.0.1") == 5.0
    assert await alter(desk, ({"ip": "10.0.0.1"}, {"connection_creation_rate": None})) == [(0, None)]
    assert await alter(desk, ({"ip": "10.0.0.1"}, {"no_such_quota": None})) == [(0, None)]
    assert await describe(desk, version=0) == []
    assert desk.images[0, 0].quota_for_ip("10.0.0.1") is None


REFUSED: list[tuple[Entity, dict[str, float | None], str]] = [
    ({"ip": "10.0.0.1", "user": "u"}, {"connection_creation_rate": 5.0}, "Invalid quota entity combination, IP entity"),
    ({"ip": "300.1.1.1"}, {"connection_creation_rate": 5.0}, "300.1.1.1 is not a valid IP or resolvable host."),
    ({"ip": ""}, {"connection_creation_rate": 5.0}, "Empty ip not supported"),
    ({"ip": "1.1.1.1"}, {"producer_byte_rate": 5.0}, "Invalid configuration key producer_byte_rate"),
    ({"user": "a"}, {"connection_creation_rate": 5.0}, "Invalid configuration key connection_creation_rate"),
    ({"user": "a"}, {"nope": 5.0}, "Invalid configuration key nope"),
    ({"user": "a"}, {"producer_byte_rate": -5.0}, "Quota producer_byte_rate must be greater than 0"),
    ({"user": "a"}, {"producer_byte_rate": 0.0}, "Quota producer_byte_rate must be greater than 0"),
    ({"user": "a"}, {"producer_byte_rate": 1.5}, "producer_byte_rate cannot be a fractional value."),
    ({"user": "a"}, {"producer_byte_rate": 1e30}, "Proposed value for producer_byte_rate is too large for a LONG."),
    ({"ip": "1.1.1.1"}, {"connection_creation_rate": 1e10}, "connection_creation_rate is too large for an INT."),
    ({"user": "a"}, {"request_percentage": -1.0}, "Quota request_percentage must be greater than 0"),
    ({"user": "a"}, {"request_percentage": float("inf")}, "Quota request_percentage must be finite"),
    ({"user": "a"}, {"request_percentage": float("nan")}, "Quota request_percentage must be greater than 0"),
    ({}, {"producer_byte_rate": 5.0}, "Invalid empty client quota entity"),
    ({"foo": "a"}, {"producer_byte_rate": 5.0}, "Unhandled client quota entity type: foo"),
    ({"user": ""}, {"producer_byte_rate": 5.0}, "Empty user not supported"),
]


@pytest.mark.parametrize(("entity", "quotas", "message"), REFUSED)
async def test_what_kafka_refuses_is_refused_and_the_rest_is_done(
    desk: Desk, entity: Entity, quotas: dict[str, float | None], message: str
) -> None:
    (code, text), good = await alter(desk, (entity, quotas), ({"user": "good"}, {"producer_byte_rate": 1.0}))
    assert (code, good) == (codes.INVALID_REQUEST, (0, None))
    assert message in text
    assert await describe(desk) == [({"user": "good"}, {"producer_byte_rate": 1.0})]


async def test_an_entity_given_twice_is_refused(desk: Desk) -> None:
    quota: dict[str, float | None] = {"producer_byte_rate": 1.0}
    results = await alter(desk, ({"user": "q"}, quota), ({"user": "q"}, quota))
    assert results == [(codes.INVALID_REQUEST, "Ignoring duplicate entity ClientQuotaEntity(entries={user=q})")] * 2


async def test_validating_changes_nothing(desk: Desk) -> None:
    assert await alter(desk, ALICE, validate_only=True) == [(0, None)]
    assert await describe(desk) == []
    bad: dict[str, float | None] = {"producer_byte_rate": -1.0}
    assert (await alter(desk, ({"user": "a"}, bad), validate_only=True))[0][0] == codes.INVALID_REQUEST


BAD_FILTERS = [
    ([("ip", ANY, None), ("user", ANY, None)], "INVALID_REQUEST", "IP filter component should not be used"),
    ([("foo", ANY, None)], "UNSUPPORTED_VERSION", "Unsupported entity type foo"),
    ([("", ANY, None)], "INVALID_REQUEST", "Invalid empty entity type."),
    ([("user", 5, None)], "INVALID_REQUEST", "Unknown match type 5"),
    ([("user", EXACT, None)], "INVALID_REQUEST", "MATCH_TYPE_EXACT, but set match string to null."),
    ([("user", DEFAULT, "x")], "INVALID_REQUEST", "MATCH_TYPE_DEFAULT, but also specified a match string."),
    ([("user", ANY, None), ("user", ANY, None)], "INVALID_REQUEST", "user cannot appear more than once"),
]


@pytest.mark.parametrize(("filters", "error", "message"), BAD_FILTERS)
async def test_filters_that_make_no_sense(desk: Desk, filters: list[Any], error: str, message: str) -> None:
    code, text = await describe(desk, *filters)
    assert code == getattr(codes, error)
    assert message in text


async def test_without_the_coordinator_clients_try_again(desk: Desk) -> None:
    desk.down.add(COORDINATOR)
    assert (await alter(desk, ALICE))[0][0] == codes.NOT_CONTROLLER
