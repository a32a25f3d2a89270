"""A small client over raw sockets that behaves, but for the one thing that its first argument names.

It produces numbered records (two requests on the way at a time), is the member of a group, fetches, creates topics, and
pushes telemetry: each on a connection of its own, with ApiVersions first. `python client.py good`, or one of GOOD and BAD;
$TURNSTILE_BOOTSTRAP.
"""

from __future__ import annotations

import errno
import os
import random
import signal
import socket
import struct
import sys
import threading
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[3] / "support"))

from batches import batch
from request_bytes import THROTTLING_QUOTA_EXCEEDED, create_topics, created, produce, produced, request, string

BAD = {
    "ignores-throttle": "kip219",
    "replaces-deadline": "deadline",
    "reconnects-when-throttled": "not-failure",
    "no-backoff": "backoff",
    "spins": "backoff",
    "no-jitter": "herd",
    "leaks": "footprint",
    "rejoins": "groups",
    "retries-mutation": "kip599",
    "pushes-early": "kip714",
    "doubles": "delivery",
    "gives-up": "recovery",
    "ignores-sigterm": "shutdown",
    "waits-for-produce-only": "kip219",
    "waits-for-data-only": "kip219",
    "caps-throttle": "kip219",
    "spins-when-reset": "backoff",
    "jitters-once": "herd",
    "leaks-on-reconnect": "footprint",
    "pushes-after-error": "kip714",
}
"""Each way to misbehave, and the check that has to fail; the last seven do it in some cases only."""
GOOD = ("good", "logs-in")
USER, PASSWORD = "alice", "secret"
"""As whom the second logs in."""
CYCLE_S = 0.02
UNKNOWN_SUBSCRIPTION_ID = 117
TIMEOUT_S = 6.0
JOIN_S = 8.0
FIRST_S, MOST_S = 0.05, 1.0
MOST_WAITED_MS = 260
HOST, _, PORT = os.environ["TURNSTILE_BOOTSTRAP"].rpartition(":")
NAME = f"client-{os.getpid()}"
bad = sys.argv[1]
stopping = threading.Event()
leaked: list[socket.socket] = []


class Lost(Exception):
    """The connection has ended, or nothing was answered."""


class Link:
    """One connection. `may_send_s`: when its throttle time is over."""

    def __init__(self, role: str) -> None:
        self.role = role
        self.may_send_s = 0.0
        self.takes_it_for_failure = False
        try:
            self.sock = socket.create_connection((HOST, int(PORT)), timeout=TIMEOUT_S)
            self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self.sock.sendall(request(18, 0, NAME, b""))
            self.answer()
            if bad == "logs-in":
                self.log_in()
        except OSError as fault:
            raise Lost from fault

    def log_in(self) -> None:
        """SaslHandshake 1, SaslAuthenticate 0, by PLAIN."""
        token = f"\0{USER}\0{PASSWORD}".encode()
        for frame in (
            request(17, 1, NAME, string("PLAIN")),
            request(36, 0, NAME, struct.pack(">i", len(token)) + token),
        ):
            self.sock.sendall(frame)
            if self.answer()[4:6] != b"\0\0":
                self.sock.close()
                raise Lost

    def send(self, frame: bytes) -> None:
        ignores = self.role in {
            "ignores-throttle": ("producer", "member", "fetcher", "reporter"),
            "waits-for-produce-only": ("member", "fetcher"),
            "waits-for-data-only": ("member",),
        }.get(bad, ())
        if not ignores:
            stopping.wait(max(self.may_send_s - time.monotonic(), 0))
        try:
            self.sock.sendall(frame)
        except OSError as fault:
            raise Lost from fault

    def answer(self, timeout_s: float = TIMEOUT_S) -> bytes:
        """Waits for longer while the connection is muted: a throttled request has not failed."""
        self.sock.settimeout(timeout_s + max(self.may_send_s - time.monotonic(), 0))
        try:
            size = int.from_bytes(self._exactly(4), "big")
            return self._exactly(size)
        except OSError as fault:
            self.sock.close()
            raise Lost from fault

    def _exactly(self, size: int) -> bytes:
        data = b""
        while len(data) < size:
            more = self.sock.recv(size - len(data))
            if not more:
                raise ConnectionResetError
            data += more
        return data

    def told(self, throttle_ms: int) -> None:
        if bad == "caps-throttle" and self.role != "admin":
            throttle_ms = min(throttle_ms, MOST_WAITED_MS)
        until_s = time.monotonic() + throttle_ms / 1000
        if bad == "replaces-deadline":
            self.may_send_s = until_s if throttle_ms else self.may_send_s
        else:
            self.may_send_s = max(self.may_send_s, until_s)
        if throttle_ms and bad == "leaks" and self.role == "producer" and len(leaked) < 8:
            leaked.append(socket.create_connection((HOST, int(PORT)), timeout=TIMEOUT_S))
        self.takes_it_for_failure |= (
            throttle_ms > 200 and bad == "reconnects-when-throttled" and self.role == "producer"
        )

    def close(self) -> None:
        self.sock.close()


