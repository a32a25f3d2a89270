"""A version on its way to every shard: sent in parts, and acknowledged by every shard that makes progress with it.

one_push_at_a_time  Pushes to one shard go one after the other; a shard that has just connected gets the whole state first.
push_waits_for_progress  `push` returns when every shard has acknowledged the version, or was ended because it made no
    progress. The deadline stands still while a shard, or a peer that it waits for, starts, takes parts of the push or works, and
    while this process gets no CPU.
disconnected_shards_are_waited_for  A shard that is not connected is waited for like any other: it may be alive, and
    admitting by an older version.
"""

import json
from collections.abc import Callable, Iterator, Sequence
from typing import Protocol

import trio

from shards.config.config_state import Change
from shards.errors import DeadlineExceeded, PeerLost, RemoteError
from shards.ownership import BrokerShard

PART_BYTES = 1 << 20  # of JSON, about: what one frame of a push carries at most
ACK_DEADLINE_S = 2.0  # without any progress
LOOKS = 8  # for progress, in that time
BUSY_DEADLINE_S = 600.0  # busy, and yet nothing acknowledged
PING_DEADLINE_S = 0.3
DEATH_DEADLINE_S = 1.0
_FOR_EVER_S = 1e9  # `push` ends a shard that gets nowhere, and with it the call


class Shards(Protocol):
    """The links of the coordinator to its shards."""

    async def request(self, member: BrokerShard, method: str, *args: object, timeout_s: float = ...) -> object:
        """Raises PeerLost, DeadlineExceeded or RemoteError."""

    def kill(self, member: BrokerShard) -> None:
        """Have the process ended at once, if it is there; its supervisor starts another."""

    def is_busy(self, member: BrokerShard) -> bool:
        """True if the process has worked since this was asked before: it starts, or applies a version."""


class _Link:
    """A connected shard. `version` is what it acknowledged; pushes to it go one after the other."""

    def __init__(self) -> None:
        self.version = -1
        self.lost = trio.Event()
        self.turn = trio.Lock()


class Publisher:
    """Knows which shards are connected, and which version each has acknowledged."""

    def __init__(self, shards: Shards, members: Sequence[BrokerShard], deadline_s: float = ACK_DEADLINE_S) -> None:
        self._shards = shards
        self._members = tuple(members)
        self._deadline_s = deadline_s
        self._links: dict[BrokerShard, _Link] = {}
        self._progress = trio.Event()  # set, and made anew, at each step
        self._steps = 0

    async def connected(self, member: BrokerShard, state: Callable[[], tuple[int, list[Change]]]) -> None:
        """A shard's link is up: brings it to the present, `state()`. Returns when it acknowledged, or is gone again."""
        link = self._links[member] = _Link()
        self._note_progress()
        async with link.turn:
            version, everything = state()
            await self._send(member, link, version, everything, whole=True)

    def disconnected(self, member: BrokerShard) -> None:
        """The shard's link ended."""
        link = self._links.pop(member, None)
        if link is not None:
            link.lost.set()
            self._note_progress()

    def acknowledged_versions(self) -> dict[BrokerShard, int | None]:
        """The version each shard acknowledged, None for one that is not connected."""
        return {m: self._links[m].version if m in self._links else None for m in self._members}

    async def push(self, version: int, delta: list[Change]) -> None:
        """Returns once push_waits_for_progress holds. An empty delta waits, too: an earlier change that the caller relies on
        may not be in force yet.

        A shard enforces a version only together with its peers, so one that is stuck holds the others up: shards that do
        not even answer are ended first, and the others get the same time again.
        """
        async with trio.open_nursery() as nursery:
            if delta:
                for member, link in self._links.items():
                    nursery.start_soon(self._send_delta, member, link, version, delta)
            waited_for = self._members
            while late := await self._behind(waited_for, version):
                ended = await self._unresponsive(late) or late
                await self._kill(ended)
                waited_for = tuple(member for member in late if member not in ended)
            nursery.cancel_scope.cancel()

    async def _behind(self, members: Sequence[BrokerShard], version: int) -> list[BrokerShard]:
        """Waits until the members have acknowledged the version. When no late member has made progress for the deadline, returns
        the late ones. Progress: connected, took a part of the push, acknowledged, or was busy."""
        began_s, looks = trio.current_time(), 0  # looks, not time: for a while this process may not run either
        steps = self._steps
        while behind := [m for m in members if m not in self._links or self._links[m].version < version]:
            with trio.move_on_after(self._deadline_s / LOOKS):
                await self._progress.wait()
            looks += 1
            if steps != self._steps:
                steps = self._steps
                began_s, looks = trio.current_time(), 0
                continue
            busy = [member for member in behind if self._shards.is_busy(member)]
            if busy and trio.current_time() - began_s < BUSY_DEADLINE_S:
                looks = 0
            elif looks >= LOOKS:
                return behind
        return []

    async def _unresponsive(self, members: Sequence[BrokerShard]) -> list[BrokerShard]:
        """The members that do not answer. A RemoteError (unknown method) counts as an answer."""
        silent: list[BrokerShard] = []

        async def ask(member: BrokerShard) -> None:
            try:
                await self._shards.request(member, "ping", timeout_s=PING_DEADLINE_S)
            except RemoteError:
                return
            except (PeerLost, DeadlineExceeded):
                silent.append(member)

        async with trio.open_nursery() as nursery:
            for member in members:
                nursery.start_soon(ask, member)
        return silent

    async def _kill(self, members: Sequence[BrokerShard]) -> None:
        """Shards that do not acknowledge may not go on admitting."""
        for member in members:
            self._shards.kill(member)
        with trio.move_on_after(DEATH_DEADLINE_S):
            for member in members:
                if member in self._links:
                    await self._links[member].lost.wait()

    async def _send_delta(self, member: BrokerShard, link: _Link, version: int, delta: list[Change]) -> None:
        async with link.turn:
            # If the version differs, an earlier change is missing, or the whole state brought this one.
            if link.version == version - 1:
                await self._send(member, link, version, delta, whole=False)

    async def _send(self, member: BrokerShard, link: _Link, version: int, delta: list[Change], *, whole: bool) -> None:
        parts = list(_parts(delta))
        try:
            for number, part in enumerate(parts):
                more = number < len(parts) - 1
                await self._shards.request(member, "apply", version, part, whole, more, timeout_s=_FOR_EVER_S)
                self._note_progress()
        except (PeerLost, DeadlineExceeded, RemoteError):
            return  # the shard stays behind: `push` ends it, or its successor connects
        link.version = max(link.version, version)

    def _note_progress(self) -> None:
        self._steps += 1
        self._progress.set()
        self._progress = trio.Event()


def _parts(delta: list[Change]) -> Iterator[list[list[object]]]:
    """The delta in pieces of about PART_BYTES, at least one."""
    part: list[list[object]] = []
    size = 0
    for change in delta:
        size += len(json.dumps(change))
        part.append(list(change))
        if size >= PART_BYTES:
            yield part
            part, size = [], 0
    if part or size == 0:
        yield part
