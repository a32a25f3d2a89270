"""Sends the frames of a seed to a running cluster, and watches that nothing comes to harm.

fuzzing_ends_no_process  No process of the cluster ends, and none says that it found a mistake of its own.
fuzzed_requests_are_answered  A request is answered within ANSWER_S, or its connection is closed; but for those that may
    wait.
bystanders_are_answered  A bystander on every shard is answered within BYSTANDER_S all the time.
fuzzed_memory_is_bounded  No shard grows above MOST_MB.
fuzzed_answers_in_order  Answers come in the order of their requests, also when several are sent before the first is
    answered.
"""

from __future__ import annotations

import http.client
import json
import random
import socket
import threading
import time
import urllib.parse
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from contextlib import contextmanager
from pathlib import Path

from fuzz import pipeline
from fuzz.frames import Frame, Frames
from fuzz.values import CONFIG_VALUES, CONFIGS, ODD, QUOTA_KEYS
from harness import Cluster

from broker.wire import apis, wire

ANSWER_S = 10.0
BYSTANDER_S = 2.0
MOST_MB = 300
_PER_CONNECTION = 30
_SMALL_BYTES = 4 << 10
_PIPELINED = (20, 200)
_PIPELINES, _LEAVES = 0.2, 0.2  # how many of the connections, and of these
_ADMIN_EVERY = 200
_LOOK_EVERY_S = 0.5
_TELL_EVERY = 5000
CLIENTS = 8
_KEPT = 300
_API_VERSIONS = bytes.fromhex("0000000e 0012 0000 00000001 0004 74657374".replace(" ", ""))


class Harm(AssertionError):
    """An invariant does not hold; `str()` says which, and where in the seed."""


