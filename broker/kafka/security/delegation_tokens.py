"""CreateDelegationToken 1-3 (38), RenewDelegationToken 1-2 (39), ExpireDelegationToken 1-2 (40), DescribeDelegationToken 1-3 (41):
KIP-48; tokens for other owners: KIP-373.

They are for clients that have logged in by SASL, and not by a token. A client may ask for a token of its own; for one of another
owner it must be allowed to CREATE_TOKENS of that user. It is told of tokens that it owns, requested or may renew, of those
that it may DESCRIBE, and of the users' whose tokens it may DESCRIBE_TOKENS of. Renewing and expiring go by the token's HMAC. A
change is answered when every shard knows it. Beyond the number of tokens that there may be, or with too many renewers:
POLICY_VIOLATION. Sources: KafkaApis, ControllerApis, DelegationTokenManager.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from broker.kafka.api_error import code_named
from broker.kafka.remote import ChangeFailed, CoordinatorCalls, ask_coordinator, changed_by, spawned
from broker.kafka.security.access import Access
from broker.kafka.security.acl import Operation, ResourceType
from broker.kafka.security.guarded_route import OPEN, GuardedRoute
from broker.serve.call import Call
from broker.serve.channel import SASL
from broker.serve.delegation_token_cache import DelegationTokenCache
from broker.wire import codes
from broker.wire.codec import Message
from broker.wire.primitives import from_timedelta
from shards.config.delegation_tokens import Principal, Token, fits
from shards.loop.deferred import MaybeDeferred, then
from shards.loop.turns import Turns

if TYPE_CHECKING:
    from broker.wire.requests import (
        CreateDelegationTokenRequest,
        DescribeDelegationTokenRequest,
        ExpireDelegationTokenRequest,
        RenewDelegationTokenRequest,
    )
    from broker.wire.responses import (
        CreateDelegationTokenTypes,
        DescribeDelegationTokenTypes,
        ExpireDelegationTokenTypes,
        RenewDelegationTokenTypes,
    )

USER = "User"
_ANONYMOUS: Principal = (USER, "ANONYMOUS")
_NONE_MS = -1


def routes(tokens: DelegationTokenCache, access: Access, mesh: CoordinatorCalls, turns: Turns) -> list[GuardedRoute]:
    handler = _DelegationTokens(tokens, access, mesh, turns)
    return [
        GuardedRoute(38, spawned(turns.spawn, handler.create), OPEN),
        GuardedRoute(39, spawned(turns.spawn, handler.renew), OPEN),
        GuardedRoute(40, spawned(turns.spawn, handler.expire), OPEN),
        GuardedRoute(41, handler.describe, OPEN),
    ]


class _Expiry(NamedTuple):
    """An error code, and the Unix ms at which the token expires."""

    code: int
    expires_ms: int


class _DelegationTokens:
    def __init__(self, tokens: DelegationTokenCache, access: Access, mesh: CoordinatorCalls, turns: Turns) -> None:
        self._tokens = tokens
        self._access = access
        self._mesh = mesh
        self._turns = turns

    async def create(self, request: CreateDelegationTokenRequest, call: Call[CreateDelegationTokenTypes]) -> Message:
        requester = owner = (USER, call.user)
        if request.owner_principal_name:
            if request.owner_principal_type is None:  # as Kafka, which can't make a principal of it
                return _created(call, codes.UNKNOWN_SERVER_ERROR, _ANONYMOUS, _ANONYMOUS)
            owner = (request.owner_principal_type, request.owner_principal_name)
        renewers = [[each.principal_type, each.principal_name] for each in request.renewers]
        if code := self._why_not(call, owner, renewers):
            return _created(call, code, owner, requester)
        if not self._tokens.is_enabled:
            return _created(call, codes.DELEGATION_TOKEN_AUTH_DISABLED, owner, requester, times_ms=(0, 0, 0))
        if not fits([requester, owner, *renewers]):
            return _created(call, codes.POLICY_VIOLATION, owner, requester)
        asked = [*requester], [*owner], renewers, from_timedelta(request.max_lifetime)
        code, *made = await self._change(call, "create", *asked)
        if code:
            return _created(call, code, owner, requester)
        record, token_id = made
        token = Token.parse(record)
        times_ms = (token.issued_ms, token.expires_ms, token.max_ms)
        token_hmac = self._tokens.hmac_of(token_id)
        return _created(call, codes.NONE, owner, requester, times_ms=times_ms, token_id=token_id, token_hmac=token_hmac)

    async def renew(self, request: RenewDelegationTokenRequest, call: Call[RenewDelegationTokenTypes]) -> Message:
        code, expires_ms = await self._change_one(call, "renew", request.hmac, from_timedelta(request.renew_period))
        return call.types.RenewDelegationTokenResponse(error_code=code, expiry_timestamp=expires_ms)

    async def expire(self, request: ExpireDelegationTokenRequest, call: Call[ExpireDelegationTokenTypes]) -> Message:
        code, expires_ms = await self._change_one(
            call, "expire", request.hmac, from_timedelta(request.expiry_time_period)
        )
        return call.types.ExpireDelegationTokenResponse(error_code=code, expiry_timestamp=expires_ms)

    def describe(
        self, request: DescribeDelegationTokenRequest, call: Call[DescribeDelegationTokenTypes]
    ) -> MaybeDeferred[Message]:
        code = codes.NONE
        if not _has_logged_in(call):
            code = codes.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED
        elif not self._tokens.is_enabled:
            code = codes.DELEGATION_TOKEN_AUTH_DISABLED
        if code:
            return call.types.DescribeDelegationTokenResponse(error_code=code, tokens=())
        owners = request.owners
        wanted = None if owners is None else {(each.principal_type, each.principal_name) for each in owners}
        described = self._turns.collect(self._described(call, wanted))
        return then(
            described,
            lambda made: call.types.DescribeDelegationTokenResponse(
                error_code=codes.NONE, tokens=tuple(each for each in made if each is not None)
            ),
        )

    def _why_not(self, call: Call, owner: Principal, renewers: Sequence[Sequence[str]]) -> int:
        """The error of a client that may not have such a token."""
        if not _has_logged_in(call):
            return codes.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED
        if owner != (USER, call.user) and not self._may(call, Operation.CREATE_TOKENS, ResourceType.USER, _text(owner)):
            return codes.DELEGATION_TOKEN_AUTHORIZATION_FAILED
        if any(kind != USER for kind, _ in renewers):
            return codes.INVALID_PRINCIPAL_TYPE
        return codes.NONE

    async def _change_one(self, call: Call, how: str, token_hmac: bytes, period_ms: int) -> _Expiry:
        """The outcome of renewing or expiring the token with this HMAC."""
        if not _has_logged_in(call):
            return _Expiry(codes.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED, _NONE_MS)
        if not self._tokens.is_enabled:
            return _Expiry(codes.DELEGATION_TOKEN_AUTH_DISABLED, 0)
        token_id = self._tokens.id_of(token_hmac)
        if token_id is None:
            return _Expiry(codes.DELEGATION_TOKEN_NOT_FOUND, 0)
        code, expires_ms = await self._change(call, how, token_id, [USER, call.user], period_ms)
        return _Expiry(code, expires_ms)

    async def _change(self, call: Call, how: str, *args: object) -> list[Any]:
        """[error code, what the coordinator answered beside it]."""
        try:
            error, *rest = await ask_coordinator(self._mesh, "alter_token", changed_by(call), how, *args)
        except ChangeFailed as failed:
            return [failed.code, 0]
        return [code_named(error), *rest]

    def _described(
        self, call: Call[DescribeDelegationTokenTypes], owners: set[Principal] | None
    ) -> Iterator[DescribeDelegationTokenTypes.DescribedDelegationToken | None]:
        """The description of each token; None for a token that was not asked for or that the client may not see."""
        me = ((USER, call.user),)
        for token_id, token, token_hmac in self._tokens.tokens() if owners != set() else ():
            asked_for = owners is None or token.is_known_to(owners)
            may = asked_for and (
                token.is_known_to(me)
                or self._may(call, Operation.DESCRIBE, ResourceType.DELEGATION_TOKEN, token_id)
                or self._may(call, Operation.DESCRIBE_TOKENS, ResourceType.USER, _text(token.owner))
            )
            yield _described(call, token_id, token, token_hmac) if may else None

    def _may(self, call: Call, operation: Operation, resource: ResourceType, name: str) -> bool:
        """Everything, where there is no authorizer: then every client is told of every token, as in Kafka."""
        return not self._access.is_on or self._access.may(call, operation, resource, name)


def _has_logged_in(call: Call) -> bool:
    """True if the client has logged in by SASL, and not by a delegation token."""
    return call.channel is not None and call.channel.serving.logged_in_by == SASL


def _text(principal: Principal) -> str:
    """A principal in the spelling of ACLs."""
    return ":".join(principal)


def _created(
    call: Call[CreateDelegationTokenTypes],
    code: int,
    owner: Principal,
    requester: Principal,
    *,
    times_ms: tuple[int, int, int] = (_NONE_MS, _NONE_MS, _NONE_MS),
    token_id: str = "",
    token_hmac: bytes = b"",
) -> CreateDelegationTokenTypes.CreateDelegationTokenResponse:
    """`times_ms`: when it was issued, expires, and expires at the latest."""
    issued_ms, expires_ms, max_ms = times_ms
    return call.types.CreateDelegationTokenResponse(
        error_code=code, principal_type=owner[0], principal_name=owner[1], token_requester_principal_type=requester[0],
        token_requester_principal_name=requester[1], issue_timestamp=issued_ms, expiry_timestamp=expires_ms,
        max_timestamp=max_ms, token_id=token_id, hmac=token_hmac,
    )  # fmt: skip


def _described(
    call: Call[DescribeDelegationTokenTypes], token_id: str, token: Token, token_hmac: bytes
) -> DescribeDelegationTokenTypes.DescribedDelegationToken:
    one = call.types.DescribedDelegationTokenRenewer
    return call.types.DescribedDelegationToken(
        principal_type=token.owner[0], principal_name=token.owner[1], token_requester_principal_type=token.requester[0],
        token_requester_principal_name=token.requester[1], issue_timestamp=token.issued_ms,
        expiry_timestamp=token.expires_ms, max_timestamp=token.max_ms, token_id=token_id, hmac=token_hmac,
        renewers=tuple(one(principal_type=kind, principal_name=name) for kind, name in token.renewers),
    )  # fmt: skip
