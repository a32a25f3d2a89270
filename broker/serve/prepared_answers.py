"""Answers kept as bytes: a request that comes again, equal but for its correlation id, gets the answer of the first one.

Clients ask ApiVersions, Metadata and FindCoordinator over and over, in frames that are equal byte for byte. Copying an
answer takes a tenth of the time of making it.

prepared_only_if_repeatable  An answer is kept only if it follows from the request, the listener and the version of the
    configuration alone (call.Route.prepared); it is found by the same request, of the same listener, under the same
    version. None is kept for listeners of which a client is told the address that it reached.
prepared_answers_are_bounded  At most MOST answers are kept, of at most MOST_BYTES with their request. When there are as
    many, all are dropped: a client that sends ever new requests makes the others' answers be made anew at times, and
    nothing else.
"""

from typing import Final, NamedTuple

from shards.config.image import ClusterImage

MOST: Final = 1024
MOST_BYTES: Final = 8192

# Of a request, the bytes 4 to 8 are its correlation id; so they are of a response, behind four bytes of length.
_ID, _BEHIND_ID = 4, 8


class ToldClient(NamedTuple):
    """The description of a client in a request. `software`: name and version, of ApiVersions alone."""

    client_id: str | None
    software: tuple[str, str] | None = None


class PreparedAnswers:
    """The answers of all listeners of a shard. A request is a frame without its length, an answer has its own."""

    def __init__(self, image: ClusterImage) -> None:
        self._image = image
        self._version = image.version
        self._answers: dict[tuple[str, bytes, bytes], tuple[bytes, bytes, ToldClient]] = {}

    def find(self, listener: str, request: bytes) -> tuple[bytes, ToldClient] | None:
        """(answer, what the request says of its client) of an equal request; None if there was none under this version."""
        if self._version != self._image.version:
            self._version = self._image.version
            self._answers.clear()
        if listener in self._image.auto_listeners:
            return None
        found = self._answers.get((listener, request[:_ID], request[_BEHIND_ID:]))
        if found is None:
            return None
        head, tail, asked = found
        return b"".join((head, request[_ID:_BEHIND_ID], tail)), asked

    def keep(self, listener: str, request: bytes, answer: bytes, asked: ToldClient) -> None:
        """An answer was just made, under the version of the image."""
        if (
            listener in self._image.auto_listeners
            or len(request) + len(answer) > MOST_BYTES
            or self._version != self._image.version
        ):
            return
        if len(self._answers) >= MOST:
            self._answers.clear()
        self._answers[listener, request[:_ID], request[_BEHIND_ID:]] = answer[:_ID], answer[_BEHIND_ID:], asked
