"""Delegation tokens (KIP-48) as Kafka 4.1's controller keeps them -> the delta to store. Pure: no clock, no I/O, no secret.

A record is found by the token's id. It names who may use, renew and describe the token, and until when; what the token's
user proves to know is not in it (broker/serve/delegation_token_cache.py).

expiry_within_max_lifetime  expires_ms <= max_ms, which never changes. The clock may be set back: a token may expire before
    it was issued.
owner_and_renewers_alone_change_tokens  A token is changed or deleted by its owner and its renewers alone. Who requested it
    for another owner may only see it.
delegation_tokens_are_bounded  There are at most `turnstile.delegation.tokens.max` tokens, and the names in one have at most
    MOST_CHARACTERS.

Sources: DelegationTokenControlManager, DelegationTokenCache, TokenInformation.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple, TypeAlias

from shards.config.config_state import Change, ConfigState, storable
from shards.config.stored_records import TokenRecord
from shards.settings.ranges import LONG_MAX
from shards.uuids import random_uuid, uuid_text

MAX_LIFETIME = "delegation.token.max.lifetime.ms"
LIFETIME = "delegation.token.expiry.time.ms"
MOST = "turnstile.delegation.tokens.max"
MOST_CHARACTERS = 4096
"""The most characters of owner, requester and renewers, as "User:alice". Kafka has no bound but that of a request."""
KIND = "token"

Principal: TypeAlias = tuple[str, str]
"""Type and name: ("User", "alice")."""
TokenAnswer: TypeAlias = list[object]
"""[name of Kafka's error or "", Unix ms at which the token expires or 0]; of a new token its record, and its id behind that."""
Outcome: TypeAlias = tuple[list[Change], TokenAnswer]


class Token(NamedTuple):
    """Times are Unix milliseconds."""

    owner: Principal
    requester: Principal
    renewers: tuple[Principal, ...]
    issued_ms: int
    expires_ms: int
    max_ms: int

    @classmethod
    def parse(cls, record: TokenRecord) -> Token:
        """The token of a record. Raises KeyError, TypeError or ValueError for what is none."""
        renewers = tuple(map(_principal, record["renewers"]))
        times_ms = record["issued_ms"], record["expires_ms"], record["max_ms"]
        return cls(_principal(record["owner"]), _principal(record["requester"]), renewers, *times_ms)

    def record(self) -> TokenRecord:
        """The record of the token in the store and the image."""
        return {
            "owner": [*self.owner],
            "requester": [*self.requester],
            "renewers": [[*each] for each in self.renewers],
            "issued_ms": self.issued_ms,
            "expires_ms": self.expires_ms,
            "max_ms": self.max_ms,
        }

    def may_be_changed_by(self, who: Principal) -> bool:
        return who == self.owner or who in self.renewers

    def is_known_to(self, who: Iterable[Principal]) -> bool:
        """True if one of these owns it, requested it or may renew it."""
        return not {self.owner, self.requester, *self.renewers}.isdisjoint(who)

    def has_expired(self, now_ms: int) -> bool:
        return now_ms > self.expires_ms  # expiry_within_max_lifetime


def fits(principals: Iterable[Sequence[str]]) -> bool:
    """True if a token may have all these names (delegation_tokens_are_bounded)."""
    return sum(len(kind) + 1 + len(name) for kind, name in principals) <= MOST_CHARACTERS


def check_token_record(token_id: str, record: TokenRecord) -> None:
    """Raises ValueError or the like for a record that is none of `Token.record`."""
    token = Token.parse(record)
    times = (token.issued_ms, token.expires_ms, token.max_ms)
    are_times = all(type(each) is int for each in times) and token.expires_ms <= token.max_ms
    if not token_id or token.record() != record or not are_times:
        raise ValueError("it is no delegation token")


def create(
    state: ConfigState,
    requester: Sequence[str],
    owner: Sequence[str],
    renewers: Sequence[Sequence[str]],
    max_lifetime_ms: int,
    *,
    now_ms: int,
) -> Outcome:
    """`max_lifetime_ms` 0 and below: what the settings say, which is also the most. That its names fit is checked by the
    broker that was asked (broker/kafka/security/delegation_tokens.py)."""
    if len(state.tokens) >= state.number(MOST):
        return [], ["POLICY_VIOLATION", 0]
    most_ms = state.number(MAX_LIFETIME)
    lifetime_ms = min(most_ms, max_lifetime_ms) if max_lifetime_ms > 0 else most_ms
    max_ms = _after(now_ms, lifetime_ms)
    expires_ms = min(max_ms, _after(now_ms, state.number(LIFETIME)))
    named = tuple(map(_principal, renewers))
    record = Token(_principal(owner), _principal(requester), named, now_ms, expires_ms, max_ms).record()
    token_id = uuid_text(random_uuid())
    return storable([(KIND, token_id, record)]), ["", record, token_id]


def renew(state: ConfigState, token_id: str, who: Sequence[str], period_ms: int, *, now_ms: int) -> Outcome:
    """`period_ms` 0 and below: what the settings say, which is also the most."""
    token, error = _of(state, token_id)
    if token is not None and token.has_expired(now_ms):
        error = "DELEGATION_TOKEN_EXPIRED"
    elif token is not None and not token.may_be_changed_by(_principal(who)):
        error = "DELEGATION_TOKEN_OWNER_MISMATCH"
    if token is None or error:
        return [], [error, 0]
    most_ms = state.number(LIFETIME)
    return _until(token_id, token, _after(now_ms, min(most_ms, period_ms) if period_ms > 0 else most_ms))


def expire(state: ConfigState, token_id: str, who: Sequence[str], period_ms: int, *, now_ms: int) -> Outcome:
    """`period_ms` below 0: the token is deleted, also one that has expired."""
    token, error = _of(state, token_id)
    if token is not None and not token.may_be_changed_by(_principal(who)):
        error = "DELEGATION_TOKEN_OWNER_MISMATCH"
    elif token is not None and period_ms >= 0 and token.has_expired(now_ms):
        error = "DELEGATION_TOKEN_EXPIRED"
    if token is None or error:
        return [], [error, 0]
    if period_ms < 0:
        return [(KIND, token_id, None)], ["", now_ms]
    return _until(token_id, token, _after(now_ms, period_ms))


CHANGES: dict[str, Callable[..., Outcome]] = {"create": create, "renew": renew, "expire": expire}


def expired(state: ConfigState, *, now_ms: int) -> list[Change]:
    """Deletes every token that has expired."""
    return [
        (KIND, token_id, None) for token_id, record in state.tokens.items() if now_ms > record["expires_ms"]
    ]  # expiry_within_max_lifetime


class _KnownToken(NamedTuple):
    """A token, or the name of the error if there is none."""

    token: Token | None
    error: str


def _of(state: ConfigState, token_id: str) -> _KnownToken:
    record = state.tokens.get(token_id)
    return _KnownToken(None, "DELEGATION_TOKEN_NOT_FOUND") if record is None else _KnownToken(Token.parse(record), "")


def _until(token_id: str, token: Token, expires_ms: int) -> Outcome:
    until = token._replace(expires_ms=min(token.max_ms, expires_ms))
    return storable([(KIND, token_id, until.record())]), ["", until.expires_ms]


def _principal(pair: Sequence[str]) -> Principal:
    kind, name = pair
    if not isinstance(kind, str) or not isinstance(name, str):
        raise ValueError("a principal has a type and a name")
    return kind, name


def _after(now_ms: int, duration_ms: int) -> int:
    return min(now_ms + duration_ms, LONG_MAX)
