"""The audit of the cap of connections over TLS: an honest journal holds, and one beyond it, or refused without cause, is found."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from one_shard import OneShard

NAME = "turnstile.max.ssl.connections"
PROTOCOLS = "EDGE:SASL_SSL,TLS:SSL,PLAIN:SASL_PLAINTEXT"


class Clients(OneShard):
    """Of a shard with two listeners with TLS, which may have 2 connections, and one without; `kind`: enforced, or observed."""

    def __init__(self, kind: str = "setting") -> None:
        super().__init__(("static", "0/listener.security.protocol.map", PROTOCOLS), (kind, f"/{NAME}", "2"))

    def open(self, conn: int, listener: str) -> dict[str, Any]:
        return self.add("admitted", version=1, held_ms=0.1, **_client(conn, listener))

    def refused(self, conn: int, kind: str = "refused", value: float = 2.0) -> None:
        why = {"reason": "ssl_cap", "limit": NAME, "limit_value": value}
        self.add(kind, version=1, held_ms=0.1, **_client(conn, "TLS"), **why)


def _client(conn: int, listener: str) -> dict[str, Any]:
    return {"conn": conn, "ip": f"10.0.0.{conn}", "port": 1000, "listener": listener}


def test_connections_over_tls_up_to_their_cap_and_refusals_at_it_hold(tmp_path: Path) -> None:
    clients = Clients()
    opened = [clients.open(1, "EDGE"), clients.open(2, "TLS"), *(clients.open(conn, "PLAIN") for conn in (3, 4, 5))]
    clients.refused(6)
    for each in opened:
        clients.close(each)
    checks = clients.judged(tmp_path)
    assert {check.verdict for check in checks.values()} == {"held"}, checks
    assert checks["ssl_cap"].detail == "5 connections, never more open than allowed"


def test_a_connection_beyond_the_cap_is_found_over_all_listeners_with_tls(tmp_path: Path) -> None:
    clients = Clients()
    opened = [clients.open(1, "EDGE"), clients.open(2, "TLS"), clients.open(4, "PLAIN"), clients.open(3, "EDGE")]
    for each in opened:
        clients.close(each)
    check = clients.judged(tmp_path)["ssl_cap"]
    assert check.verdict == "exceeded"
    assert "1 admissions beyond the cap; first TLS of broker 0: 3 open, 2 allowed" in check.detail
    assert check.evidence[0]["connections"] == ["0/0/1/3", "0/0/1/2", "0/0/1/1"]


def test_a_refusal_with_room_is_found_however_many_are_open_without_tls(tmp_path: Path) -> None:
    clients = Clients()
    opened = [clients.open(1, "EDGE"), *(clients.open(conn, "PLAIN") for conn in (2, 3, 4))]
    clients.pause()
    clients.refused(5)
    clients.pause()
    for each in opened:
        clients.close(each)
    check = clients.judged(tmp_path)["refused_with_cause"]
    assert check.verdict == "not justified" and "at most 1 could be in use" in check.detail


@pytest.mark.parametrize("value", [2.0, 1.0])
def test_an_observed_cap_is_judged_alike(tmp_path: Path, value: float) -> None:
    clients = Clients("observed")
    opened = [clients.open(1, "EDGE"), clients.open(2, "TLS"), clients.open(3, "TLS")]
    clients.refused(3, "observed", value)
    for each in opened:
        clients.close(each)
    checks = clients.judged(tmp_path)
    assert "ssl_cap" not in checks and checks["observed_caps"].verdict == "held"
    check = checks["observed_with_cause"]
    assert check.verdict == ("held" if value == 2 else "not justified"), check
