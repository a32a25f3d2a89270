"""The audit of observed limits of users: honest journals hold, and what enforced limits would not have decided is found."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from one_shard import OneShard

CAP = "turnstile.max.connections.per.user"
RATE = "turnstile.max.connection.creation.rate.per.user"
CORE_RATE = "kafka_connection_rate_limit"
PER_IP = "kafka_connections_max_per_ip"


class Logins(OneShard):
    """Of a shard whose clients log in while a cap of 2 of each user is observed, and one of 3 of each address."""

    ip = "10.0.0.1"

    def __init__(self) -> None:
        super().__init__(("observed", f"/{CAP}", "2"), ("observed", f"/{PER_IP}", "3"))

    def login(self, conn: int, user: str = "alice", ip: str = ip) -> dict[str, Any]:
        self.add("admitted", version=1, held_ms=0.1, **self._same(conn, ip))
        return self.add("authenticated", version=1, held_ms=0.1, user=user, **self._same(conn, ip))

    def decided(self, conn: int, user: str | None = "alice", ip: str = ip, **decision: Any) -> None:
        """An `observed` event; without a decision it holds its tokens from here on."""
        self.add("observed", version=1, held_ms=0.1, user=user, **self._same(conn, ip), **decision)

    def refused(self, conn: int, user: str = "alice", value: float = 2.0) -> dict[str, Any]:
        """A connection whose login would have been refused by the cap of its user."""
        event = self.login(conn, user)
        self.decided(conn, user, reason="user_cap", limit=CAP, limit_value=value)
        return event

    def _same(self, conn: int, ip: str) -> dict[str, Any]:
        return {"conn": conn, "ip": ip, "port": 1000 + conn, "listener": "SASL"}

    def verdicts(self, folder: Path, opened: list[dict[str, Any]]) -> dict[str, Any]:
        for each in opened:
            self.close(each)
        return self.judged(folder)


def test_logins_up_to_the_cap_and_refusals_at_it_hold(tmp_path: Path) -> None:
    logins = Logins()
    opened = [logins.login(1), logins.login(2), logins.refused(3), logins.login(4, "bob")]
    logins.close(opened.pop(0))
    opened.append(logins.login(5))
    logins.decided(5)  # it had to be asked for elsewhere
    checks = logins.verdicts(tmp_path, opened)
    assert {check.verdict for check in checks.values()} == {"held"}, checks
    assert {"observed_caps", "observed_with_cause"} <= checks.keys()


def test_a_login_beyond_the_observed_cap_of_its_user_is_found(tmp_path: Path) -> None:
    logins = Logins()
    check = logins.verdicts(tmp_path, [logins.login(conn, ip=f"10.0.0.{conn}") for conn in (1, 2, 3)])["observed_caps"]
    assert check.verdict == "exceeded"
    assert "first user alice of broker 0: 3 in it, 2 allowed" in check.detail


def test_a_connection_whose_login_would_have_been_refused_is_out_from_then_on(tmp_path: Path) -> None:
    """Three of one address are in the observed world at once, though five are open: two of these would have been closed."""
    logins = Logins()
    opened = [logins.login(1), logins.login(2), logins.refused(3), logins.refused(4), logins.login(5, "bob")]
    checks = logins.verdicts(tmp_path, opened)
    assert {check.verdict for check in checks.values()} == {"held"}, checks


def test_a_member_that_stays_though_its_login_would_have_been_refused_is_found(tmp_path: Path) -> None:
    """The third of its address would have been the fourth, had the one before it stayed in the observed world."""
    logins = Logins()
    opened = [logins.login(conn, f"user-{conn}") for conn in (1, 2, 3)]
    opened.append(logins.login(4, "user-4"))
    logins.decided(4, None, reason="ip_cap", limit=PER_IP, limit_value=3.0)
    assert logins.verdicts(tmp_path / "full", opened)["observed_with_cause"].verdict == "held"
    logins = Logins()
    opened = [logins.login(1), logins.login(2), logins.refused(3)]
    logins.pause()
    opened.append(logins.login(4, "bob"))
    logins.decided(4, None, reason="ip_cap", limit=PER_IP, limit_value=3.0)
    check = logins.verdicts(tmp_path / "left", opened)["observed_with_cause"]
    assert check.verdict == "not justified" and "at most 2 could be in use" in check.detail


def test_a_login_that_would_have_been_refused_with_room_is_found(tmp_path: Path) -> None:
    logins = Logins()
    first = logins.login(1)
    logins.pause()
    second = logins.refused(2)
    logins.pause()
    check = logins.verdicts(tmp_path, [first, second])["observed_with_cause"]
    assert check.verdict == "not justified" and "at most 1 could be in use" in check.detail


def test_a_login_that_names_another_value_is_found(tmp_path: Path) -> None:
    logins = Logins()
    opened = [logins.login(1), logins.login(2), logins.refused(3, value=1.0)]
    check = logins.verdicts(tmp_path, opened)["observed_with_cause"]
    assert check.verdict == "not justified" and f"that version observes {CAP}=2" in check.detail


class RatedLogins(Logins):
    """A rate of 1 a second of each user is observed: 10 of them pass at once."""

    def __init__(self, *others: tuple[str, str]) -> None:
        OneShard.__init__(self, *(("observed", f"/{name}", value) for name, value in ((RATE, "1"), *others)))
        self.answered(detail={"began": True})

    def answered(self, user: str | None = None, throttle_ms: int = 0, **more: Any) -> None:
        """The home of the rate has recorded a login."""
        detail = json.dumps(more.pop("detail", {"asker": 0}))
        self.add("observed_rate", version=1, user=user, bytes=1, throttle_ms=throttle_ms, detail=detail, **more)


def answers(logins: RatedLogins, folder: Path, delays: list[int]) -> Any:
    opened = []
    with logins.at_once():
        for conn, delay_ms in enumerate(delays, start=1):
            logins.answered("alice", delay_ms)
            opened.append(logins.login(conn))
            if delay_ms:
                logins.decided(conn, reason="user_rate", limit=RATE, limit_value=1.0)
    return logins.verdicts(folder, opened)["observed_rates"]


def test_logins_within_the_observed_rate_and_one_beyond_it_hold(tmp_path: Path) -> None:
    check = answers(RatedLogins(), tmp_path, [0] * 10 + [970])
    assert check.verdict == "held", check.detail


def test_an_answer_that_the_arithmetic_of_kafka_does_not_give_is_found(tmp_path: Path) -> None:
    check = answers(RatedLogins(), tmp_path / "let in", [0] * 12)
    assert check.verdict == "exceeded" and "a login of alice was answered with 0 ms" in check.detail
    check = answers(RatedLogins(), tmp_path / "refused", [0, 500])
    assert check.verdict == "not justified", check


def test_logins_that_a_row_tells_together_are_judged_each(tmp_path: Path) -> None:
    for last, verdict in (["carol", "bob"], "exceeded"), (["carol"], "held"):
        logins = RatedLogins()
        with logins.at_once():
            logins.answered(detail={"asker": 1, "user": ["alice", "bob"] * 10})
            logins.answered("alice", 999)  # a millisecond later
            logins.answered(detail={"asker": 1, "user": last})
        check = logins.verdicts(tmp_path / verdict, [])["observed_rates"]
        assert check.verdict == verdict, check.detail
        assert ("a login of bob was answered with 0 ms" in check.detail) == (verdict == "exceeded")


def test_a_row_that_tells_no_arrival_is_not_judged(tmp_path: Path) -> None:
    for number, detail in enumerate(({"asker": 1}, {"asker": 1, "user": [3]}, {"asker": 1, "ip": "a"}, [1])):
        logins = RatedLogins()
        logins.answered(detail=detail)
        assert logins.verdicts(tmp_path / str(number), [])["observed_rates"].verdict == "unknown"


def test_a_connection_that_a_rate_of_a_core_would_have_refused_is_counted_apart(tmp_path: Path) -> None:
    """It arrives at no other rate: so more may have been refused than have arrived there. No cap has decided anything."""
    logins = RatedLogins((CORE_RATE, "2"))
    opened = [logins.login(conn) for conn in (1, 2, 3)]
    logins.answered("alice")
    for conn in (2, 3):
        logins.decided(conn, None, reason="core_rate", limit=CORE_RATE, limit_value=2.0)
    checks = logins.verdicts(tmp_path, opened)
    assert {check.verdict for check in checks.values()} == {"held"}, checks
    said = checks["observed_rates"].detail
    assert said.startswith("1 arrivals at observed rates")
    assert said.endswith("0 would have been refused by them, 2 before them by a rate of a core")
    assert checks["observed_with_cause"].detail == "0 observed decisions, each by a cap that was reached"
