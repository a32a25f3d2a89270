"""The possessions that a cluster takes over when it is told to start again: its ports, and a temporary data directory.

It starts as another run of its program, in the same process, so that its options, its environment and its configuration file
are read again; pid, terminal and parent stay. A process that was detached detaches again, and has another pid.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from pathlib import Path
from typing import NamedTuple, NoReturn

from shards.config.cluster_plan import ClusterPlan

_VARIABLE = "TURNSTILE_TAKEN_OVER"


class TakenOver(NamedTuple):
    """`ports`: by "BROKER/LISTENER". `data_dir`: a temporary one."""

    ports: dict[str, int]
    admin_port: int
    data_dir: Path | None

    @classmethod
    def of(cls, plan: ClusterPlan, *, is_temporary: bool) -> TakenOver:
        ports = {f"{each.broker}/{each.listener}": each.port for each in plan.endpoints}
        return cls(ports, plan.admin[1], plan.data_dir if is_temporary else None)


def taken_over() -> TakenOver:
    """The ports and the directory that the run before has left to this one, once; nothing, no port and None in a first run."""
    text = os.environ.pop(_VARIABLE, None)
    if text is None:
        return TakenOver({}, 0, None)
    ports, admin_port, data_dir = json.loads(text)
    return TakenOver(ports, admin_port, Path(data_dir) if data_dir else None)


def start_again(kept: TakenOver) -> NoReturn:
    """Runs this program again in the place of this process. Raises OSError."""
    # What is blocked stays so through exec, and what waits waits: the next run would take it for the end of a child of its own.
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGCHLD})
    text = json.dumps([kept.ports, kept.admin_port, str(kept.data_dir) if kept.data_dir else None])
    sys.stdout.flush()
    os.execve(sys.executable, [sys.executable, *sys.orig_argv[1:]], {**os.environ, _VARIABLE: text})
