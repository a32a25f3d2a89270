"""PBKDF2 for passwords that clients show (SASL PLAIN) and for tokens', away from the event loop: it takes milliseconds by design.

one_derivation_at_a_time  At most one derivation of a shard runs at a time, in a thread: hashlib lets other threads run
    meanwhile. The others wait in the order in which they came, one for each connection at most.
passwords_are_not_kept  What is kept is the derived key of a password that was right, or of a token's, under a keyed digest:
    not the password. The latest MOST are kept; a wrong guess costs the full derivation each time.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
from functools import partial

import trio
from cachetools import LRUCache

from broker.serve.sasl import KeyRequest
from shards.loop.deferred import MaybeDeferred, Spawn

MOST = 1024


class KeyDerivation:
    """Derives keys for all connections of a shard."""

    def __init__(self, spawn: Spawn) -> None:
        self._spawn = spawn
        self._one_at_a_time = trio.CapacityLimiter(1)
        self._secret = secrets.token_bytes(32)
        self._kept: LRUCache[bytes, bytes] = LRUCache(MOST)

    def derive(self, request: KeyRequest) -> MaybeDeferred[bytes]:
        """The salted password: at once when it was right a short while ago. Cancelling ends the wait for a turn."""
        kept = self._kept.get(self._name(request))
        return kept if kept is not None else self._spawn(self._derive(request), cancellable=True)

    def remember(self, request: KeyRequest, key: bytes) -> None:
        """The password was the right one."""
        self._kept[self._name(request)] = key

    async def _derive(self, request: KeyRequest) -> bytes:
        work = partial(hashlib.pbkdf2_hmac, request.digest, request.password, request.salt, request.iterations)
        return await trio.to_thread.run_sync(work, abandon_on_cancel=True, limiter=self._one_at_a_time)

    def _name(self, request: KeyRequest) -> bytes:
        """The salt is one user's: another user with the same password has another name. Lengths keep fields apart."""
        digest, password, salt, iterations = request
        fields = f"{digest} {iterations} {len(salt)} ".encode() + salt + password
        return hmac.digest(self._secret, fields, "sha256")
