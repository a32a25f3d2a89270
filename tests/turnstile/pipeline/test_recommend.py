"""The recommendation without Spark: equal to a search of every cap and every set of addresses, on the plain replay's refusals."""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import combinations
from unittest.mock import patch

import numpy
import pyarrow
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from plain import Row, replay

from turnstile.pipeline.inputs.addresses import Addresses, parse
from turnstile.pipeline.plan import excess, log_sums, recommend
from turnstile.pipeline.plan.candidates import Candidate, paste
from turnstile.pipeline.plan.excess import EXACT, stepped
from turnstile.pipeline.plan.log_sums import LogSums
from turnstile.pipeline.plan.recommend import LogLevels
from turnstile.pipeline.plan.talkers import Greedy, talkers
from turnstile.pipeline.plan.task_sums import Part, TaskSums
from turnstile.pipeline.plan.what_if import NEVER, levels

IPS = [f"10.0.0.{number}" for number in range(1, 8)] + ["2001:db8::1"]
rows = st.tuples(
    st.sampled_from([*IPS, *IPS[:2] * 4]),
    st.integers(0, 30),
    st.one_of(st.integers(0, 20), st.just(NEVER)),
    st.just("A"),
)
logs = st.lists(rows, min_size=1, max_size=70).map(
    lambda log: [(ip, at, NEVER if lasted == NEVER else at + lasted, name) for ip, at, lasted, name in log]
)


@contextmanager
def at_most_overrides(most: int) -> Iterator[None]:
    """So few that tasks have to choose what they tell."""
    with (
        patch.object(excess, "MOST", most),
        patch.object(excess, "KEPT", 2 * most),
        patch.object(recommend, "MOST", most),
        patch.object(log_sums, "MOST", most),
    ):
        yield


def task(log: list[Row], ips: list[str]) -> pyarrow.RecordBatch:
    """What one task tells that has these addresses."""
    mine = [row for row in log if row[0] in ips]
    bits = [parse(row[0]) or (0, 0) for row in mine]
    names, codes = Addresses.of(
        numpy.array([each[0] for each in bits], "u8"), numpy.array([each[1] for each in bits], "u8")
    )
    order = sorted(range(len(mine)), key=lambda place: (codes[place], mine[place][1], place))
    opened, closed = (numpy.array([mine[place][column] for place in order], "i8") for column in (1, 2))
    sums = TaskSums(Part(names, codes[order], opened, closed, int(NEVER)))
    sums.entities(levels(opened, closed, codes[order]))
    return sums.batch()


def sums_of(log: list[Row]) -> LogSums:
    """The sums of two tasks that share the addresses."""
    shares = [[ip for ip in IPS if ip in {row[0] for row in log}][half::2] for half in (0, 1)]
    return LogSums(pyarrow.Table.from_batches([task(log, ips) for ips in shares if ips]))


class Exhaustive:
    """Every cap with every set of addresses, from how many the plain replay refuses of each address."""

    def __init__(self, log: list[Row], left_out: set[str]) -> None:
        log = [row for row in log if row[0] not in left_out]
        self.ips = sorted({row[0] for row in log})
        self.total = len(log)
        self.refused = {
            cap: Counter(log[place][0] for place in replay(log, Candidate(cap=cap))) for cap in range(1, len(log) + 2)
        }

    def left(self, cap: int, overrides: int) -> int:
        """How many are refused with the best set of so many addresses."""
        sets = combinations(self.ips, min(overrides, len(self.ips)))
        return min(sum(self.refused[cap][ip] for ip in self.ips if ip not in spared) for spared in sets)

    def best(self, allowed: int, most: int) -> tuple[int, int, int]:
        """(cap, how many overrides, refused) as docs/planning.md says it."""
        caps = [next(cap for cap in self.refused if self.left(cap, count) <= allowed) for count in range(most + 1)]
        chosen = 0
        for count in range(1, most + 1):
            if caps[count] <= caps[0] / 2 and caps[count] <= caps[chosen] * 0.9:
                chosen = count
        return caps[chosen], chosen, self.left(caps[chosen], chosen)


@settings(max_examples=150)
@given(logs, st.integers(1, 3), st.integers(0, 40), st.sets(st.sampled_from(IPS), max_size=2))
def test_no_cap_and_no_set_of_addresses_is_better(log: list[Row], most: int, percent: int, leaks: set[str]) -> None:
    with at_most_overrides(most):
        found = sums_of(log).levels()
        looked_at = sorted(found.peaks, key=lambda ip: (-found.peaks[ip], parse(ip) or (0, 0)))[:most]
        left_out = leaks & set(looked_at)
        judged = found.without(left_out)
        plain, best = recommend.recommend(judged, at_most=percent / 100)
    search = Exhaustive(log, left_out)
    assert judged.connections == search.total
    allowed = percent * search.total // 100
    assert (plain.cap, plain.refused) == search.best(allowed, 0)[::2]
    expected = search.best(allowed, most)
    assert (best.cap, len(best.overrides), best.refused) == expected
    entries = paste(best.cap, best.overrides)["kafka"].get("max.connections.per.ip.overrides", "")
    rest = [row for row in log if row[0] not in left_out]
    assert len(replay(rest, Candidate(cap=best.cap, overrides=entries))) == best.refused


