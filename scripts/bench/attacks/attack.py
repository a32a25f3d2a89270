"""An attack, and what is measured beside it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from scripts.bench.machine import Server


class Finding(NamedTuple):
    """The measurement of an attack by itself, as one phrase, and whether it is within its bound.

    `judges_waits`: whether the waits of others are judged, too; not where the attack stops shards.
    """

    text: str
    met: bool
    judges_waits: bool = True


def nothing(server: Server) -> None:
    """The preparation of most attacks."""


@dataclass(frozen=True)
class Attack:
    """`run(server)` attacks for some seconds; `prepare(server)` comes before anything is measured.

    `options`: of `turnstile up`. `tls`: beside the listener PLAIN there is one named TLS.
    """

    name: str
    run: Callable[[Server], Finding | None]
    options: tuple[str, ...] = ()
    prepare: Callable[[Server], None] = nothing
    tls: bool = False


class Waits(NamedTuple):
    """Milliseconds for which another client waited for its answers, and how many of its connections were lost."""

    p99_ms: float
    worst_ms: float
    lost: int
    idle_ms: float
    """The worst wait for a process that does nothing else: what the machine itself adds."""


class Measured(NamedTuple):
    """Beside one attack: the most MB that a process of the cluster had, the waits of others, and the attack's own finding.

    `without_cpu`: of the time in which the shards had something to do, the share for which other processes had the CPUs.
    """

    peak_mb: float
    waits: Waits
    without_cpu: float
    finding: Finding | None
