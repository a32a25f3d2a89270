from turnstile.load.tally import COUNTS, Tally, percentiles_ms


def tally(**counts):
    made = Tally()
    for name, value in counts.items():
        setattr(made, name, value)
    return made


def test_it_survives_the_way_between_processes():
    sent = tally(attempted=3, admitted=2, refused=1)
    sent.admitted_us.extend([100, 200])
    sent.tick(2)
    received = Tally.load(sent.dump())
    assert received.dump() == sent.dump()


def test_shares_of_processes_add_up():
    total, one, other = Tally(), tally(attempted=3, admitted=3), tally(attempted=2, refused=2)
    one.admitted_us.append(7)
    one.tick(1)
    other.tick(2)
    total.add(one)
    total.add(other)
    assert dict(zip(COUNTS, total.counts(), strict=True)) | {"attempted": 5, "admitted": 3, "refused": 2} == dict(
        zip(COUNTS, total.counts(), strict=True)
    )
    assert total.per_second == [(3, 2), (0, 0)]
    assert list(total.admitted_us) == [7]


def test_each_second_has_what_happened_in_it():
    seen = tally(admitted=5)
    seen.tick(1)
    seen.admitted, seen.refused = 7, 1
    seen.tick(3)
    assert seen.per_second == [(5, 0), (2, 1), (0, 0)]


def test_broken_is_what_never_came_about_and_what_was_cut_off():
    assert tally(connect_errors=2, closed_by_broker=3).broken == 5


def test_percentiles():
    assert percentiles_ms(range(1000, 101_000, 1000)) == {"p50": 51.0, "p99": 100.0, "max": 100.0}
    assert percentiles_ms([]) == {"p50": None, "p99": None, "max": None}
