"""The table of steps: every way ends, and refusing is possible from everywhere (decisions_are_final)."""

import pytest

from broker.accept.admission_steps import ENDS, TRANSITIONS, UNCAPPED, Event, Step


def test_every_step_is_in_the_table_and_can_be_reached():
    reached = {Step.ARRIVED} | {target for ways in TRANSITIONS.values() for target in ways.values()}
    assert set(TRANSITIONS) == set(Step) == reached


def test_only_the_two_decisions_are_final():
    assert {Step.ADMITTED, Step.REFUSED} == ENDS


@pytest.mark.parametrize("step", [step for step in Step if step not in ENDS])
def test_a_connection_can_be_refused_in_every_step(step):
    assert TRANSITIONS[step][Event.REFUSE] is Step.REFUSED


@pytest.mark.parametrize(("table", "most"), [(TRANSITIONS, 11), (UNCAPPED, 10)])
def test_changes_alone_lead_back(table, most):
    def depth(step, above=()):
        assert step not in above
        ways = (target for event, target in table[step].items() if event not in (Event.REVOKED, Event.REVOKED_LATE))
        return 1 + max((depth(target, (*above, step)) for target in ways), default=0)

    assert depth(Step.ARRIVED) == most


@pytest.mark.parametrize(("table", "last"), [(TRANSITIONS, [Step.CLUSTER_TOKENS]), (UNCAPPED, [])])
def test_the_longest_way_is_kafkas_order_and_the_cap_of_the_cluster_comes_last(table, last):
    way, step = [], Step.ARRIVED
    while step not in ENDS:
        step = table[step][Event.PASSED]
        way.append(step)
    rates, slot_and_address = (
        [Step.CORE_RATE, Step.CLUSTER_RATE, Step.LISTENER_RATE],
        [Step.SLOT, Step.IP_RATE, Step.IP_TOKENS],
    )
    assert way == [*rates, *slot_and_address, *last, Step.ADMITTED]


def test_without_a_cap_of_the_cluster_none_comes_to_its_step():
    assert Step.CLUSTER_TOKENS not in {target for ways in UNCAPPED.values() for target in ways.values()}
    assert UNCAPPED[Step.CLUSTER_TOKENS] == TRANSITIONS[Step.CLUSTER_TOKENS], "one that waits there goes on"
