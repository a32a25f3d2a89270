"""The client's side of SCRAM (RFC 5802), as Java's: a user with a password, or a delegation token with its HMAC (KIP-48)."""

from __future__ import annotations

import base64
import hashlib
import hmac

from wired import Wired

DIGESTS = {"SCRAM-SHA-256": "sha256", "SCRAM-SHA-512": "sha512"}
TOKEN = "tokenauth=true"


class ScramClient:
    """`extensions` follow the nonce in its first message."""

    def __init__(self, mechanism: str, name: str, password: str, extensions: str = "") -> None:
        self._digest = DIGESTS[mechanism]
        self._password = password.encode()
        self._bare = ",".join(part for part in (f"n={name}", "r=clientnonce", extensions) if part)
        self._expected = b""

    def first(self) -> bytes:
        return f"n,,{self._bare}".encode()

    def final(self, challenge: bytes) -> bytes:
        """The proof that follows from the server's first message."""
        digest = self._digest
        fields = dict(part.split("=", 1) for part in challenge.decode().split(","))
        salted = hashlib.pbkdf2_hmac(digest, self._password, base64.b64decode(fields["s"]), int(fields["i"]))
        client_key = hmac.digest(salted, b"Client Key", digest)
        without_proof = f"c=biws,r={fields['r']}"
        said = f"{self._bare},{challenge.decode()},{without_proof}".encode()
        signature = hmac.digest(hashlib.new(digest, client_key).digest(), said, digest)
        proof = bytes(a ^ b for a, b in zip(client_key, signature, strict=True))
        self._expected = hmac.digest(hmac.digest(salted, b"Server Key", digest), said, digest)
        return f"{without_proof},p={base64.b64encode(proof).decode()}".encode()

    def check(self, answer: bytes) -> None:
        """Asserts that the server knows the credential, too."""
        assert answer == b"v=" + base64.b64encode(self._expected)


def login(connection: Wired, mechanism: str, client: ScramClient) -> tuple[int, int]:
    """(error code, session lifetime in ms) of an exchange over a connection that has not been authenticated, or proves again."""
    shaken = connection.ask("sasl_handshake", 1, mechanism=mechanism)
    assert shaken.error_code == 0, shaken
    challenge = connection.ask("sasl_authenticate", 1, auth_bytes=client.first())
    if challenge.error_code:
        return challenge.error_code, 0
    answer = connection.ask("sasl_authenticate", 1, auth_bytes=client.final(bytes(challenge.auth_bytes)))
    if not answer.error_code:
        client.check(bytes(answer.auth_bytes))
    return answer.error_code, round(answer.session_lifetime.total_seconds() * 1000)