class Fuzzer:
    """`run(frames)` sends so many; `told(text)` gets progress."""

    def __init__(self, cluster: Cluster, seed: int) -> None:
        self.cluster = cluster
        self.frames = Frames(seed)
        self.sent: deque[Frame] = deque(maxlen=_KEPT)
        self.peak_mb = 0.0
        self.worst_s = 0.0
        self._admin = random.Random(f"admin/{seed}")
        self._pids = cluster.processes()
        self._ends = threading.Event()
        self._bystander_failed: str | None = None

    def run(self, count: int, *, told: Callable[[str], None] | None = None) -> None:
        """Raises Harm."""
        bystander = threading.Thread(target=self._ask_all_the_time)
        bystander.start()
        began_s = time.monotonic()
        try:
            with ThreadPoolExecutor(CLIENTS) as pool, self._ending():
                clients = [pool.submit(self._client, count) for _ in range(CLIENTS)]
                looked = 0
                while not all(client.done() for client in clients):
                    wait(clients, timeout=_LOOK_EVERY_S, return_when=FIRST_EXCEPTION)
                    for client in clients:
                        if client.done():
                            client.result()
                    self._look()
                    if told is not None and self.frames.number // _TELL_EVERY > looked:
                        looked = self.frames.number // _TELL_EVERY
                        rate = self.frames.number / (time.monotonic() - began_s)
                        told(f"{self.frames.number} frames, {rate:.0f}/s, a shard's peak {self.peak_mb:.0f} MB, "
                             f"a bystander's longest wait {self.worst_s * 1000:.0f} ms")  # fmt: skip
        finally:
            bystander.join()
        self._look()

    @contextmanager
    def _ending(self) -> Iterator[None]:
        """Ends the clients and the bystander with its block, however that ends: the last frames are those of the harm."""
        try:
            yield
        finally:
            self._ends.set()

    def _client(self, count: int) -> None:
        try:
            while self.frames.number < count and not self._ends.is_set():
                self._one_connection()
        except Harm:
            self._ends.set()
            raise

    def _one_connection(self) -> None:
        """Some frames on one connection, often several before the first answer; and some admin requests."""
        if self._admin.random() < _PER_CONNECTION / _ADMIN_EVERY:
            self._ask_admin()
        with socket.create_connection(self.cluster.address, timeout=ANSWER_S) as sock:
            if self._admin.random() < _PIPELINES:
                self._pipeline(sock)
                return
            left = _PER_CONNECTION
            while left > 0:
                some = [self.frames.next() for _ in range(self._admin.choice((1, 1, 1, 4, 20)))]
                left -= len(some)
                self.sent.extend(some)
                try:
                    sock.sendall(b"".join(frame.data for frame in some))
                    for frame in some:
                        if frame.silent:
                            continue
                        if not frame.answered:  # or not soon: the client leaves, at once or later
                            if self._admin.random() < 0.1:
                                sock.settimeout(0.03)
                                sock.recv(1)
                            return
                        self._read(sock, frame)
                except (ConnectionError, EOFError):
                    return
                except TimeoutError:
                    if not frame.answered:
                        return
                    api = apis.api_name(frame.api_key)
                    raise self._harm(f"{api} {frame.version} was not answered in {ANSWER_S} s") from None

    def _pipeline(self, sock: socket.socket) -> None:
        """One small request, many times on one connection in as few writes as its socket takes."""
        frame = self.frames.next()
        while not frame.answered or len(frame.data) > _SMALL_BYTES:
            frame = self.frames.next()
        ids = range(1, self._admin.choice(_PIPELINED) + 1)
        self.sent.append(frame)
        copies = b"".join(frame.data[:8] + number.to_bytes(4, "big") + frame.data[12:] for number in ids)
        leaves = self._admin.random() < _LEAVES
        awaited = iter(ids)
        try:
            for answer in pipeline.answers(sock, copies, within_s=ANSWER_S, leaves=leaves):
                number = next(awaited, None)
                self._in_order(frame, number, answer)
                if number == ids[-1] and not leaves:
                    return
        except TimeoutError:
            missing = next(awaited, None)
            raise self._harm(f"{apis.api_name(frame.api_key)} {frame.version}, {len(ids)} times: the answer to "
                             f"{missing} did not come in {ANSWER_S} s") from None  # fmt: skip

    def _in_order(self, frame: Frame, number: int | None, answer: bytes) -> None:
        """F5"""
        answered = int.from_bytes(answer[:4], "big")
        if answered != number:
            api = apis.api_name(frame.api_key)
            raise self._harm(f"{api} {frame.version}: an answer to {answered} came where {number}'s was due")

    def _read(self, sock: socket.socket, frame: Frame) -> None:
        answer = _exactly(sock, int.from_bytes(_exactly(sock, 4), "big"))
        self._in_order(frame, frame.number & 0x7FFFFFFF, answer)
        try:
            response = wire.parse_response(answer, frame.api_key, frame.version).body
        except wire.BadFrame as fault:
            if frame.api_key == apis.API_VERSIONS:
                return  # answered in version 0 where a version is not known
            raise self._harm(
                f"{apis.api_name(frame.api_key)} {frame.version}: the answer can't be read: {fault}"
            ) from None
        self.frames.learn(response)

    def _ask_admin(self) -> None:
        """A change that may be refused, and never anything but JSON."""
        draw = self._admin
        name, text = draw.choice((*CONFIGS, *ODD[:5])), draw.choice((*CONFIG_VALUES, 5, None, [], {"a": 1}, 1e400))
        path, body = draw.choice((
            ("/v1/cluster_config", {"upsert": {name: text}, "remove": []}),
            ("/v1/cluster_config", {"upsert": {}, "remove": [name]}),
            ("/v1/cluster_config", draw.choice(([], None, {"upsert": 5}, {"upsert": {"a": [[]]}}))),
            ("/v1/quotas", {"entity": {"user": draw.choice(("fuzz-1", ["x"], 5, *ODD[:4]))},
                            "quotas": {draw.choice(QUOTA_KEYS): text}}),
            ("/v1/users", {"name": draw.choice(ODD[:6]), "password": "x", "mechanism": draw.choice(("SCRAM-SHA-256", 5))}),
        ))  # fmt: skip
        url = urllib.parse.urlsplit(self.cluster.admin)
        connection = http.client.HTTPConnection(url.hostname or "", url.port, timeout=30)
        try:
            connection.request("PUT", path, json.dumps(body).encode(), {"Content-Type": "application/json"})
            answer = connection.getresponse()
            content = answer.read()
            json.loads(content)
        except (OSError, http.client.HTTPException, ValueError) as fault:
            raise self._harm(f"PUT {path} {body}: {fault!r}") from None
        finally:
            connection.close()
        if answer.status >= 500:
            raise self._harm(f"PUT {path} {body}: {answer.status} {content[:500]!r}")

    # --- watching ----------------------------------------------------------------------------------------------

    def _look(self) -> None:
        if self._bystander_failed:
            raise self._harm(f"{self._bystander_failed}; said last: {self.cluster.errors.read_text()[-2000:]}")
        if self.cluster.processes() != self._pids:
            raise self._harm(f"a process has ended: {self.cluster.errors.read_text()[-3000:]}")
        said = self.cluster.errors.read_text()
        at = max(said.find("bug in"), said.find("Traceback"))
        if at >= 0:
            raise self._harm(f"a mistake: {said[max(0, at - 500) : at + 3000]}")
        for pid in self._pids:
            resident = int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * 4096 / 1e6
            self.peak_mb = max(self.peak_mb, resident)
        if self.peak_mb > MOST_MB:
            raise self._harm(f"a process has {self.peak_mb:.0f} MB")

    def _ask_all_the_time(self) -> None:
        try:
            socks = [socket.create_connection(self.cluster.address, timeout=60) for _ in range(8)]
            while not self._ends.wait(0.01):
                for sock in socks:
                    began_s = time.monotonic()
                    sock.sendall(_API_VERSIONS)
                    _exactly(sock, int.from_bytes(_exactly(sock, 4), "big"))
                    self.worst_s = max(self.worst_s, time.monotonic() - began_s)
                    if self.worst_s > BYSTANDER_S:
                        self._bystander_failed = f"a bystander waited {self.worst_s:.1f} s"
            for sock in socks:
                sock.close()
        except (OSError, EOFError) as fault:
            self._bystander_failed = f"a bystander was not served: {fault!r}"

    def _harm(self, what: str) -> Harm:
        return Harm(f"seed {self.frames.seed}, frame {self.frames.number}: {what}")


def _exactly(sock: socket.socket, size: int) -> bytes:
    data = bytearray()
    while len(data) < size:
        more = sock.recv(min(size - len(data), 1 << 20))
        if not more:
            raise EOFError("closed")
        data += more
    return bytes(data)
