"""At which calls a fault fires."""

import pytest

from broker.faults.triggers import Triggers


def fired(record, at_ms, name="f"):
    triggers = Triggers()
    return [n for n, now_ms in enumerate(at_ms, start=1) if triggers.fires(name, record, now_ms)]


@pytest.mark.parametrize(
    ("record", "calls"),
    [
        ({"once": True}, [1]),
        ({"on_call": 3}, [3]),
        ({"times": 2}, [1, 2]),
        ({"every_ms": 100}, [1, 4, 6]),
        ({"probability": 0.0}, []),
        ({"probability": 1.0}, [1, 2, 3, 4, 5, 6]),
    ],
)
def test_trigger_fires_at_its_calls_alone(record, calls):
    assert fired(record, [0, 50, 99, 100, 150, 500]) == calls


def test_the_same_seed_decides_the_same():
    several = [fired({"probability": 0.3, "seed": seed}, range(1000)) for seed in (1, 1, 2)]
    assert several[0] == several[1] != several[2]
    assert 230 < len(several[0]) < 370


def test_a_fault_that_was_removed_starts_anew():
    triggers = Triggers()
    assert [triggers.fires("f", {"once": True}, 0) for _ in "ab"] == [True, False]
    assert not triggers.fires("f", None, 0)
    triggers.forget("f")
    assert triggers.fires("f", {"once": True}, 0)
