"""The assignor of streams groups, `sticky`: which member has which task, active and standby. A pure function.

every_task_is_active_once  Each task is active at exactly one member.
standbys_are_elsewhere  A standby task is at another process than its active task and its other standbys; of a stateful task there
    are as many as configured, as far as there are processes.
active_tasks_are_even  No member gets an active task that it had before beyond its even share; where members have no task yet,
    shares differ by one at most.
tasks_stay  A task stays where it was active, else goes where it was a standby, while that leaves shares even.

Source: StickyTaskAssignor, ProcessState of Kafka 4.3; which of several equally loaded members gets a task is not Kafka's choice.
"""

import heapq
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

from broker.kafka.groups.streams.tasks import Task, Tasks


class Candidate(NamedTuple):
    """A member; `process`: members of one process share what they have on disk; `before`: its target so far."""

    id: str
    process: str
    before: Tasks


class SubtopologyTasks(NamedTuple):
    """The number of its tasks; those of a stateful subtopology have standbys."""

    tasks: int
    is_stateful: bool


class _Quota:
    """An even share, rounded up; whenever a member has it, the rest is shared out among the others."""

    def __init__(self, tasks: int, members: int) -> None:
        self._tasks = tasks
        self._members = members
        self.each = _share(tasks, members)

    def filled(self, count: int) -> None:
        """A member has `count` tasks now."""
        if count == self.each:
            self._tasks -= count
            self._members -= 1
            self.each = _share(self._tasks, self._members)


class _TaskShares:
    """The tasks that were handed out so far: by member, and by the processes that the members run in."""

    def __init__(self, members: Sequence[Candidate]) -> None:
        self.process_of = {member.id: member.process for member in members}
        self.active: dict[str, set[Task]] = {member.id: set() for member in members}
        self.standby: dict[str, set[Task]] = {member.id: set() for member in members}
        self._members: dict[str, list[str]] = {}
        for member in members:
            self._members.setdefault(member.process, []).append(member.id)
        self._at: dict[str, set[Task]] = {process: set() for process in self._members}

    def count(self, member: str) -> int:
        return len(self.active[member]) + len(self.standby[member])

    def load(self, process: str) -> float:
        """Tasks per member of a process."""
        return len(self._at[process]) / len(self._members[process])

    def has(self, process: str, task: Task) -> bool:
        return task in self._at[process]

    def by_load(self) -> list[tuple[float, str]]:
        """A heap of all processes, by load."""
        heap = [(self.load(process), process) for process in self._members]
        heapq.heapify(heap)
        return heap

    def least_loaded(self, process: str) -> str:
        """The member of a process with fewest tasks."""
        return min(self._members[process], key=lambda each: (self.count(each), each))

    def add(self, member: str, task: Task, *, active: bool) -> int:
        """The number of tasks that the member has now."""
        (self.active if active else self.standby)[member].add(task)
        self._at[self.process_of[member]].add(task)
        return self.count(member)


def sticky(
    members: Sequence[Candidate], subtopologies: Mapping[str, SubtopologyTasks], standby_replicas: int
) -> dict[str, Tasks]:
    """Member id -> its tasks. There is at least one member."""
    tasks = [(name, number) for name, each in subtopologies.items() for number in range(each.tasks)]
    stateful = [task for task in tasks if subtopologies[task[0]].is_stateful]
    shares = _TaskShares(members)
    total = _Quota(len(tasks) + standby_replicas * len(stateful), len(members))
    had_active = {task: member.id for member in members for task in member.before.active}
    had_standby: dict[Task, list[str]] = {}
    for member in members:
        for task in member.before.standby:
            had_standby.setdefault(task, []).append(member.id)
    _assign_active(tasks, shares, total, had_active, had_standby)
    if standby_replicas:
        _assign_standby(stateful, standby_replicas, shares, total, had_active, had_standby)
    return {
        member.id: Tasks(frozenset(shares.active[member.id]), frozenset(shares.standby[member.id]))
        for member in members
    }


def _assign_active(
    tasks: Sequence[Task],
    shares: _TaskShares,
    total: _Quota,
    had_active: Mapping[Task, str],
    had_standby: Mapping[Task, Sequence[str]],
) -> None:
    quota = _Quota(len(tasks), len(shares.active))

    def give(member: str, task: Task) -> None:
        count = shares.add(member, task, active=True)
        quota.filled(count)
        total.filled(count)

    left = sorted(tasks, key=_by_partition)

    def had_as_standby(task: Task) -> str | None:
        return _least_loaded(had_standby.get(task, ()), shares)

    for had in (had_active.get, had_as_standby):
        rest = []
        for task in left:
            member = had(task)
            if member is not None and shares.count(member) < quota.each:
                give(member, task)
            else:
                rest.append(task)
        left = rest
    _hand_out(sorted(left), shares, give)


def _assign_standby(
    stateful: Sequence[Task],
    replicas: int,
    shares: _TaskShares,
    total: _Quota,
    had_active: Mapping[Task, str],
    had_standby: Mapping[Task, Sequence[str]],
) -> None:
    def give(member: str, task: Task) -> None:
        total.filled(shares.add(member, task, active=False))

    left: list[Task] = []
    for task in sorted(stateful, key=_by_partition, reverse=True):
        before = [had_active[task]] if task in had_active else []
        for replica in range(replicas):
            holders = [each for each in before if _may_take(each, task, shares, total)]
            holders = holders or [each for each in had_standby.get(task, ()) if _may_take(each, task, shares, total)]
            member = _least_loaded(holders, shares)
            if member is None:
                left += [task] * (replicas - replica)
                break
            give(member, task)
    _hand_out(sorted(left, reverse=True), shares, give)


def _hand_out(tasks: Iterable[Task], shares: _TaskShares, give: Callable[[str, Task], None]) -> None:
    """Gives each task to the least loaded process that does not have it; to none where all have it."""
    heap = shares.by_load()
    for task in tasks:
        aside = []
        while heap and shares.has(heap[0][1], task):
            aside.append(heapq.heappop(heap))
        if heap:
            _, process = heapq.heappop(heap)
            give(shares.least_loaded(process), task)
            aside.append((shares.load(process), process))
        for each in aside:
            heapq.heappush(heap, each)


def _may_take(member: str, task: Task, shares: _TaskShares, total: _Quota) -> bool:
    return not shares.has(shares.process_of[member], task) and shares.count(member) < total.each


def _least_loaded(members: Sequence[str], shares: _TaskShares) -> str | None:
    """The member of the least loaded process, with the fewest tasks among these."""
    return min(members, key=lambda each: (shares.load(shares.process_of[each]), shares.count(each)), default=None)


def _by_partition(task: Task) -> tuple[int, str]:
    return task[1], task[0]


def _share(tasks: int, members: int) -> int:
    return -(-tasks // members) if members > 0 else 0