class Role:
    """Connects, works, and connects again, later and later, until some work is done."""

    name = ""
    cycle_s = CYCLE_S

    def run(self) -> None:
        pause_s, failures, connected, was_reset = FIRST_S, 0, 0, False
        while not stopping.is_set():
            link = None
            try:
                link = Link(self.name)
                connected += 1
                if bad == "leaks-on-reconnect" and self.name == "producer" and connected > 1:
                    leaked.append(socket.create_connection((HOST, int(PORT)), timeout=TIMEOUT_S))
                self.begin(link)
                while not stopping.is_set():
                    self.work(link)
                    pause_s, failures = FIRST_S, 0
                    if link.takes_it_for_failure:
                        break
                    stopping.wait(self.cycle_s)
            except Lost as lost:
                failures += 1
                was_reset = getattr(lost.__cause__, "errno", None) == errno.ECONNRESET
            if link is not None:
                link.close()
            if bad == "gives-up" and failures > 2:
                stopping.wait()
            self.wait(pause_s, was_reset=was_reset)
            pause_s = min(2 * pause_s, MOST_S)

    def wait(self, pause_s: float, *, was_reset: bool) -> None:
        if bad == "no-backoff":
            return
        is_fixed = bad == "no-jitter" or (bad == "jitters-once" and pause_s > FIRST_S)
        jitter = 1.0 if is_fixed else random.uniform(0.8, 1.2)
        until_s = time.monotonic() + pause_s * jitter
        if bad == "spins" or (bad == "spins-when-reset" and was_reset):
            while time.monotonic() < until_s and not stopping.is_set():
                pass
        stopping.wait(max(until_s - time.monotonic(), 0))

    def begin(self, link: Link) -> None:
        """What comes first on each connection."""

    def work(self, link: Link) -> None:
        raise NotImplementedError


class Producer(Role):
    name = "producer"

    def __init__(self) -> None:
        self.number = 0

    def work(self, link: Link) -> None:
        frames = []
        for _ in range(2):
            self.number += 1
            frames.append(self.frame())
        for frame in frames:
            link.send(frame)
        again = False
        for _ in frames:
            told = produced(link.answer())
            again = again or told.throttle_ms > 0
            link.told(told.throttle_ms)
        if again and bad == "doubles":
            link.send(frames[1])
            link.told(produced(link.answer()).throttle_ms)

    def frame(self) -> bytes:
        stamp = [int(time.time() * 1000)]
        return produce(NAME, "orders", 0, batch(f"{NAME}:{self.number}".encode(), timestamps=stamp))


class Member(Role):
    """Of a group."""

    name = "member"
    cycle_s = 2 * CYCLE_S  # a heartbeat so soon after a throttled one was not on its way before: AT_ONCE_MS
    member = ""

    def __init__(self) -> None:
        self.takes_it_for_eviction = threading.Event()

    def begin(self, link: Link) -> None:
        if not self.member:
            self.join(link)

    def join(self, link: Link) -> None:
        body = string("group-" + NAME) + struct.pack(">ii", 10_000, 10_000) + string(self.member) + string("consumer")
        body += struct.pack(">i", 1) + string("range") + struct.pack(">i", 0)
        link.send(request(11, 2, NAME, body))
        answer = link.answer(JOIN_S)
        link.told(int.from_bytes(answer[4:8], "big"))
        if answer[8:10] != b"\0\0":
            raise Lost(answer[8:10])
        self.generation = int.from_bytes(answer[10:14], "big")
        at = 14
        self.member = ""
        for _ in range(3):  # protocol, leader, member id
            size = int.from_bytes(answer[at : at + 2], "big")
            self.member = answer[at + 2 : at + 2 + size].decode()
            at += 2 + size
        body = string("group-" + NAME) + struct.pack(">i", self.generation) + string(self.member) + struct.pack(">i", 0)
        link.send(request(14, 1, NAME, body))
        link.told(int.from_bytes(link.answer()[4:8], "big"))

    def work(self, link: Link) -> None:
        body = string("group-" + NAME) + struct.pack(">i", self.generation) + string(self.member)
        link.send(request(12, 1, NAME, body))
        answer = link.answer()
        link.told(int.from_bytes(answer[4:8], "big"))
        if answer[8:10] != b"\0\0":
            self.join(link)
        if self.takes_it_for_eviction.is_set():
            self.takes_it_for_eviction.clear()
            self.join(link)


