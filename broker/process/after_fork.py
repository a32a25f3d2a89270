"""What a process of the cluster does first after its fork: lets go of the others' sockets, asks for descriptors."""

from __future__ import annotations

import json
import os
import resource

from shards.config.cluster_plan import COORDINATOR_MEMBER, ClusterPlan


def keep_own_sockets(plan: ClusterPlan, member: tuple[int, int]) -> None:
    """Closes what belongs to the other processes; the supervisor keeps it open for them."""
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
    """As many descriptors as this user may have: returns how many."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < hard:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return hard


def say_ready(ready: int) -> None:
    """Tells the supervisor's side of the pipe, which has no reader any more when this is a restart."""
    os.write(ready, json.dumps({}).encode() + b"\n")
    os.close(ready)
