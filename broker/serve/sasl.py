"""SASL mechanisms as pure state machines: PLAIN (RFC 4616) and SCRAM-SHA-256/512 (RFC 5802, 7677), the server's side.

Passwords are kept as SCRAM credentials only: salted, hashed, never the password itself. PLAIN is checked against the
same credential, by deriving from the password what SCRAM would; the caller does that, as it takes milliseconds
(key_derivation.py). By SCRAM with the extension `tokenauth=true` a client proves a delegation token (KIP-48): its name is
the token's id, and its password, of which a credential is derived, the token's HMAC.

Invariants
unknown_users_look_known  An unknown user is answered as a known one with a wrong password: with the same messages, after
    the same work, and with a salt that is the same each time and on every shard, as a stored one is, and of a stored one's
    shape.
named_users_were_proven  A mechanism that has named a `user` was shown proof of that user's secret, or of a token's that is
    the user's.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import secrets
from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol

from broker.serve.credential_shapes import USUAL, Salting, Shape, made_up
from shards.config.stored_records import CredentialRecord, UserRecord

PLAIN = "PLAIN"
SCRAM = {"SCRAM-SHA-256": "sha256", "SCRAM-SHA-512": "sha512"}
MIN_ITERATIONS, MAX_ITERATIONS = 4096, 16384
MAX_SALT_BYTES = 1024
"""Kafka has no bound but that of a request; its own tools make 26 bytes, librdkafka 64."""
_SALT_BYTES = 26


WRONG_NONCE = "Invalid client nonce in the final client message."
DOUBLED_NONCE = (
    f"{WRONG_NONCE} It has the client's part twice, as librdkafka before 2.6.1 sends it; Kafka 4 refuses that, too. "
    "Take a later librdkafka, or PLAIN."
)


class AuthenticationFailed(Exception):
    """The client's proof is wrong, or its token is not of the mechanism; `str()` may be sent to it."""


class Credential(NamedTuple):
    """A SCRAM credential: the salt, the iterations and the keys derived from a password (RFC 5802)."""

    salt: bytes
    iterations: int
    stored_key: bytes
    server_key: bytes

    @classmethod
    def of_password(cls, mechanism: str, password: str, iterations: int = MIN_ITERATIONS) -> Credential:
        salt = _salt_of(secrets.token_bytes(_SALT_BYTES))
        salted = hashlib.pbkdf2_hmac(SCRAM[mechanism], password.encode(), salt, iterations)
        return cls.of_salted(mechanism, salted, salt, iterations)

    @classmethod
    def of_salted(cls, mechanism: str, salted: bytes, salt: bytes, iterations: int) -> Credential:
        """The credential of a salted password, which is what AlterUserScramCredentials carries."""
        digest = SCRAM[mechanism]
        client_key = hmac.digest(salted, b"Client Key", digest)
        return cls(
            salt, iterations, hashlib.new(digest, client_key).digest(), hmac.digest(salted, b"Server Key", digest)
        )

    def is_of(self, mechanism: str, password: str) -> bool:
        """True if it was made of this password."""
        salted = hashlib.pbkdf2_hmac(SCRAM[mechanism], password.encode(), self.salt, self.iterations)
        return self == Credential.of_salted(mechanism, salted, self.salt, self.iterations)

    @classmethod
    def parse(cls, stored: CredentialRecord) -> Credential:
        parts = stored["salt"], stored["stored_key"], stored["server_key"]
        salt, stored_key, server_key = map(base64.b64decode, parts)
        return cls(salt, int(stored["iterations"]), stored_key, server_key)

    def stored(self) -> CredentialRecord:
        """The credential as a record of JSON."""
        salt, stored_key, server_key = (
            base64.b64encode(part).decode() for part in (self.salt, self.stored_key, self.server_key)
        )
        return {"salt": salt, "stored_key": stored_key, "server_key": server_key, "iterations": self.iterations}


class TokenLogin(NamedTuple):
    """A delegation token as its user needs it: whose it is, the password, and the Unix milliseconds of its end."""

    owner: str
    password: bytes
    expires_ms: int


