"""One conversation with a broker: what was asked, by a label, and the plain answers.

`ask` sends the API that the conversation is about, in its version, and keeps the answer. `quietly` asks whatever is needed for
that, of a user who may do everything, and keeps nothing but the ids it learned. Both ask again, as clients do, while a
coordinator loads or a transaction ends.
"""

from __future__ import annotations

import socket
import time
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple
from uuid import UUID

from batches import batch
from differential.plain import Plain, codes_in
from differential.requests import NotInVersion, request
from harness import until
from request_bytes import answer
from wired import KEYS

from broker.serve.call import Call
from broker.wire import wire

AGAIN = frozenset({5, 14, 15, 16, 51})
"""LEADER_NOT_AVAILABLE, COORDINATOR_LOAD_IN_PROGRESS, COORDINATOR_NOT_AVAILABLE, NOT_COORDINATOR, CONCURRENT_TRANSACTIONS."""
PATIENCE_S = 2.0
ANSWER_S = 15.0
CLOSED = "closed"


class Closed(Exception):
    """The broker ended the connection, or said nothing for ANSWER_S."""


class Topic(NamedTuple):
    name: str
    id: UUID


class Line:
    """A connection to `address`, "host:port", of `user`, who proves it by PLAIN; made when it is needed."""

    def __init__(self, address: str, user: str | None = None) -> None:
        self._address = address
        self._user = user
        self._sock: socket.socket | None = None

    def ask(self, api: str, version: int, fields: Mapping[str, Any]) -> Any:
        """Raises Closed, and NotInVersion."""
        asked = wire.encode_request(Call(KEYS[api], version, 7), request(api, version, fields), "differential")
        try:
            sock = self._connected()
            sock.sendall(asked)
            if api == "produce" and fields.get("acks") == 0:
                return None
            return wire.parse_response(answer(sock), KEYS[api], version).body
        except OSError:
            self.close()
            raise Closed from None

    def _connected(self) -> socket.socket:
        if self._sock is None:
            host, _, port = self._address.rpartition(":")
            self._sock = socket.create_connection((host, int(port)), timeout=ANSWER_S)
            if self._user is not None:
                self.ask("sasl_handshake", 1, {"mechanism": "PLAIN"})
                token = f"\0{self._user}\0{self._user}-secret".encode()
                assert self.ask("sasl_authenticate", 1, {"auth_bytes": token}).error_code == 0
        return self._sock

    def close(self) -> None:
        if self._sock is not None:
            self._sock.close()
            self._sock = None


class Talk:
    """`said`: [label, plain answer] each; the answer is CLOSED if there was none."""

    def __init__(self, name: str, api: str, version: int, *, admin: Line, asker: Line) -> None:
        self.name, self.api, self.version = name, api, version
        self.said: list[list[Any]] = []
        self._admin, self._asker = admin, asker
        self._plain = Plain()

    def named(self, word: str) -> str:
        """A name of this conversation's own: for a topic, a group, a transactional id."""
        return f"{self.name.replace(' ', '-')}-{word}"

    def ask(self, label: str, *, api: str = "", version: int | None = None, **fields: Any) -> Any:
        """The answer; None if there is none: the broker ended the connection, the version can't say what is asked, acks are 0."""
        assert label not in [each for each, _ in self.said], f"{self.name}: {label} twice"
        at = self.version if version is None else version
        try:
            found, plain = self._answer(self._asker, api or self.api, at, fields)
        except NotInVersion:
            return None
        except Closed:
            self.said.append([label, CLOSED])
            return None
        self.said.append([label, plain])
        return found

    def quietly(self, api: str, version: int, **fields: Any) -> Any:
        return self._answer(self._admin, api, version, fields)[0]

    def aside(self, api: str, version: int, **fields: Any) -> Any:
        """Of the user whose conversation it is; keeps nothing, either."""
        return self._answer(self._asker, api, version, fields)[0]

    def until(self, condition: Callable[[], Any], what: str) -> Any:
        return until(condition, what=f"{self.name}: {what}")

    def _answer(self, line: Line, api: str, version: int, fields: Mapping[str, Any]) -> tuple[Any, Any]:
        self._plain.chose(fields)
        deadline = time.monotonic() + PATIENCE_S
        while True:
            found = line.ask(api, version, fields)
            if found is None:
                return None, None
            plain = self._plain.of(found)
            if AGAIN.isdisjoint(codes_in(plain)) or time.monotonic() > deadline:
                return found, plain
            time.sleep(0.02)

    # ---- what many conversations begin with

    def topic(self, word: str = "t", partitions: int = 2, **configs: str) -> Topic:
        """A new topic that can be written to; `configs` with _ for the dots."""
        name = self.named(word)
        wanted = [{"name": key.replace("_", "."), "value": value} for key, value in configs.items()]
        created = self.quietly(
            "create_topics", 7, timeout=20_000,
            topics=[{"name": name, "num_partitions": partitions, "replication_factor": 1, "configs": wanted}],
        )  # fmt: skip
        assert created.topics[0].error_code == 0, created
        self.until(lambda: self._is_there(name, partitions), f"{name} is there")
        return Topic(name, created.topics[0].topic_id)

    def internal_topic(self, name: str) -> Topic:
        found = self.quietly("metadata", 12, topics=[{"name": name}], allow_auto_topic_creation=False)
        return Topic(name, found.topics[0].topic_id)

    def _is_there(self, name: str, partitions: int) -> bool:
        asked = [{"partition_index": number, "timestamp": -1} for number in range(partitions)]
        found = self.quietly("list_offsets", 7, replica_id=-1, topics=[{"name": name, "partitions": asked}])
        return not any(codes_in(self._plain.of(found)))

    def produce(
        self, topic: Topic, *values: bytes, partition: int = 0, records: bytes | None = None, **more: Any
    ) -> None:
        """A batch of values, with a timestamp of 2023 each."""
        fields = {"index": partition, "records": batch(*values) if records is None else records}
        data = [{"name": topic.name, "partition_data": [fields]}]
        found = self.quietly("produce", 9, acks=-1, timeout=20_000, topic_data=data, **more)
        assert found.responses[0].partition_responses[0].error_code == 0, found
