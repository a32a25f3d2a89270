"""The two sides that the course brings together: a cluster and a program."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple, Protocol, Unpack

from turnstile.admin_client import AdminClient
from turnstile.options import FaultKind, FaultOptions, SetFault


class CannotJudge(Exception):
    """There is no client to judge; `str()` says why."""


class CpuTime(NamedTuple):
    """Seconds for which threads ran, and were ready to run and waited for a CPU."""

    ran_s: float
    waited_s: float


class Judged(Protocol):
    """The part of turnstile.Cluster that the course needs."""

    @property
    def admin(self) -> AdminClient: ...
    def set(self, settings: Mapping[str, object] | None = None, /, **named: object) -> None: ...
    def quota(self, entity: str, /, **rates: float | None) -> None: ...
    def fault(self, kind: FaultKind, /, **what: Unpack[FaultOptions]) -> str: ...
    def remove_fault(self, *names: str) -> None: ...
    def telemetry(self, name: str, /, **configs: str | float | None) -> None: ...
    def faults(self) -> list[SetFault]: ...
    def kill_shard(self, shard: int = 0, broker: int = 0) -> None: ...


class Client(Protocol):
    """The program under test (program.py)."""

    def exit_code(self) -> int | None: ...
    def busy_s(self) -> CpuTime: ...
    def terminate(self) -> None: ...
    def wait(self, within_s: float) -> bool: ...
    def kill(self) -> None: ...
