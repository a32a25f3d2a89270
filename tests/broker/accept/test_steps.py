"""The table of steps: every way ends, and refusing is possible from everywhere (decisions_are_final)."""

import pytest

from broker.accept.steps import ENDS, TRANSITIONS, Event, Step


def test_every_step_is_in_the_table_and_can_be_reached():
    reached = {Step.ARRIVED} | {target for ways in TRANSITIONS.values() for target in ways.values()}
    assert set(TRANSITIONS) == set(Step) == reached


def test_only_the_two_decisions_are_final():
    assert {Step.ADMITTED, Step.REFUSED} == ENDS


@pytest.mark.parametrize("step", [step for step in Step if step not in ENDS])
def test_a_connection_can_be_refused_in_every_step(step):
    assert TRANSITIONS[step][Event.REFUSE] is Step.REFUSED


def test_no_way_leads_in_a_circle():
    def depth(step, above=()):
        assert step not in above
        return 1 + max((depth(target, (*above, step)) for target in TRANSITIONS[step].values()), default=0)

    assert depth(Step.ARRIVED) == 9


def test_the_longest_way_is_kafkas_order():
    way, step = [], Step.ARRIVED
    while step not in ENDS:
        step = TRANSITIONS[step][Event.PASSED]
        way.append(step)
    assert way == [Step.CORE_RATE, Step.LISTENER_RATE, Step.SLOT, Step.IP_RATE, Step.IP_TOKENS, Step.ADMITTED]
