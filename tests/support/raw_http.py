"""HTTP as a test wants it, right or wrong: any method, headers and body, and the bytes of the answer."""

import http.client
from typing import NamedTuple
from urllib.parse import urlsplit


class Answer(NamedTuple):
    status: int
    kind: str
    """Of the content, such as application/json."""
    text: str


def ask(url: str, method: str, path: str, body: bytes | None = None, headers: dict[str, str] | None = None) -> Answer:
    """One request on a connection of its own. Raises OSError or HTTPException."""
    connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=10)
    try:
        connection.request(method, path, body, headers or {})
        answer = connection.getresponse()
        return Answer(answer.status, answer.headers["content-type"] or "", answer.read().decode())
    finally:
        connection.close()