class Users(NamedTuple):
    """`find(name)` is a user's credentials by mechanism, as `Credential.stored` makes them, or None. `secret`: the
    cluster's own, of which the salts of unknown users and of tokens are made, those in one of `shapes(mechanism)`.
    `token(id)` is a delegation token, or None."""

    find: Callable[[str], UserRecord | None]
    secret: bytes
    shapes: Callable[[str], Sequence[Shape]] = lambda mechanism: (USUAL,)
    token: Callable[[str], TokenLogin | None] = lambda token_id: None

    def credential(self, name: str, mechanism: str) -> Credential:
        """The user's credential, or one that no password matches."""
        stored = (self.find(name) or {}).get(mechanism)
        return Credential.parse(stored) if stored is not None else self._unknown(name, mechanism)

    def mechanism_of(self, name: str) -> str:
        """The first SCRAM mechanism for which the user has a credential."""
        known = self.find(name) or {}
        return next((mechanism for mechanism in SCRAM if mechanism in known), "SCRAM-SHA-256")

    def salt_of_token(self, token_id: str, mechanism: str) -> Salting:
        """The salting of a delegation token: the same each time, so that a key is derived once."""
        return made_up(self.secret, token_id, mechanism, (USUAL,))

    def _unknown(self, name: str, mechanism: str) -> Credential:
        salt, iterations = made_up(self.secret, name, mechanism, self.shapes(mechanism))
        unmatched = bytes(hashlib.new(SCRAM[mechanism]).digest_size)
        return Credential(salt, iterations, unmatched, unmatched)


def _salt_of(random: bytes) -> bytes:
    """26 characters of base 32, as Kafka's ScramFormatter makes its salts."""
    return base64.b32hexencode(random)[:_SALT_BYTES].lower()


class KeyRequest(NamedTuple):
    """A request for PBKDF2 of `password` with `salt`, `iterations` times `digest` ("sha256")."""

    digest: str
    password: bytes
    salt: bytes
    iterations: int


class Mechanism(Protocol):
    """`user` is None until the client has proven to be it. Both methods raise AuthenticationFailed."""

    user: str | None
    token: TokenLogin | None
    """The delegation token that the client proves to have, if it proves one."""

    def answer(self, token: bytes) -> bytes | KeyRequest:
        """The server's token to the client's; or a key is needed first."""

    def derived(self, key: bytes) -> bytes:
        """The server's token, by the key that was asked for."""


def mechanism_of(name: str, users: Users) -> Mechanism:
    """A fresh exchange of the mechanism. KeyError for one that is not known."""
    return Plain(users) if name == PLAIN else Scram(name, SCRAM[name], users)


class Plain:
    """One token: authorization id, user and password, separated by NUL."""

    def __init__(self, users: Users) -> None:
        self.user: str | None = None
        self.token: TokenLogin | None = None
        self._users = users
        self._claimed = ""
        self._mechanism = ""
        self._kept: Credential | None = None

    def answer(self, token: bytes) -> KeyRequest:
        try:
            authorization, user, password = token.decode().split("\0")
        except ValueError:
            raise AuthenticationFailed("Invalid SASL/PLAIN response: expected 3 tokens") from None
        if not user or not password:
            raise AuthenticationFailed("Authentication failed: username or password not specified")
        if authorization not in ("", user):
            raise AuthenticationFailed(
                "Authentication failed: Client requested an authorization id that is different from username"
            )
        self._claimed = user
        self._mechanism = self._users.mechanism_of(user)
        kept = self._kept = self._users.credential(user, self._mechanism)
        return KeyRequest(SCRAM[self._mechanism], password.encode(), kept.salt, kept.iterations)

    def derived(self, key: bytes) -> bytes:
        kept = self._kept
        assert kept is not None
        shown = Credential.of_salted(self._mechanism, key, kept.salt, kept.iterations)
        if not hmac.compare_digest(shown.stored_key, kept.stored_key):
            raise AuthenticationFailed("Authentication failed: Invalid username or password")
        self.user = self._claimed
        return b""


