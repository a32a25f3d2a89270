"""Stand-ins for shard processes, reached by plain calls: the coordinator, its admin API and the CLI without a cluster."""

from collections.abc import Callable

import trio

from shards.coordinator import Coordinator, Member
from shards.errors import PeerLost, RemoteError
from shards.follower import Follower
from shards.settings import View
from shards.store import Store

MEMBERS: list[Member] = [(0, 0), (0, 1), (1, 0)]


class Shard:
    """A shard process: a View behind a Follower, and how it behaves when a version arrives."""

    def __init__(self, member: Member) -> None:
        self.view = View(member[0])
        self.follower = Follower(self.view, self._enforce)
        self.stuck = False
        self.delay_s = 0.0
        self.parts: list[tuple[int, bool, bool]] = []
        self.dones: list[Callable[[], None]] = []

    def _enforce(self, version: int, changed: frozenset[str], done: Callable[[], None]) -> None:
        if self.stuck:
            self.dones.append(done)
        else:
            done()


class Cluster:
    """Shards that the coordinator reaches by plain calls."""

    def __init__(self, store: Store, static: dict[str, str] | None = None) -> None:
        self.shards: dict[Member, Shard] = {}
        self.killed: list[Member] = []
        self.answers: dict[str, Callable[..., object]] = {"describe_connections": lambda member: {"open": member[1]}}
        self.coordinator = Coordinator(store, self, MEMBERS, static=static, wall_clock=lambda: 1000.0)

    async def start(self, *members: Member) -> None:
        for member in members or MEMBERS:
            self.shards[member] = Shard(member)
            await self.coordinator.connected(member)

    def lose(self, member: Member) -> None:
        self.shards.pop(member, None)
        self.coordinator.disconnected(member)

    async def request(self, member: Member, method: str, *args: object, timeout_s: float = 5.0) -> object:
        shard = self.shards.get(member)
        if shard is None:
            raise PeerLost(str(member))
        if method in self.answers:
            return self.answers[method](member, *args)
        if method != "apply":
            raise RemoteError("UnknownMethod", f"{method} is not served here")
        await trio.sleep(shard.delay_s)
        version, _, whole, more = args
        shard.parts.append((version, whole, more))
        return await shard.follower.apply(None, *args)

    def kill(self, member: Member) -> None:
        self.killed.append(member)
        self.lose(member)

    def versions(self) -> set[int]:
        return {shard.view.version for shard in self.shards.values()}
