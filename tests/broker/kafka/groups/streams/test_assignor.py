"""The assignor of streams groups: whatever members had before, tasks are active once, standbys elsewhere, shares even."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from broker.kafka.groups.streams.assignor import Candidate, SubtopologyTasks, sticky
from broker.kafka.groups.streams.tasks import NOTHING, Tasks

SUBTOPOLOGIES = st.dictionaries(
    st.sampled_from(["0", "1", "2"]),
    st.builds(SubtopologyTasks, st.integers(0, 12), st.booleans()),
    max_size=3,
)
TASKS = st.frozensets(st.tuples(st.sampled_from(["0", "1", "2", "gone"]), st.integers(0, 14)), max_size=12)
MEMBERS = st.lists(
    st.tuples(st.sampled_from(["p", "q", "r"]), st.builds(Tasks, TASKS, TASKS)), min_size=1, max_size=7
).map(lambda found: [Candidate(f"m{number}", process, before) for number, (process, before) in enumerate(found)])


def members(*processes: str) -> list[Candidate]:
    return [Candidate(f"m{number}", process, NOTHING) for number, process in enumerate(processes)]


def going_on(found: dict[str, Tasks], processes: dict[str, str]) -> list[Candidate]:
    return [Candidate(name, process, found.get(name, NOTHING)) for name, process in processes.items()]


@given(MEMBERS, SUBTOPOLOGIES, st.integers(0, 3))
def test_tasks_are_active_once_and_their_standbys_elsewhere(
    candidates: list[Candidate], subtopologies: dict[str, SubtopologyTasks], replicas: int
) -> None:
    found = sticky(candidates, subtopologies, replicas)
    assert set(found) == {each.id for each in candidates}
    tasks = [(name, number) for name, each in subtopologies.items() for number in range(each.tasks)]
    assert Counter(task for each in found.values() for task in each.active) == Counter(tasks)
    processes = {each.id: each.process for each in candidates}
    at = Counter((processes[name], task) for name, each in found.items() for task in (*each.active, *each.standby))
    assert all(count == 1 for count in at.values()), "a process has a task once"
    standbys = Counter(task for each in found.values() for task in each.standby)
    expected = min(replicas, len(set(processes.values())) - 1)
    assert standbys == Counter({task: expected for task in tasks if subtopologies[task[0]].is_stateful and expected})


@given(st.integers(1, 9), SUBTOPOLOGIES)
def test_shares_of_new_members_differ_by_one_at_most(count: int, subtopologies: dict[str, SubtopologyTasks]) -> None:
    found = sticky(members(*(f"p{number}" for number in range(count))), subtopologies, 0)
    sizes = [len(each.active) for each in found.values()]
    assert max(sizes) - min(sizes) <= 1


@given(MEMBERS, SUBTOPOLOGIES, st.integers(0, 2))
def test_an_assignment_that_nothing_changes_stays(
    candidates: list[Candidate], subtopologies: dict[str, SubtopologyTasks], replicas: int
) -> None:
    processes = {each.id: each.process for each in candidates}
    first = sticky(going_on({}, processes), subtopologies, replicas)
    again = sticky(going_on(first, processes), subtopologies, replicas)
    assert {name: each.active for name, each in again.items()} == {name: each.active for name, each in first.items()}


def test_a_new_member_takes_its_share_and_no_more_moves() -> None:
    subtopologies = {"0": SubtopologyTasks(8, is_stateful=True)}
    first = sticky(members("p", "q"), subtopologies, 0)
    second = sticky(going_on(first, {"m0": "p", "m1": "q", "m2": "r"}), subtopologies, 0)
    assert sorted(len(each.active) for each in second.values()) == [2, 3, 3]
    assert second["m0"].active <= first["m0"].active and second["m1"].active <= first["m1"].active


def test_a_standby_takes_over_from_a_member_that_is_gone() -> None:
    subtopologies = {"0": SubtopologyTasks(6, is_stateful=True)}
    first = sticky(members("p", "q", "r"), subtopologies, 1)
    second = sticky(going_on(first, {"m0": "p", "m1": "q"}), subtopologies, 1)
    orphans = first["m2"].active
    assert {task for name in ("m0", "m1") for task in second[name].active & first[name].standby & orphans}


def test_a_process_with_more_members_has_more_tasks() -> None:
    found = sticky(members("p", "p", "p", "q"), {"0": SubtopologyTasks(8, is_stateful=False)}, 0)
    assert [len(each.active) for each in found.values()] == [2, 2, 2, 2]
