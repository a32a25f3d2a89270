"""What the rows with TLS and SASL count, on a cluster of Turnstile: each connection has its handshake or login, and is answered."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2]))

from scripts.bench import frames, machine, security
from scripts.bench.machine import CannotMeasure, Server
from scripts.bench.security import Security

SECONDS = 2.0
AT_ONCE = ("--set", "connection.failed.authentication.delay.ms=0")


@pytest.fixture(scope="module", params=list(security.PROTOCOLS))
def secured(request: pytest.FixtureRequest) -> Iterator[tuple[Security, Server]]:
    try:
        machine.binary("client")
        with (
            security.PROTOCOLS[request.param]() as wanted,
            security.turnstile(wanted, *AT_ONCE) as server,
            machine.admin_of(server),
        ):
            yield wanted, server
    except CannotMeasure as reason:
        pytest.skip(str(reason))


def test_each_connection_is_answered(secured: tuple[Security, Server]) -> None:
    wanted, server = secured
    load = machine.drive(server, "connect", seconds=SECONDS, concurrency=4, **wanted.client)
    assert load.answered > 0
    assert load.refused == load.failed == 0


def test_a_client_without_the_protocol_is_not_answered(secured: tuple[Security, Server]) -> None:
    _, server = secured
    with frames.file_of(frames.METADATA) as path:
        load = machine.drive(server, "connect", seconds=SECONDS, concurrency=4, pause_us=100_000, frames=path)
    assert load.refused > 0
    assert load.answered == 0


def test_a_login_that_fails_counts_as_failed(secured: tuple[Security, Server]) -> None:
    wanted, server = secured
    if not wanted.user:
        pytest.skip("has no login")
    admin = machine.admin_of(server)
    admin.put("/v1/users", {"name": wanted.user, "password": "another"})
    try:
        with pytest.raises(CannotMeasure, match=r"'failed': [1-9]"):
            machine.drive(server, "connect", seconds=SECONDS, concurrency=4, **wanted.client)
    finally:
        admin.put("/v1/users", {"name": wanted.user, "password": security.PASSWORD})


def test_the_floor_makes_the_same_handshakes() -> None:
    try:
        machine.binary("client")
        with (
            security.tls() as wanted,
            machine.accept_loop(answer_bytes=100, processes=1, certificate=wanted.floor) as server,
        ):
            load = machine.drive(server, "connect", seconds=SECONDS, concurrency=4, **wanted.client)
    except CannotMeasure as reason:
        pytest.skip(str(reason))
    assert load.answered > 0
    assert load.refused == load.failed == 0
