"""The way of a member of a streams group to its target, a step at each heartbeat: what it must give up first, then what is free.

no_active_task_held_twice  A task becomes active at a member only if it is active nowhere, a member that is to revoke it included.
one_role_per_process  A task is given to a member only while no member of its process has it in any role.
revoked_tasks_are_held_until_said  What a member is asked to revoke it holds until it says, in a heartbeat with its tasks, that it
    has them no more.

Source: CurrentAssignmentBuilder of Kafka 4.3.
"""

from collections.abc import Mapping, Set
from enum import IntEnum
from typing import NamedTuple

from broker.kafka.groups.streams.tasks import NOTHING, Task, Tasks, TaskSet


class MemberState(IntEnum):
    """The numbers are those of Kafka's records."""

    STABLE = 1
    UNREVOKED_TASKS = 2
    UNRELEASED_TASKS = 3


class TaskProgress(NamedTuple):
    """The progress of a member to its target: `assigned` are the tasks that it was sent, `revoking` those that it is to give up."""

    state: MemberState = MemberState.STABLE
    epoch: int = 0
    assigned: Tasks = NOTHING
    revoking: Tasks = NOTHING

    @property
    def held(self) -> Tasks:
        return self.assigned.plus(self.revoking)


class Holders(NamedTuple):
    """The processes that have a task, of all members: `active` at one, `standby` at several."""

    active: Mapping[Task, str]
    standby: Mapping[Task, Set[str]]


def is_reconciled(now: TaskProgress, target_epoch: int) -> bool:
    return now.state is MemberState.STABLE and now.epoch == target_epoch


def reconcile(
    now: TaskProgress, process: str, target: Tasks, target_epoch: int, holders: Holders, owned: Tasks | None
) -> TaskProgress:
    """The next step of a member of `process`; `owned`: the tasks that it says it has, None: nothing said."""
    if is_reconciled(now, target_epoch):
        return now
    epoch = now.epoch
    if now.state is MemberState.UNREVOKED_TASKS:
        if owned is None or owned.has_any(now.revoking):
            return now
        epoch += 1
    kept = now.assigned.both(target)
    revoking = now.assigned.without(kept)
    if revoking and (owned is None or owned.has_any(revoking)):
        return TaskProgress(MemberState.UNREVOKED_TASKS, epoch, kept, revoking)
    wanted = target.without(kept)
    free = Tasks(_free_active(wanted.active, process, holders), _free_standby(wanted.standby, process, holders))
    state = MemberState.STABLE if free == wanted else MemberState.UNRELEASED_TASKS
    return TaskProgress(state, target_epoch, kept.plus(free), NOTHING)


def _free_active(wanted: TaskSet, process: str, holders: Holders) -> TaskSet:
    return frozenset(
        task for task in wanted if task not in holders.active and process not in holders.standby.get(task, ())
    )


def _free_standby(wanted: TaskSet, process: str, holders: Holders) -> TaskSet:
    return frozenset(
        task for task in wanted if holders.active.get(task) != process and process not in holders.standby.get(task, ())
    )
