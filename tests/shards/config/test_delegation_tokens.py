"""Delegation tokens as records: lifetimes, who may do what, bounds, expiry, and records that are none."""

from __future__ import annotations

from typing import Any

import pytest

from shards.config.config_state import ConfigState
from shards.config.delegation_tokens import MOST_CHARACTERS, create, expire, expired, fits, renew
from shards.config.store_recovery import usable_records
from shards.settings.ranges import LONG_MAX

ALICE, BOB, CAROL = (["User", name] for name in ("alice", "bob", "carol"))
NOW = 1_800_000_000_000
DAY = 86_400_000
NOT_FOUND, EXPIRED, MISMATCH = (f"DELEGATION_TOKEN_{name}" for name in ("NOT_FOUND", "EXPIRED", "OWNER_MISMATCH"))


def state(**static: object) -> ConfigState:
    """`delegation_token_max_lifetime_ms=5` is that setting."""
    return ConfigState(1, {f"/{name.replace('_', '.')}": str(value) for name, value in static.items()})


def made(now: ConfigState, lifetime_ms: int = -1, owner: Any = ALICE, renewers: Any = (BOB,)) -> tuple[str, Any]:
    """(id, record) of a new token that alice requested."""
    delta, answer = create(now, ALICE, owner, renewers, lifetime_ms, now_ms=NOW)
    error, record, token_id = answer
    assert not error
    now.put(delta)
    assert now.tokens[token_id] == record
    return token_id, record


@pytest.mark.parametrize(
    ("asked_ms", "lives_ms", "lasts_ms"),
    [(-1, 7 * DAY, DAY), (0, 7 * DAY, DAY), (-(2**63), 7 * DAY, DAY), (5, 5, 5), (2 * DAY, 2 * DAY, DAY),
     (LONG_MAX, 7 * DAY, DAY)],
)  # fmt: skip
def test_a_token_lasts_as_long_as_it_is_asked_for_and_as_the_settings_let_it(asked_ms, lives_ms, lasts_ms):
    _, record = made(state(), asked_ms)
    assert (record["issued_ms"], record["max_ms"] - NOW, record["expires_ms"] - NOW) == (NOW, lives_ms, lasts_ms)


def test_no_time_is_beyond_the_last():
    now = state(delegation_token_max_lifetime_ms=LONG_MAX, delegation_token_expiry_time_ms=LONG_MAX)
    token_id, record = made(now, LONG_MAX)
    assert record["max_ms"] == record["expires_ms"] == LONG_MAX
    assert renew(now, token_id, ALICE, LONG_MAX, now_ms=NOW)[1] == ["", LONG_MAX]
    assert expire(now, token_id, ALICE, LONG_MAX, now_ms=NOW)[1] == ["", LONG_MAX]


def test_it_is_renewed_up_to_its_end():
    now = state()
    token_id, record = made(now)
    late = NOW + DAY - 1
    for period_ms, lasts_ms in ((-1, DAY), (0, DAY), (5, 5), (9 * DAY, DAY)):
        assert renew(now, token_id, BOB, period_ms, now_ms=late)[1] == ["", late + lasts_ms]
    now.put([("token", token_id, {**record, "expires_ms": record["max_ms"]})])
    assert renew(now, token_id, ALICE, -1, now_ms=record["max_ms"])[1] == ["", record["max_ms"]]


def test_only_owner_and_renewers_change_it():
    now = state()
    token_id, _ = made(now, owner=CAROL)
    for change in (renew, expire):
        assert change(now, token_id, ALICE, 5, now_ms=NOW) == ([], [MISMATCH, 0]), "who requested it for another"
        assert change(now, token_id, ["Group", "carol"], 5, now_ms=NOW) == ([], [MISMATCH, 0])
        assert [change(now, token_id, who, 5, now_ms=NOW)[1] for who in (BOB, CAROL)] == [["", NOW + 5]] * 2
        assert change(now, "none", CAROL, 5, now_ms=NOW) == ([], [NOT_FOUND, 0])


def test_it_expires_at_once_or_later_and_is_deleted_by_a_negative_time():
    now = state()
    token_id, record = made(now, 1000)
    assert expire(now, token_id, ALICE, 0, now_ms=NOW)[1] == ["", NOW]
    delta, _ = expire(now, token_id, ALICE, 0, now_ms=NOW - 1)
    assert usable_records(delta) == (delta, []), "where the clock was set back"
    assert expire(now, token_id, ALICE, 5000, now_ms=NOW)[1] == ["", record["max_ms"]]
    for period_ms in (-1, -(2**63)):
        assert expire(now, token_id, ALICE, period_ms, now_ms=NOW) == ([("token", token_id, None)], ["", NOW])


def test_a_token_that_has_expired_can_only_be_deleted_and_is_swept():
    now = state()
    token_id, _ = made(now, 1000)
    other, _ = made(now, 1001)
    late = NOW + 1001
    assert expired(now, now_ms=NOW + 1000) == []
    assert expired(now, now_ms=late) == [("token", token_id, None)]
    for change in (renew, expire):
        assert change(now, token_id, ALICE, 5, now_ms=late) == ([], [EXPIRED, 0])
        assert change(now, other, ALICE, 5, now_ms=late)[1][0] == ""
    assert renew(now, token_id, CAROL, 5, now_ms=late)[1] == [EXPIRED, 0], "that is told first"
    assert expire(now, token_id, CAROL, 5, now_ms=late)[1] == [MISMATCH, 0], "here that comes second"
    assert expire(now, token_id, ALICE, -1, now_ms=late)[1] == ["", late]


def test_there_are_at_most_so_many():
    now = state(turnstile_delegation_tokens_max=1)
    made(now)
    assert create(now, ALICE, ALICE, [], -1, now_ms=NOW) == ([], ["POLICY_VIOLATION", 0])


def test_its_names_have_a_length():
    assert fits([ALICE, ["User", "x" * (MOST_CHARACTERS - 15)]]) and not fits(
        [ALICE, ["User", "x" * (MOST_CHARACTERS - 14)]]
    )
    assert not fits([["User", ""]] * 1000)


def test_a_name_may_be_anything_and_comes_back_as_it_was():
    strange = ["User", 'a:b,"\n\u2028=\x00 ']
    token_id, record = made(state(), owner=strange, renewers=[strange])
    assert record["owner"] == strange and record["renewers"] == [strange]
    assert len(token_id) == 22 and not token_id.startswith("-")


@pytest.mark.parametrize(
    "wrong", [{"owner": "alice"}, {"owner": ["User", 5]}, {"renewers": [["User"]]}, {"renewers": 5}, {"max_ms": "x"},
              {"expires_ms": None}, {"issued_ms": 1.5}, {"more": 1}, {"expires_ms": 2**62}],
)  # fmt: skip
def test_a_damaged_record_is_left_out(wrong):
    token_id, record = made(state())
    good = ("token", token_id, record)
    assert usable_records([good, ("token", "b", {**record, **wrong}), ("token", "", record)])[0] == [good]
