"""The part of a credential that a challenge of SCRAM shows: how its salt is made, and its iterations.

Tools differ in it: Kafka's make 25 or 26 characters and 4096 iterations, librdkafka's take any bytes and number. So that a
challenge does not tell an unknown user from the others, an unknown user has the shape of a credential that is kept: which
one follows from the user's name and the cluster's secret, and changes only when a shape comes or goes.
"""

import base64
import hmac
from collections.abc import Iterable
from typing import NamedTuple

from shards.config.image import ClusterImage
from shards.config.stored_records import UserRecord

_TEXT = frozenset(b"0123456789abcdefghijklmnopqrstuv")


class Shape(NamedTuple):
    """`text`: the salt is of the characters that Kafka's ScramFormatter makes one of."""

    text: bool
    salt_bytes: int
    iterations: int


class Salting(NamedTuple):
    """Salt and iteration count of a SCRAM challenge (RFC 5802)."""

    salt: bytes
    iterations: int


USUAL = Shape(True, 26, 4096)


class CredentialShapes:
    """The shapes of the users' credentials in the image, by mechanism; made anew for each version of it that is asked about."""

    def __init__(self, image: ClusterImage) -> None:
        self._image = image
        self._version = -1
        self._shapes: dict[str, tuple[Shape, ...]] = {}

    def of(self, mechanism: str) -> tuple[Shape, ...]:
        if self._version != self._image.version:
            self._version = self._image.version
            self._shapes = {}
        if mechanism not in self._shapes:
            self._shapes[mechanism] = shapes_of(self._image.users.values(), mechanism)
        return self._shapes[mechanism]


def shapes_of(users: Iterable[UserRecord], mechanism: str) -> tuple[Shape, ...]:
    """The shapes among the users' credentials for the mechanism, and the usual one if there is none."""
    found = set()
    for stored in (user[mechanism] for user in users if mechanism in user):
        salt = base64.b64decode(stored["salt"])
        found.add(Shape(_TEXT.issuperset(salt), len(salt), int(stored["iterations"])))
    return tuple(sorted(found)) or (USUAL,)


def made_up(secret: bytes, name: str, mechanism: str, shapes: Iterable[Shape]) -> Salting:
    """The salting of an unknown user: the same each time, in one of the shapes."""
    seed = f"{mechanism} {name}".encode()
    shape = max(shapes, key=lambda each: hmac.digest(secret, seed + repr(tuple(each)).encode(), "sha256"))
    random = b"".join(
        hmac.digest(secret, seed + number.to_bytes(2, "big"), "sha512") for number in range(shape.salt_bytes // 64 + 1)
    )
    salt = base64.b32hexencode(random).lower() if shape.text else random
    return Salting(salt[: shape.salt_bytes], shape.iterations)