class Fetcher(Role):
    """Of a member. Beside its heartbeats: none of them waits until a throttled Fetch may be sent."""

    name = "fetcher"

    def __init__(self, member: Member) -> None:
        self.member = member

    def work(self, link: Link) -> None:
        where = struct.pack(">iqi", 0, 0, 1000)
        body = (
            struct.pack(">iiiib", -1, 10, 1, 1000, 0)
            + struct.pack(">i", 1)
            + string("orders")
            + struct.pack(">i", 1)
            + where
        )
        link.send(request(1, 4, NAME, body))
        throttle_ms = int.from_bytes(link.answer()[4:8], "big")
        link.told(throttle_ms)
        if throttle_ms and bad == "rejoins":
            self.member.takes_it_for_eviction.set()


class Admin(Role):
    name = "admin"

    def __init__(self) -> None:
        self.number = 0

    def work(self, link: Link) -> None:
        link.send(create_topics(NAME, {f"{NAME}-{self.number}": 1}, strict=True))
        told = created(link.answer(), strict=True)
        if THROTTLING_QUOTA_EXCEEDED not in told.errors.values():
            self.number += 1
        elif bad == "retries-mutation":
            return
        link.told(told.throttle_ms)
        stopping.wait(5 * CYCLE_S)


class Reporter(Role):
    """Pushes telemetry as often as it is told."""

    name = "reporter"
    instance = bytes(16)

    def begin(self, link: Link) -> None:
        self.ask(link)

    def ask(self, link: Link) -> None:
        link.send(request(71, 0, NAME, b"\0" + self.instance + b"\0"))
        answer = link.answer()
        link.told(int.from_bytes(answer[5:9], "big"))
        if answer[9:11] != b"\0\0":
            stopping.wait(self.interval_s)
            return
        self.instance, self.subscription = answer[11:27], answer[27:31]
        codecs = answer[31] - 1
        self.interval_s = int.from_bytes(answer[32 + codecs : 36 + codecs], "big") / 1000
        self.is_asked = answer[41 + codecs] > 1

    def work(self, link: Link) -> None:
        stopping.wait(self.interval_s / 2 if bad == "pushes-early" and self.is_asked else self.interval_s)
        if not self.is_asked:
            self.ask(link)
            return
        self.push(link)

    def push(self, link: Link) -> None:
        link.send(request(72, 0, NAME, b"\0" + self.instance + self.subscription + b"\0\0" + b"\x01" + b"\0"))
        answer = link.answer()
        link.told(int.from_bytes(answer[5:9], "big"))
        error = int.from_bytes(answer[9:11], "big")
        if error == THROTTLING_QUOTA_EXCEEDED and bad == "pushes-after-error":
            self.push(link)
        elif error == UNKNOWN_SUBSCRIPTION_ID:
            self.ask(link)


def main() -> None:
    if bad not in (*GOOD, *BAD):
        sys.exit(f"{bad} is not one of {', '.join((*GOOD, *BAD))}")
    random.seed()
    signal.signal(signal.SIGTERM, lambda *_: None if bad == "ignores-sigterm" else stopping.set())
    member = Member()
    every = (Producer(), member, Fetcher(member), Admin(), Reporter())
    roles = [role for role in every if role.name in (sys.argv[2:] or role.name)]
    threads = [threading.Thread(target=role.run, daemon=True) for role in roles]
    for thread in threads:
        thread.start()
    while not stopping.is_set():
        stopping.wait(0.1)
    for thread in threads:
        thread.join(1)


main()
