"""The audit of caps of users' connections: honest journals hold, and a login beyond a cap, or refused without cause, is found."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from storms import COORDINATOR, write

from turnstile.pipeline.audit.audit import audit
from turnstile.pipeline.audit.audit_result import Check
from turnstile.pipeline.events.journal import here

CAP = "turnstile.max.connections.per.user"
LATER_NS = 10_000_000_000


class Logins:
    """The journal of one shard, whose clients log in under a cap of 2 of each user; events a second apart."""

    def __init__(self) -> None:
        self.events: list[dict[str, Any]] = []
        self._now_ns = LATER_NS
        place = {"broker": 0, "shard": 0, "epoch": 1}
        config = {"changes": [["setting", f"/{CAP}", "2"]], "full": True, "acknowledged": False}
        self.add("shard_up", detail=json.dumps({**place, "shards": 1}))
        self.add("shard_up", shard=COORDINATOR, detail=json.dumps({**place, "pid": 1}))
        self.add("config", shard=COORDINATOR, version=1, detail=json.dumps(config))
        self.add("config", shard=COORDINATOR, version=1, detail=json.dumps({**config, "acknowledged": True}))
        self.add("config", version=1, detail=json.dumps(config))

    def add(self, kind: str, *, shard: int = 0, **columns: Any) -> dict[str, Any]:
        self._now_ns += 1_000_000_000
        own = {"broker": -1, "shard": -1, "epoch": 0} if shard == COORDINATOR else {"broker": 0, "shard": 0, "epoch": 1}
        event = {
            "kind": kind,
            "mono_ns": self._now_ns,
            "ts": 1_600_000_000_000_000 + self._now_ns // 1000,
            **own,
            **columns,
        }
        self.events.append(event)
        return event

    def pause(self) -> None:
        """Longer than any check allows for."""
        self._now_ns += LATER_NS

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

    def close(self, login: dict[str, Any]) -> None:
        same = {name: login[name] for name in ("conn", "ip", "port", "listener", "user")}
        self.add("closed", reason="client", held_ms=1.0, bytes=9, **same)

    def judged(self, folder: Path) -> dict[str, Check]:
        """The journal's checks by name, once both processes have ended."""
        self.pause()
        self.add("ended")
        self.add("ended", shard=COORDINATOR)
        numbers: dict[int, int] = {}
        for event in self.events:
            event["seq"] = numbers[event["broker"]] = numbers.get(event["broker"], -1) + 1
        write(folder, self.events, parts=2)
        journal = here([folder])
        assert journal is not None
        return {check.name: check for check in audit(journal).checks}


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


def test_a_journal_without_logins_has_no_check_of_users(tmp_path: Path) -> None:
    assert not {"user_cap", "user_refused_with_cause"} & Logins().judged(tmp_path).keys()
