"""The inputs that the pipeline is measured on, made when a row asks for them: a generated log, its journals, a log of Kafka's
requests."""

import json
import random
import shutil
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

from scripts import make_connlog, make_journal

LOG, JOURNAL, TOKENS, REQUESTS = "log", "journal", "journal-with-tokens", "requests.log"
SEED, NATS, LEAKS = 7, 3, 2
EACH_S = 0.01
"""Between two requests of the log."""


class Inputs:
    """The inputs of one size in a folder, each made once; they are `connections`, or requests, large."""

    def __init__(self, folder: Path, connections: int, told: Callable[[str], None]) -> None:
        self._folder, self._connections, self._told = folder, connections, told
        folder.mkdir(parents=True)

    def path(self, kind: str) -> Path:
        """One of LOG, JOURNAL, TOKENS, REQUESTS."""
        target = self._folder / kind
        if not target.exists():
            self._told(f"making {kind} of {self._connections:,} ...")
            making = {LOG: self._log, REQUESTS: self._requests}
            making.get(kind, partial(self._journal, tokens=kind == TOKENS))(target)
        return target

    def remove(self) -> None:
        """All of it."""
        shutil.rmtree(self._folder, ignore_errors=True)

    def _log(self, target: Path) -> None:
        names, made = self._connlog()
        make_connlog.write(target, "parquet", made, names)

    def _journal(self, target: Path, *, tokens: bool) -> None:
        names, made = self._connlog()
        make_journal.make_journal(target, names, made, tokens=tokens)

    def _connlog(self) -> tuple[list[str], Iterator[make_connlog.Columns]]:
        """The address of each code, and the log's chunks."""
        ips = max(1, self._connections // 50)
        names = [make_connlog.address(code, ips, NATS) for code in range(ips + NATS + LEAKS)]
        return names, make_connlog.chunks(self._connections, SEED, ips=ips, nats=NATS, leaks=LEAKS, days=1.0)

    def _requests(self, target: Path) -> None:
        """Produce requests of 50 clients, as kafka.request.logger writes them."""
        chance = random.Random(SEED)
        with target.open("w") as file:
            for number in range(self._connections):
                file.write(
                    _request(number, f"client-{chance.randrange(50)}", int(chance.expovariate(1 / 20_000))) + "\n"
                )


def _request(number: int, client: str, size: int) -> str:
    """A line, by log4j's layout [date] LEVEL message (logger)."""
    at = datetime.fromtimestamp(make_connlog.START_S + number * EACH_S, UTC)
    header = {
        "requestApiKey": 0, "requestApiVersion": 12, "correlationId": number, "clientId": client, "requestApiKeyName": "PRODUCE",
    }  # fmt: skip
    partition = {"index": 0, "recordsSizeInBytes": size}
    request = {"acks": -1, "timeoutMs": 30_000, "topicData": [{"name": "t", "partitionData": [partition]}]}
    said = {
        "isForwarded": False, "requestHeader": header, "request": request, "response": {"responses": []},
        "connection": "10.0.0.9:9092-10.0.0.1:51234-0-7", "totalTimeMs": 2.0, "requestQueueTimeMs": 0.1, "localTimeMs": 0.5,
        "remoteTimeMs": 0.0, "throttleTimeMs": 0, "responseQueueTimeMs": 0.0, "sendTimeMs": 0.0,
        "securityProtocol": "PLAINTEXT", "principal": "User:ANONYMOUS", "listener": "PLAINTEXT",
    }  # fmt: skip
    return f"[{at:%Y-%m-%d %H:%M:%S},{at.microsecond // 1000:03}] DEBUG Completed request:{json.dumps(said)} (kafka.request.logger)"
