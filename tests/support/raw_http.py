"""HTTP as a test wants it, right or wrong: any method, headers and body, and the bytes of the answer."""

import http.client
from collections.abc import Mapping
from typing import NamedTuple
from urllib.parse import urlsplit


class Answer(NamedTuple):
    status: int
    kind: str
    """Of the content, such as application/json."""
    text: str
    headers: Mapping[str, str]
    """By name in small letters."""


class RawAnswer(NamedTuple):
    status: int
    kind: str
    content: bytes


def ask_bytes(url: str, method: str, path: str, body: bytes, headers: dict[str, str]) -> RawAnswer:
    """As `ask`, of an answer that is no text."""
    connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=10)
    try:
        connection.request(method, path, body, headers)
        answer = connection.getresponse()
        return RawAnswer(answer.status, answer.getheader("content-type", ""), answer.read())
    finally:
        connection.close()


def ask(url: str, method: str, path: str, body: bytes | None = None, headers: dict[str, str] | None = None) -> Answer:
    """One request on a connection of its own. Raises OSError or HTTPException."""
    connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=10)
    try:
        connection.request(method, path, body, headers or {})
        answer = connection.getresponse()
        found = {name.lower(): value for name, value in answer.getheaders()}
        return Answer(answer.status, found.get("content-type", ""), answer.read().decode(), found)
    finally:
        connection.close()
