"""The delegation tokens of the image with what proves them: a token's HMAC is of its id, under `delegation.token.secret.key`.

Only the secret and the id are needed for an HMAC, so no store, journal or message has one; and tokens that were made under
another secret are there, but who has their HMACs can do nothing with them.

Sources: DelegationTokenManager, DelegationTokenCache (Apache Kafka).
"""

from __future__ import annotations

import base64
import hmac
from collections.abc import Iterator

from broker.serve.sasl import TokenLogin
from shards.config.delegation_tokens import Token
from shards.config.image import ClusterImage


class DelegationTokenCache:
    """The delegation tokens that one shard knows. `secret` empty: there are none, whatever is stored."""

    def __init__(self, image: ClusterImage, secret: bytes) -> None:
        self._image = image
        self._secret = secret
        self._version = -1
        self._ids: dict[bytes, str] = {}  # by HMAC
        self._hmacs: dict[str, bytes] = {}

    @property
    def is_enabled(self) -> bool:
        return bool(self._secret)

    def login(self, token_id: str) -> TokenLogin | None:
        """The token for a client that logs in by it; also one that has expired and is not deleted yet, as in Kafka."""
        record = self._image.tokens.get(token_id) if self.is_enabled else None
        if record is None:
            return None
        token = Token.parse(record)
        return TokenLogin(token.owner[1], base64.b64encode(self.hmac_of(token_id)), token.expires_ms)

    def hmac_of(self, token_id: str) -> bytes:
        return hmac.digest(self._secret, token_id.encode(), "sha512")

    def tokens(self) -> Iterator[tuple[str, Token, bytes]]:
        """(id, token, HMAC) of each there is now; made as they are asked for."""
        for token_id, record in [*self._image.tokens.items()]:
            yield token_id, Token.parse(record), self.hmac_of(token_id)

    def id_of(self, token_hmac: bytes) -> str | None:
        """The id of the token with this HMAC."""
        self._follow()
        return self._ids.get(token_hmac)

    def _follow(self) -> None:
        """Knows the HMACs of exactly the image's tokens. That they differ is seen by the version; each is made once."""
        if self._version == self._image.version:
            return
        self._version = self._image.version
        for token_id in self._hmacs.keys() - self._image.tokens.keys():
            del self._ids[self._hmacs.pop(token_id)]
        for token_id in self._image.tokens.keys() - self._hmacs.keys():
            found = self._hmacs[token_id] = self.hmac_of(token_id)
            self._ids[found] = token_id
