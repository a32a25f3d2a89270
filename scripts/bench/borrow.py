"""Borrowing tokens between two processes, over the mesh that the broker's shards use.

`python -m scripts.bench.borrow home SOCKET` is the home of every address, `... holder SOCKET IDLE BUSY` takes a token
of one address after the other, each seen for the first time, so that each takes one borrow: first IDLE of them, one at
a time, then BUSY of them, IN_FLIGHT at a time. The holder prints what it measured, as JSON. All tokens are kept, so
what both processes grew by is what an address costs where it is at home, and where its tokens are held. At last the cap of
all these addresses is raised, and then cut below what is cached of each; both changes are timed until they are done in both
processes.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from operator import attrgetter
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple, NoReturn

import trio

from scripts.bench.hop import hop_us
from scripts.bench.rounds import Quartiles, quartiles, take_rounds
from scripts.bench.table import Row
from shards.limits.caps import CapRule
from shards.limits.connection_limits import ConnectionLimits
from shards.loop.deferred import Deferred
from shards.loop.poller import Poller
from shards.mesh.mesh import Mesh
from shards.mesh.peer import CONTROL, DATA, Hello
from shards.ownership import home_of
from shards.tokens.tokens import Tokens

ROOT = Path(__file__).resolve().parents[2]
HOME, HOLDER = 0, 1
IN_FLIGHT = 512
RAISE, CUT = 1, 2
"""The versions that raise and cut the cap of addresses."""


@contextmanager
def home_process() -> Iterator[tuple[int, list[str]]]:
    """The process that is the home of every address, and the command that starts a holder beside it."""
    with TemporaryDirectory(prefix="turnstile-bench-") as folder:
        command, path = [sys.executable, "-m", "scripts.bench.borrow"], f"{folder}/home.sock"
        process = subprocess.Popen(
            [*command, "home", path], cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        assert process.stdin is not None and process.stdout is not None
        try:
            process.stdout.readline()
            yield process.pid, [*command, "holder", path]
        finally:
            process.stdin.close()
            process.wait(timeout=20)
            process.stdout.close()


class Borrowed(NamedTuple):
    """The figures of one run of both processes. `change`: a cap is raised; `cut`: it is cut; each with its longest pass."""

    p50_us: float
    p99_us: float
    bare_us: float
    per_s: float
    home_bytes: float
    holder_bytes: float
    change_ms: float
    change_pass_ms: float
    cut_ms: float
    cut_pass_ms: float

    @property
    def beside_bare(self) -> float:
        return self.p50_us / self.bare_us


def rows(idle: int, busy: int, rounds: int = 1) -> Iterator[Row]:
    """Of processes that are new in each round, as a million addresses stay in their memory."""
    found = take_rounds(rounds, lambda _: _round(idle, busy), (attrgetter("beside_bare"), attrgetter("per_s")))

    def of(name: str) -> Quartiles:
        return quartiles(map(attrgetter(name), found))

    p50, per_s = of("p50_us"), of("per_s")
    yield Row("borrow across shards, idle", f"p50 {p50.text('.0f', ' us')}, p99 {of('p99_us').text('.0f', ' us')}",
              f"bare hop there and back {of('bare_us').median:.0f} us: {of('beside_bare').text('.2f', ' x')}",
              "p50 60 us", p50.median <= 60)  # fmt: skip
    yield Row("borrow across shards, busy", per_s.text(",.0f", "/s"), "", "150,000/s", per_s.median >= 150_000)
    for where in ("home", "holder"):
        size = of(f"{where}_bytes")
        yield Row(f"memory per tracked IP at its {where}, {busy:,} of them", size.text(".0f", " B"), "", "200 B",
                  size.median <= 200)  # fmt: skip
    for what in ("change", "cut"):
        took, longest = of(f"{what}_ms"), of(f"{what}_pass_ms")
        yield Row(f"{what} of the cap of {busy:,} tracked IPs, until it is done",
                  f"{took.text('.1f', ' ms')}, longest pass {longest.text('.1f', ' ms')}", "",
                  "10 ms, pass 5 ms", took.median <= 10 and longest.median <= 5)  # fmt: skip


def _round(idle: int, busy: int) -> Borrowed:
    with home_process() as (_, holder_command):
        command = [*holder_command, str(idle), str(busy)]
        holder = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True)
    return Borrowed(bare_us=hop_us(idle), **json.loads(holder.stdout))


def _limits(version: int) -> ConnectionLimits:
    """Caps that are not reached; that of addresses by version."""
    cap = {RAISE: 101, CUT: 5}.get(version, 100)
    return ConnectionLimits({"kafka_connections_max": 1_000_000_000, "kafka_connections_max_per_ip": cap})


class TimedPoller(Poller):
    """`longest_ns`: the longest pass so far."""

    longest_ns = 0

    def _serve(self, ready: list[tuple[int, int]]) -> None:
        super()._serve(ready)
        self.longest_ns = max(self.longest_ns, self.clock_ns() - self.now_ns)


def _raise(mistake: Exception) -> NoReturn:
    raise mistake


class Member:
    """One process: its poller, mesh and tokens, joined as the broker joins them."""

    def __init__(self, me: int, nursery: trio.Nursery) -> None:
        self.poller = TimedPoller()
        self._limits = _limits(0)
        self.tokens = Tokens(me, 2, epoch=me + 1, send=self._send, rule_of=self._rule_of)
        self.mesh = Mesh(
            Hello(0, me, me + 1, os.getpid(), ""),
            self.poller,
            nursery,
            _raise,
            on_message=self.tokens.receive,
            on_up=self._peer_up,
        )
        self.poller.at_end_of_pass(self._end_tokens)
        self.poller.at_end_of_pass(self.mesh.flush)
        self.up = trio.Event()
        self.mesh.serve("resident", lambda peer: resident_bytes())
        self.mesh.serve("apply", lambda peer, version: self.apply(version))

    def _end_tokens(self) -> None:
        if self.tokens.continue_change():
            self.poller.wake()
        self.tokens.flush()

    def _rule_of(self, pool: str) -> CapRule:
        return self._limits.rule_of(pool)

    def apply(self, version: int) -> Deferred[float]:
        """Every address has another cap: resolved when the version is done here, with the longest pass since (ms)."""
        done: Deferred[float] = Deferred()
        self.poller.longest_ns = 0
        began_ns = self.poller.clock_ns()
        before, self._limits = self._limits, _limits(version)
        changed = self._limits.changed_pools(before)
        self.tokens.apply(version, lambda: done.resolve(self.poller.longest_ns / 1e6), changed)
        self.poller.longest_ns = self.poller.clock_ns() - began_ns
        return done

    def _send(self, peer: int, message: tuple[Any, ...]) -> None:
        self.mesh.send(peer, message)

    def _peer_up(self, key: Any, peer: Any) -> None:
        self.tokens.peer_up(key, peer.epoch)
        self.up.set()


class Borrower:
    """Takes a token of one new address after the other, the next as soon as one was decided."""

    def __init__(self, tokens: Tokens) -> None:
        self._tokens = tokens
        self._number = 0
        self._to_start = self._undecided = 0
        self._is_timed = False
        self.took_us: list[float] = []
        self.done = trio.Event()

    def start(self, count: int, in_flight: int) -> None:
        """Begin, so many at a time; `done` is set once `count` were decided. One at a time is timed: a million times would
        count as memory of the addresses."""
        self._is_timed = in_flight == 1
        self._to_start = self._undecided = count
        self.done, self.took_us = trio.Event(), []
        for _ in range(in_flight):
            Taker(self).take()

    def next_key(self) -> str | None:
        """An address that was not asked for yet; None when enough were asked for."""
        if not self._to_start:
            return None
        self._to_start -= 1
        while True:
            number = self._number
            self._number += 1
            key = f"ip:10.{number >> 16 & 255}.{number >> 8 & 255}.{number & 255}"
            if home_of(key, 2) == HOME:
                return key

    def ask(self, key: str, taker: Taker) -> None:
        """Take a token of it."""
        if self._tokens.take((key,), taker) is not None:
            raise AssertionError(f"{key} was decided without asking its home")

    def count(self, took_us: float) -> None:
        """One more was decided."""
        if self._is_timed:
            self.took_us.append(took_us)
        self._undecided -= 1
        if not self._undecided:
            self.done.set()


class Taker:
    """One of those in flight; Tokens tells waiters apart by their identity."""

    def __init__(self, borrower: Borrower) -> None:
        self._borrower = borrower
        self._began = 0.0

    def take(self) -> None:
        """Ask for the next address."""
        key = self._borrower.next_key()
        if key is not None:
            self._began = time.perf_counter()
            self._borrower.ask(key, self)

    def decided(self, decision: object) -> None:
        """Called by Tokens."""
        self._borrower.count((time.perf_counter() - self._began) * 1e6)
        self.take()


async def home(path: str) -> None:
    """Serve until standard input ends."""
    listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    listening.bind(path)
    listening.listen()
    async with trio.open_nursery() as nursery:
        member = Member(HOME, nursery)
        member.mesh.listen(listening, lambda hello: 2)
        await nursery.start(member.poller.run)
        print("ready", flush=True)
        await trio.to_thread.run_sync(sys.stdin.read)
        nursery.cancel_scope.cancel()
    listening.close()


async def holder(path: str, idle: int, busy: int) -> None:
    """Borrow, change the cap, and print what it took."""
    async with trio.open_nursery() as nursery:
        member = Member(HOLDER, nursery)
        await nursery.start(member.poller.run)
        nursery.start_soon(member.mesh.dial, path, (CONTROL, DATA))
        await member.up.wait()
        borrower = Borrower(member.tokens)
        await _run(member, borrower, lambda: borrower.start(idle, 1))
        took_us = sorted(borrower.took_us)
        before = resident_bytes(), await member.mesh.request(HOME, "resident")
        began = time.perf_counter()
        await _run(member, borrower, lambda: borrower.start(busy, IN_FLIGHT))
        elapsed = time.perf_counter() - began
        after = resident_bytes(), await member.mesh.request(HOME, "resident")
        change_ms, change_pass_ms = await _change(member, RAISE)
        cut_ms, cut_pass_ms = await _change(member, CUT)
        nursery.cancel_scope.cancel()
    measured = {
        "p50_us": took_us[len(took_us) // 2],
        "p99_us": took_us[int(len(took_us) * 0.99)],
        "per_s": busy / elapsed,
        "holder_bytes": (after[0] - before[0]) / busy,
        "home_bytes": (after[1] - before[1]) / busy,
        "change_ms": change_ms,
        "change_pass_ms": change_pass_ms,
        "cut_ms": cut_ms,
        "cut_pass_ms": cut_pass_ms,
    }
    print(json.dumps(measured))


async def _change(member: Member, version: int) -> tuple[float, float]:
    """The time until both processes are done with a version, and their longest pass meanwhile, in ms."""
    began = time.perf_counter()
    asked = member.mesh.call(HOME, "apply", version, timeout_s=120)
    done = member.apply(version)
    member.poller.touch()
    longest_ms = max(await asked, await done)
    return (time.perf_counter() - began) * 1000, longest_ms


async def _run(member: Member, borrower: Borrower, start: Callable[[], None]) -> None:
    start()
    member.poller.touch()
    await borrower.done.wait()


def resident_bytes() -> int:
    """Resident memory of this process."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


if __name__ == "__main__":
    if sys.argv[1] == "home":
        trio.run(home, sys.argv[2])
    else:
        trio.run(holder, sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