def test_overrides_go_to_the_most_refused_and_not_to_the_highest_peak() -> None:
    """Twenty addresses had 100 open once; one has 60 open all day, which no low cap can do without."""
    every: dict[str, dict[int, int]] = {f"10.0.1.{number}": dict.fromkeys(range(1, 101), 1) for number in range(20)}
    every["10.0.0.9"] = dict.fromkeys(range(1, 61), 1000)
    counts = Counter[int]()
    for each in every.values():
        counts.update(each)
    log = LogLevels(counts, every, {ip: max(each) for ip, each in every.items()})
    _, best = recommend.recommend(log, at_most=0.01)
    assert best.cap == 1 and next(iter(best.overrides.items())) == ("10.0.0.9", 60)


@pytest.mark.parametrize("percent", range(101))
def test_a_share_is_taken_as_it_is_written(percent: int) -> None:
    """A hundred connections, one of each level: a cap of 100 - n refuses n of them, which is n percent."""
    plain, _ = recommend.recommend(LogLevels(dict.fromkeys(range(1, 101), 1), {}, {}), at_most=percent / 100)
    assert plain.cap == max(1, 100 - percent)


def test_levels_are_told_in_few_steps_above_which_are_as_many() -> None:
    every = numpy.arange(1, 1_000_001)
    steps = stepped(every)
    assert (steps >= every).all() and (steps[:EXACT] == every[:EXACT]).all()
    assert ((steps - every) <= every / 2048).all()
    distinct = numpy.unique(steps)
    assert len(distinct) < 25_000
    for cap in distinct[::997].tolist():
        assert numpy.count_nonzero(every > cap) == numpy.count_nonzero(steps > cap)
    assert stepped(numpy.array([NEVER - 1])).dtype == "i8"


def test_a_million_of_one_address_that_never_close_are_told_in_few_rows() -> None:
    opened = numpy.arange(1_000_000) * 1000
    closed = numpy.full(len(opened), NEVER)
    ips = numpy.zeros(len(opened), "i8")
    part = Part(Addresses(numpy.zeros(1, "u8"), numpy.array([0xFFFF0A000001], "u8")), ips, opened, closed, int(NEVER))
    sums = TaskSums(part)
    sums.entities(levels(opened, closed, ips))
    assert sums.batch().num_rows < 50_000
    found = LogSums(pyarrow.Table.from_batches([sums.batch()])).levels()
    plain, _ = recommend.recommend(found, at_most=0.5)
    assert plain.cap == 500_000 // 128 * 128 + 128 and plain.refused == 1_000_000 - plain.cap


def test_what_stays_open_is_a_leak_only_where_others_close() -> None:
    address = [Greedy("10.0.0.1", 50, 60, None, 60, 10)]
    [leaking] = talkers(address, {1: 40, 50: 1}, {1000: 90}, 150, hours=24, noun="address")
    [usual] = talkers(address, {1: 40, 50: 1}, {1000: 10}, 150, hours=24, noun="address")
    assert (leaking.kind, usual.kind) == ("leak", "unknown")
    assert "60 of them never closed" in leaking.evidence


@pytest.mark.parametrize(
    ("address", "hours", "kind"),
    [
        (Greedy("10.0.0.1", 50, 900, 60_000_000, 0, 90), 24, "nat"),
        (Greedy("10.0.0.1", 50, 60, 60_000_000, 0, 6), 24, "unknown"),  # as many at once, hardly more in all
        (Greedy("10.0.0.1", 50, 900, 500_000_000, 0, 90), 24, "unknown"),  # they last longer than others'
        (Greedy("10.0.0.1", 50, 900, 60_000_000, 0, 600), 24, "unknown"),  # most of them in one hour
        (Greedy("10.0.0.1", 50, 900, 60_000_000, 0, 800), 24, "burst"),
        (Greedy("10.0.0.1", 50, 900, 60_000_000, 0, 900), 0.5, "unknown"),  # a log of half an hour
    ],
)
def test_many_clients_behind_an_address_need_three_signs(address: Greedy, hours: float, kind: str) -> None:
    [found] = talkers([address], {1: 40, 50: 1}, {60_000_000: 2000}, 2000, hours=hours, noun="address")
    assert found.kind == kind
    assert len(found.evidence) == 3 and all(any(digit.isdigit() for digit in each) for each in found.evidence)


@given(st.integers(0, 2**32 - 1))
def test_what_two_tasks_keep_has_the_most_refused_addresses_of_every_cap(seed: int) -> None:
    random = numpy.random.default_rng(seed)
    peaks = random.geometric(0.2, size=60)
    each = [
        numpy.append(numpy.arange(1, peak + 1), random.integers(1, peak + 1, random.integers(0, 40))) for peak in peaks
    ]
    with at_most_overrides(3):
        kept: set[int] = set()
        for half in (0, 1):
            mine = each[half::2]
            sizes = numpy.array([len(levels) for levels in mine])
            found = excess.Excess(sizes, numpy.concatenate(mine), peaks[half::2]).kept()
            kept |= {half + 2 * int(place) for place in found}
    assert len(kept) < 60
    for cap in range(1, int(peaks.max()) + 1):
        above = [int((levels > cap).sum()) for levels in each]
        ordered = sorted((place for place in range(60) if above[place]), key=lambda place: (-above[place], place))
        assert kept.issuperset(ordered[:6]), cap
    assert kept.issuperset(sorted(range(60), key=lambda place: (-peaks[place], place))[:3])