class Scram:
    """Two messages of each side: names and nonces, then proofs."""

    def __init__(self, mechanism: str, digest: str, users: Users) -> None:
        self.user: str | None = None
        self.token: TokenLogin | None = None
        self._mechanism = mechanism
        self._digest = digest
        self._users = users
        self._claimed = ""
        self._bare = ""
        self._nonce = ""
        self._said = ""
        self._credential: Credential | None = None

    def answer(self, token: bytes) -> bytes | KeyRequest:
        try:
            text = token.decode()
            return self._first(text) if self._credential is None else self._final(text)
        except (ValueError, KeyError):
            raise AuthenticationFailed(f"Invalid {self._mechanism} message") from None

    def derived(self, key: bytes) -> bytes:
        """The challenge for a delegation token's key; the client derives the key of a user."""
        salt, iterations = self._users.salt_of_token(self._claimed, self._mechanism)
        return self._challenge(Credential.of_salted(self._mechanism, key, salt, iterations))

    def _first(self, text: str) -> bytes | KeyRequest:
        """`n,[a=authzid],n=user,r=nonce[,extensions]` -> `r=,s=,i=`"""
        binding, authorization, self._bare = text.split(",", 2)
        if binding != "n" and binding != "y":
            raise AuthenticationFailed("Channel binding is not supported")
        fields = _fields(self._bare)
        self._nonce = fields["r"] + secrets.token_urlsafe(18)
        self._claimed = fields["n"].replace("=2C", ",").replace("=3D", "=")
        if authorization and authorization != f"a={fields['n']}":
            raise AuthenticationFailed(
                "Authentication failed: Client requested an authorization id that is different from username"
            )
        if _is_of_token(self._bare):
            return self._key_of_token()
        return self._challenge(self._users.credential(self._claimed, self._mechanism))

    def _key_of_token(self) -> KeyRequest:
        self.token = self._users.token(self._claimed)
        if self.token is None:
            raise self._wrong()
        salt, iterations = self._users.salt_of_token(self._claimed, self._mechanism)
        return KeyRequest(self._digest, self.token.password, salt, iterations)

    def _challenge(self, credential: Credential) -> bytes:
        self._credential = credential
        salt = base64.b64encode(credential.salt).decode()
        answer = f"r={self._nonce},s={salt},i={credential.iterations}"
        self._said = f"{self._bare},{answer}"
        return answer.encode()

    def _final(self, text: str) -> bytes:
        """`c=binding,r=nonce,p=proof` -> `v=signature`"""
        assert self._credential is not None
        without_proof, _, proof = text.rpartition(",p=")
        nonce = _fields(without_proof)["r"]
        if nonce != self._nonce:
            raise AuthenticationFailed(DOUBLED_NONCE if nonce.endswith(self._nonce) else WRONG_NONCE)
        said = f"{self._said},{without_proof}".encode()
        signature = hmac.digest(self._credential.stored_key, said, self._digest)
        given = base64.b64decode(proof)
        if len(given) != len(signature):
            raise AuthenticationFailed(f"Invalid {self._mechanism} message")
        client_key = bytes(a ^ b for a, b in zip(given, signature, strict=True))
        if not hmac.compare_digest(hashlib.new(self._digest, client_key).digest(), self._credential.stored_key):
            raise self._wrong()
        self.user = self.token.owner if self.token is not None else self._claimed
        return b"v=" + base64.b64encode(hmac.digest(self._credential.server_key, said, self._digest))

    def _wrong(self) -> AuthenticationFailed:
        return AuthenticationFailed(
            f"Authentication failed during authentication due to invalid credentials with SASL mechanism {self._mechanism}"
        )


def _is_of_token(bare: str) -> bool:
    """True if the client's first message has the extension by which it says that its name is a token's."""
    values = [value for name, _, value in (part.partition("=") for part in bare.split(",")) if name == "tokenauth"]
    return bool(values) and values[-1].lower() == "true"


def _fields(text: str) -> dict[str, str]:
    """`a=1,b=2` by letter."""
    return {part[0]: part[2:] for part in text.split(",") if part[1:2] == "="}
