import json

from turnstile.load.tally import COUNTS, Tally


def tally(**counts):
    made = Tally()
    for name, value in counts.items():
        setattr(made, name, value)
    return made


def test_it_survives_the_way_between_processes():
    sent = tally(attempted=3, admitted=2, refused=1)
    sent.admitted_us.record(100)
    sent.admitted_us.record(200)
    sent.tick(2)
    received = Tally.load(json.loads(json.dumps(sent.dump())))
    assert received.dump() == sent.dump()


def test_shares_of_processes_add_up():
    total, one, other = Tally(), tally(attempted=3, admitted=3), tally(attempted=2, refused=2)
    one.admitted_us.record(7)
    one.tick(1)
    other.tick(2)
    total.add(one)
    total.add(other)
    assert dict(zip(COUNTS, total.counts(), strict=True)) | {"attempted": 5, "admitted": 3, "refused": 2} == dict(
        zip(COUNTS, total.counts(), strict=True)
    )
    assert total.per_second == [(3, 2), (0, 0)]
    assert total.admitted_us == one.admitted_us


def test_each_second_has_what_happened_in_it():
    seen = tally(admitted=5)
    seen.tick(1)
    seen.admitted, seen.refused = 7, 1
    seen.tick(3)
    assert seen.per_second == [(5, 0), (2, 1), (0, 0)]


def test_broken_is_what_never_came_about_and_what_was_cut_off():
    assert tally(connect_errors=2, closed_by_broker=3).broken == 5
