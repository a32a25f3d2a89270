"""The connection that makes room, under any order of what connections do."""

from hypothesis import given
from hypothesis import strategies as st

from broker.admin.http_places import Places


class Connection:
    def __init__(self):
        self.is_ended = False

    def close_early(self):
        self.is_ended = True


def test_the_one_whose_step_began_first_makes_room_and_one_that_is_worked_on_does_not():
    places = Places(3, 100)
    first, second, _ = connections = [Connection() for _ in range(3)]
    for each in connections:
        places.add(each)
    assert places.is_full
    places.waits(first, False)
    places.begins_step(second)
    assert places.make_room()
    assert [each.is_ended for each in connections] == [False, False, True]
    places.waits(first)  # within its step, which is the oldest
    assert places.make_room()
    assert [each.is_ended for each in (first, second)] == [True, False]
    places.waits(second, False)
    assert not places.make_room()


def test_bytes_make_room_for_others_and_what_one_alone_needs_is_let_be():
    places = Places(10, 100)
    _, slow, large = connections = [Connection() for _ in range(3)]
    for each in connections:
        places.add(each)
    places.holds(slow, 60)
    places.holds(large, 500)
    assert [each.is_ended for each in connections] == [False, True, False]


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 5), st.integers(1, 60)), max_size=200))
def test_the_bounds_hold_whatever_happens(steps):
    places = Places(4, 100)
    connections = [Connection() for _ in range(10)]
    worked_on, held = set(), {}
    for place, what, size in steps:
        one = connections[place]
        is_open = one in held
        if what == 0 and not is_open and (not places.is_full or places.make_room()):
            places.add(one)
            held[one], one.is_ended = 0, False
        elif what == 1:
            places.remove(one)
            held.pop(one, None)
            worked_on.discard(one)
        elif what == 2:
            places.begins_step(one)
            worked_on.discard(one)
        elif what == 3:
            places.waits(one, False)
            worked_on |= {one} & held.keys()
        elif what == 4 and is_open:
            held[one] += size
            places.holds(one, size)
        elif what == 5 and is_open:
            places.holds(one, -held[one])
            held[one] = 0
        assert not any(each.is_ended for each in worked_on)
        held = {each: size for each, size in held.items() if not each.is_ended}
        assert len(places) == len(held) <= 4
        waiting = [each for each, bytes_held in held.items() if bytes_held and each not in worked_on]
        assert sum(held.values()) <= 100 or len(waiting) <= 1
