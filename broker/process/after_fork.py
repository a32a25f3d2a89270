"""The first steps of a forked process: it closes the sockets of the other processes and raises its descriptor limit."""

from __future__ import annotations

import json
import os
import resource

from shards.config.cluster_plan import COORDINATOR_MEMBER, ClusterPlan


def keep_own_sockets(plan: ClusterPlan, member: tuple[int, int]) -> None:
    """Closes the sockets of the other processes; the supervisor keeps them open."""
    for other, listening in plan.client_sockets.items():
        if other != member:
            for _, sock in listening:
                sock.close()
    for other, sock in plan.mesh_sockets.items():
        if other != member:
            sock.close()
    if member != COORDINATOR_MEMBER and plan.admin_socket is not None:
        plan.admin_socket.close()


def raise_descriptor_limit() -> int:
    """Raises the descriptor limit as far as this user may; returns it."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < hard:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return hard


def say_ready(ready: int) -> None:
    """Reports to `ready` that this process is up (start_reports.py); after a restart of the process nothing reads that."""
    os.write(ready, json.dumps({}).encode() + b"\n")
    os.close(ready)
