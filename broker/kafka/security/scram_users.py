"""DescribeUserScramCredentials 0 (50), AlterUserScramCredentials 0 (51): KIP-554.

A batch is answered user by user: a user with one bad alteration gets none of its own, as in Kafka. Iterations are
4096 to 16384. Source: ScramControlManager of Kafka 4.1.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from broker.kafka.api_error import NO_ERROR, ApiError
from broker.kafka.remote import ChangeFailed, CoordinatorCalls, ask_coordinator, changed_by, spawned
from broker.kafka.security import acl_and_user_guards
from broker.kafka.security.guarded_route import GuardedRoute
from broker.serve.call import Call
from broker.serve.sasl import MAX_ITERATIONS, MAX_SALT_BYTES, MIN_ITERATIONS, SCRAM, Credential
from broker.wire import codes
from broker.wire.codec import Message
from shards.config.image import ClusterImage
from shards.config.stored_records import UserRecord
from shards.loop.deferred import Spawn

if TYPE_CHECKING:
    from broker.wire.requests import (
        AlterUserScramCredentialsRequest,
        DescribeUserScramCredentialsRequest,
        ScramCredentialDeletion,
        ScramCredentialUpsertion,
    )
    from broker.wire.responses import AlterUserScramCredentialsTypes, DescribeUserScramCredentialsTypes

MECHANISM = {1: "SCRAM-SHA-256", 2: "SCRAM-SHA-512"}
_NUMBER = {name: number for number, name in MECHANISM.items()}


def routes(image: ClusterImage, mesh: CoordinatorCalls, spawn: Spawn) -> list[GuardedRoute]:
    handler = _Users(image, mesh)
    return [
        GuardedRoute(50, handler.describe, acl_and_user_guards.describe_user_scram_credentials),
        GuardedRoute(51, spawned(spawn, handler.alter), acl_and_user_guards.alter_user_scram_credentials),
    ]


class _Users:
    def __init__(self, image: ClusterImage, mesh: CoordinatorCalls) -> None:
        self._image = image
        self._mesh = mesh

    def describe(
        self, request: DescribeUserScramCredentialsRequest, call: Call[DescribeUserScramCredentialsTypes]
    ) -> Message:
        asked = [user.name for user in request.users or ()] or sorted(self._image.users)
        results = []
        for name, times in Counter(asked).items():
            if times > 1:
                results.append(_described(call, name, codes.DUPLICATE_RESOURCE, "Cannot describe SCRAM credentials for the same "
                                          f"user twice in a single request: {name}"))  # fmt: skip
            elif name not in self._image.users:
                message = f"Attempt to describe a user credential that does not exist: {name}"
                results.append(_described(call, name, codes.RESOURCE_NOT_FOUND, message))
            else:
                results.append(_described(call, name, codes.NONE, "", self._image.users[name]))
        return call.types.DescribeUserScramCredentialsResponse(error_code=0, error_message="", results=tuple(results))

    async def alter(
        self, request: AlterUserScramCredentialsRequest, call: Call[AlterUserScramCredentialsTypes]
    ) -> Message:
        faults = self._faults(request)
        names = list(
            dict.fromkeys([each.name for each in request.deletions] + [each.name for each in request.upsertions])
        )
        changes: list[list[object]] = [
            [each.name, MECHANISM[each.mechanism], None] for each in request.deletions if each.name not in faults
        ]
        for each in request.upsertions:
            if each.name not in faults:
                mechanism = MECHANISM[each.mechanism]
                kept = Credential.of_salted(mechanism, each.salted_password, each.salt, each.iterations)
                changes.append([each.name, mechanism, kept.stored()])
        if changes:
            try:
                await ask_coordinator(self._mesh, "alter_users", changed_by(call), changes)
            except ChangeFailed as failed:
                faults |= {name: failed.error for name in names if name not in faults}
        return call.types.AlterUserScramCredentialsResponse(
            results=tuple(
                call.types.AlterUserScramCredentialsResult(user=name, error_code=code, error_message=message)
                for name in names
                for code, message in [faults.get(name, NO_ERROR)]
            )
        )

    def _faults(self, request: AlterUserScramCredentialsRequest) -> dict[str, ApiError]:
        """The first fault of each user's alterations, by user."""
        faults: dict[str, ApiError] = {}
        asked: tuple[ScramCredentialDeletion | ScramCredentialUpsertion, ...] = (
            *request.deletions,
            *request.upsertions,
        )
        iterations = (*(None for _ in request.deletions), *(each.iterations for each in request.upsertions))
        times = Counter((each.name, each.mechanism) for each in asked)
        for each, its_iterations in zip(asked, iterations, strict=True):
            repeated = times[each.name, each.mechanism] > 1
            fault = self._fault(each.name, each.mechanism, its_iterations, repeated)
            if fault is not None:
                faults.setdefault(each.name, fault)
        for each in request.upsertions:
            if len(each.salt) > MAX_SALT_BYTES:
                message = f"Salt must not be longer than {MAX_SALT_BYTES} bytes"
                faults.setdefault(each.name, ApiError(codes.UNACCEPTABLE_CREDENTIAL, message))
        return faults

    def _fault(self, name: str, mechanism: int, iterations: int | None, repeated: bool) -> ApiError | None:
        """`iterations` None: a deletion."""
        if not name:
            return ApiError(codes.UNACCEPTABLE_CREDENTIAL, "Username must not be empty")
        if mechanism not in MECHANISM:
            return ApiError(codes.UNSUPPORTED_SASL_MECHANISM, "Unknown SCRAM mechanism")
        if repeated:
            return ApiError(codes.DUPLICATE_RESOURCE, "A user credential cannot be altered twice in the same request")
        if iterations is None:
            known = self._image.users.get(name, {})
            missing = MECHANISM[mechanism] not in known
            message = "Attempt to delete a user credential that does not exist"
            return ApiError(codes.RESOURCE_NOT_FOUND, message) if missing else None
        if iterations < MIN_ITERATIONS:
            return ApiError(codes.UNACCEPTABLE_CREDENTIAL, "Too few iterations")
        if iterations > MAX_ITERATIONS:
            return ApiError(codes.UNACCEPTABLE_CREDENTIAL, "Too many iterations")
        return None


def _described(
    call: Call[DescribeUserScramCredentialsTypes],
    name: str,
    code: int,
    message: str | None,
    known: UserRecord | None = None,
) -> DescribeUserScramCredentialsTypes.DescribeUserScramCredentialsResult:
    infos = tuple(
        call.types.CredentialInfo(mechanism=_NUMBER[mechanism], iterations=known[mechanism]["iterations"])
        for mechanism in SCRAM
        if known and mechanism in known
    )
    return call.types.DescribeUserScramCredentialsResult(
        user=name, error_code=code, error_message=message, credential_infos=infos
    )
