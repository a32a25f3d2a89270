"""`Cluster` for trio and asyncio: each call waits in a worker thread, so that the event loop goes on."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from threading import Lock, Thread
from types import TracebackType
from typing import TYPE_CHECKING, ParamSpec, TypeVar, Unpack

from anyio import CancelScope, get_cancelled_exc_class
from anyio.to_thread import run_sync

from turnstile.cluster import Cluster, Refusals, Throttled
from turnstile.options import ClusterOptions, FaultKind, FaultOptions, SetFault

if TYPE_CHECKING:
    from broker.admin.cluster_answers import Explanation
    from shards.config.advertised_changes import AdvertisedAddress

P = ParamSpec("P")
T = TypeVar("T")


async def _waited(function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    return await run_sync(partial(function, *args, **kwargs))


class AsyncCluster:
    """A `Cluster` whose methods are awaited; arguments, results and errors are the same.

    `sync` is that cluster, for attributes that need no waiting.
    """

    def __init__(self, **options: Unpack[ClusterOptions]) -> None:
        """As `Cluster`."""
        self.sync = Cluster(**options)
        self._lock = Lock()  # a stop waits until the start in another thread has ended

    async def __aenter__(self) -> AsyncCluster:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, fault: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.stop()

    async def start(self) -> AsyncCluster:
        """See Cluster.start. A start that is cancelled leaves no process.

        A cancellation of trio or anyio waits for it. One of asyncio itself does not, and a thread undoes the start.
        """
        try:
            with CancelScope(shield=True):
                await _waited(self._start)
        except get_cancelled_exc_class():
            Thread(target=self._stop).start()
            raise
        return self

    async def stop(self) -> None:
        """See Cluster.stop; it is not cut short by a cancellation."""
        with CancelScope(shield=True):
            await _waited(self._stop)

    def _start(self) -> None:
        with self._lock:
            self.sync.start()

    def _stop(self) -> None:
        with self._lock:
            self.sync.stop()

    @property
    def bootstrap(self) -> str:
        """See Cluster.bootstrap."""
        return self.sync.bootstrap

    async def set(self, settings: Mapping[str, object] | None = None, /, **named: object) -> None:
        """See Cluster.set."""
        await _waited(self.sync.set, settings, **named)

    async def quota(self, entity: str | Mapping[str, str | None], /, **rates: float | None) -> None:
        """See Cluster.quota."""
        await _waited(self.sync.quota, entity, **rates)

    async def advertise(self, listener: str | None, /, *addresses: str, broker: int | None = None) -> None:
        """See Cluster.advertise."""
        await _waited(self.sync.advertise, listener, *addresses, broker=broker)

    async def advertised(self) -> list[AdvertisedAddress]:
        """See Cluster.advertised."""
        return await _waited(self.sync.advertised)

    async def user(self, name: str, password: str | None) -> None:
        """See Cluster.user."""
        await _waited(self.sync.user, name, password)

    async def fault(self, kind: FaultKind, /, **what: Unpack[FaultOptions]) -> str:
        """See Cluster.fault."""
        return await _waited(self.sync.fault, kind, **what)

    async def remove_fault(self, *names: str) -> None:
        """See Cluster.remove_fault."""
        await _waited(self.sync.remove_fault, *names)

    async def telemetry(self, name: str, /, **configs: str | float | None) -> None:
        """See Cluster.telemetry."""
        await _waited(self.sync.telemetry, name, **configs)

    async def faults(self) -> list[SetFault]:
        """See Cluster.faults."""
        return await _waited(self.sync.faults)

    async def reset(self) -> None:
        """See Cluster.reset."""
        await _waited(self.sync.reset)

    async def kill_shard(self, shard: int = 0, broker: int = 0) -> None:
        """See Cluster.kill_shard."""
        await _waited(self.sync.kill_shard, shard, broker)

    async def refusals(self) -> Refusals:
        """See Cluster.refusals."""
        return await _waited(self.sync.refusals)

    async def throttled(self) -> dict[str, Throttled]:
        """See Cluster.throttled."""
        return await _waited(self.sync.throttled)

    async def connections(self, ip: str | None = None) -> int:
        """See Cluster.connections."""
        return await _waited(self.sync.connections, ip)

    async def explain(
        self, *, ip: str | None = None, user: str | None = None, client_id: str | None = None
    ) -> Explanation:
        """See Cluster.explain."""
        return await _waited(self.sync.explain, ip=ip, user=user, client_id=client_id)
