"""The audit, and the report, of limits of users' connections: honest journals hold; a login beyond a limit, or refused without
cause, is found."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from one_shard import OneShard

from turnstile.pipeline.report.report import build
from turnstile.pipeline.report.report_page import page

RATE = "turnstile.max.connection.creation.rate.per.user"
CAP = "turnstile.max.connections.per.user"


class Logins(OneShard):
    """The journal of a shard whose clients log in, with a cap of 2 for each user."""

    def __init__(self) -> None:
        super().__init__(("setting", f"/{CAP}", "2"))

    def login(self, conn: int, user: str, **refusal: Any) -> dict[str, Any]:
        """A connection from an address of its own that logs in; it is closed if it is refused."""
        same = {"conn": conn, "ip": f"10.0.0.{conn}", "port": 1000, "listener": "SASL"}
        self.add("admitted", version=1, held_ms=0.1, **same)
        event = self.add("authenticated", version=1, held_ms=0.1, user=user, **same, **refusal)
        if refusal:
            self.add("closed", reason="user_cap", user=user, held_ms=1.0, bytes=9, **same)
        return event

    def refused(self, conn: int, user: str, limit_value: float = 2.0, limit: str = CAP) -> None:
        self.login(conn, user, reason="user_cap", limit=limit, limit_value=limit_value)


def test_logins_up_to_the_cap_and_refusals_at_it_hold(tmp_path: Path) -> None:
    logins = Logins()
    first, second = logins.login(1, "alice"), logins.login(2, "alice")
    logins.refused(3, "alice")
    other = logins.login(4, "bob")
    logins.close(first)
    third = logins.login(5, "alice")
    for each in (second, third, other):
        logins.close(each)
    checks = logins.judged(tmp_path)
    assert {check.verdict for check in checks.values()} == {"held"}, checks
    assert (
        "4 logins" not in checks["user_cap"].detail and "never more connections of a user" in checks["user_cap"].detail
    )


def test_a_login_beyond_the_cap_of_its_user_is_found(tmp_path: Path) -> None:
    logins = Logins()
    for each in [logins.login(conn, "alice") for conn in (1, 2, 3)]:
        logins.close(each)
    check = logins.judged(tmp_path)["user_cap"]
    assert check.verdict == "exceeded"
    assert "1 logins beyond the cap; first user alice of broker 0: 3 open, 2 allowed" in check.detail


def test_a_login_refused_with_room_is_found(tmp_path: Path) -> None:
    logins = Logins()
    first = logins.login(1, "alice")
    logins.pause()
    logins.refused(2, "alice")
    logins.pause()
    logins.close(first)
    check = logins.judged(tmp_path)["user_refused_with_cause"]
    assert check.verdict == "not justified"
    assert "first user alice" in check.detail and "at most 1 could be in use" in check.detail


def test_a_login_refused_by_a_number_that_was_not_set_is_found(tmp_path: Path) -> None:
    logins = Logins()
    opened = [logins.login(conn, "alice") for conn in (1, 2)]
    logins.refused(3, "alice", limit_value=1.0)
    for each in opened:
        logins.close(each)
    check = logins.judged(tmp_path)["user_refused_with_cause"]
    assert check.verdict == "not justified" and f"that version says {CAP}=2" in check.detail


def test_a_client_that_left_while_its_login_was_decided_may_have_held_a_token(tmp_path: Path) -> None:
    logins = Logins()
    first = logins.login(1, "alice")
    logins.login(2, "alice", reason="closed")
    logins.refused(3, "alice")
    logins.close(first)
    checks = logins.judged(tmp_path)
    assert {check.verdict for check in checks.values()} == {"held"}, checks


class RatedLogins(Logins):
    """The same with a rate of 1 login a second for each user instead: 10 logins pass at once."""

    def __init__(self) -> None:
        OneShard.__init__(self, ("setting", f"/{RATE}", "1"))

    def unit(self, *, units: int = 1, **more: Any) -> None:
        detail = {"pool": "rate:user:alice", "to": 0, "tokens": units, "at_ms": self.now_ms, **more}
        self.add("grant", version=1, detail=json.dumps(detail))

    def beyond(self, conn: int) -> None:
        self.login(conn, "alice", reason="user_rate", limit=RATE, limit_value=1.0)


def test_logins_within_the_rate_and_refusals_of_violations_hold(tmp_path: Path) -> None:
    logins = RatedLogins()
    logins.unit(units=10)
    opened = [logins.login(conn, "alice") for conn in range(1, 4)]
    logins.unit(units=0, violated=True)
    logins.beyond(4)
    for each in opened:
        logins.close(each)
    checks = logins.judged(tmp_path)
    assert checks["user_rate_units"].verdict == checks["user_rate"].verdict == "held", checks
    assert checks["user_refused_with_cause"].verdict == "held", checks["user_refused_with_cause"]


def test_a_unit_beyond_the_rate_of_a_user_is_found(tmp_path: Path) -> None:
    logins = RatedLogins()
    logins.unit(units=11)
    logins.close(logins.login(1, "alice"))
    check = logins.judged(tmp_path)["user_rate_units"]
    assert check.verdict == "exceeded" and "first user:alice of broker 0: 1 of 11" in check.detail


def test_more_logins_than_any_window_of_the_rate_allows_are_found(tmp_path: Path) -> None:
    logins = RatedLogins()
    with logins.at_once():
        opened = [logins.login(conn, "alice") for conn in range(1, 40)]
    for each in opened:
        logins.close(each)
    assert logins.judged(tmp_path)["user_rate"].verdict == "exceeded"


def test_a_login_refused_for_its_rate_without_a_violation_is_found(tmp_path: Path) -> None:
    logins = RatedLogins()
    logins.unit()
    first = logins.login(1, "alice")
    logins.beyond(2)
    logins.pause()
    logins.close(first)
    check = logins.judged(tmp_path)["user_refused_with_cause"]
    assert check.verdict == "not justified" and "found no violation" in check.detail


def test_a_journal_without_logins_has_no_check_of_users(tmp_path: Path) -> None:
    assert not {"user_cap", "user_refused_with_cause"} & Logins().judged(tmp_path).keys()


def test_the_report_counts_refused_logins_apart_from_refused_connections(tmp_path: Path) -> None:
    logins = Logins()
    opened = [logins.login(conn, "alice") for conn in (1, 2)]
    for conn in (3, 4):
        logins.refused(conn, "alice")
    logins.login(5, "bob", reason="closed")
    logins.login(6, "bob", reason="user_rate", limit=RATE, limit_value=1.0)
    for each in opened:
        logins.close(each)
    built = build(logins.written(tmp_path))
    assert (built.summary["admitted"], built.summary["refused"], built.summary["refused_logins"]) == (6, 0, 3)
    users = [tuple(row.values()) for row in built.rows["refused_users"]]
    assert users == [("alice", "user_cap 2", 2, 2, 0.5), ("bob", "user_rate 1", 1, 0, 1.0)]
    assert built.rows["refused_ips"] == []
    shown = page(built, name="a")
    assert "3 of 5 logins were refused for their user" in shown and "Users refused most" in shown


def test_a_report_without_refused_logins_has_no_section_of_them(tmp_path: Path) -> None:
    logins = Logins()
    logins.close(logins.login(1, "alice"))
    assert "Refused logins" not in page(build(logins.written(tmp_path)), name="a")
