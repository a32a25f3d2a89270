"""The sampled rate: its three rules by example, and every answer against a plain model of Kafka's two classes."""

import random
from dataclasses import dataclass, field

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from shards.limits.rate import Rate, Window
from shards.limits.throttle_time import throttle_ms

SECOND = 1000


@dataclass
class PlainSample:
    start_ms: int
    last_ms: int
    value: float = 0.0


@dataclass
class PlainRate:
    """SampledStat and Rate, line by line: slow, and nothing kept but the samples."""

    window: Window
    samples: list[PlainSample] = field(default_factory=list)
    current: int = 0

    def record(self, amount: float, now_ms: int) -> None:
        if not self.samples:
            self.samples.append(PlainSample(now_ms, now_ms))
        if now_ms - self.samples[self.current].start_ms >= self.window.size_ms:
            self.current = (self.current + 1) % (self.window.samples + 1)
            if self.current >= len(self.samples):
                self.samples.append(PlainSample(now_ms, now_ms))
            else:
                self.samples[self.current] = PlainSample(now_ms, now_ms)
        self.samples[self.current].value += amount
        self.samples[self.current].last_ms = now_ms

    def measure(self, now_ms: int) -> tuple[float, int]:
        for index, sample in enumerate(self.samples):
            if now_ms - sample.last_ms >= self.window.samples * self.window.size_ms:
                self.samples[index] = PlainSample(now_ms, now_ms)
        total = 0.0
        for sample in self.samples:
            total += sample.value
        if not self.samples:
            self.samples.append(PlainSample(now_ms, now_ms))
        elapsed_ms = now_ms - min(sample.start_ms for sample in self.samples)
        full = elapsed_ms // self.window.size_ms
        if full < self.window.samples - 1:
            elapsed_ms += (self.window.samples - 1 - full) * self.window.size_ms
        window_ms = max(elapsed_ms, 1)
        return total / (window_ms / 1000.0), window_ms


STEPS = st.lists(
    st.tuples(
        st.one_of(st.integers(0, 50), st.sampled_from([999, 1000, 1001, 2999, 3000, 10_999, 11_000, 30_000])),
        st.sampled_from(["charge", "charge", "charge", "charge unlimited", "record", "take back", "measure", "peek"]),
        st.one_of(st.integers(0, 20), st.sampled_from([0.1, 0.7, 1e-3, 3.3])),
    ),
    max_size=80,
)


@given(st.builds(Window, st.integers(1, 5), st.sampled_from([1000, 2000])), st.integers(0, 5), STEPS)
def test_every_answer_is_that_of_the_plain_model(
    window: Window, quota: int, steps: list[tuple[int, str, float]]
) -> None:
    rate, plain, now_ms = Rate(window), PlainRate(window), 0
    for advance_ms, what, amount in steps:
        now_ms += advance_ms
        if what.startswith("charge"):
            limit = None if what == "charge unlimited" else quota
            throttle = rate.charge(amount, limit, now_ms=now_ms, max_ms=10**9)
            plain.record(amount, now_ms)
            per_s, window_ms = plain.measure(now_ms)
            expected = throttle_ms(per_s, quota, window_ms=window_ms, max_ms=10**9)
            assert throttle == (0 if limit is None else expected)
        elif what == "measure":
            assert rate.measure(now_ms=now_ms) == plain.measure(now_ms)[0]
        elif what == "peek":
            again = PlainRate(
                window, [PlainSample(s.start_ms, s.last_ms, s.value) for s in plain.samples], plain.current
            )
            assert rate.peek(now_ms=now_ms) == again.measure(now_ms)[0]
        else:
            amount = -amount if what == "take back" else amount
            rate.record(amount, now_ms=now_ms)
            plain.record(amount, now_ms)


CLEARED_WITHIN_A_SAMPLE = [(0, 1), (300, 1), (999, 1), (1000, 1), (1, 1), (0, 9)]
GAPS = st.sampled_from([0, 1, 300, 999, 1000, 2500, 9000])


@given(st.integers(1, 4), st.sampled_from([2.0, None, 5]), st.booleans(), st.lists(st.tuples(GAPS, st.integers(1, 9))))
@example(2, 2.0, False, CLEARED_WITHIN_A_SAMPLE)
def test_admitting_some_units_is_admitting_one_after_the_other(
    samples: int, quota: float | None, adds_fractions: bool, steps: list[tuple[int, int]]
) -> None:
    together, alone = (Rate(Window(samples, SECOND)) for _ in range(2))
    for rate in (together, alone):
        rate.record(0.5 if adds_fractions else 0, now_ms=0)
    now_ms = 0
    for gap, units in steps:
        now_ms += gap
        within, delay_ms = together.admit(units, quota, now_ms=now_ms, max_ms=SECOND) or (units, 0)
        delays = []
        for _ in range(units):
            delays.append(alone.charge(1, quota, now_ms=now_ms, max_ms=SECOND))
            if delays[-1]:
                alone.record(-1, now_ms=now_ms)
        assert delays == [0] * within + [delay_ms] * (units - within)
        assert together.state() == alone.state()


@given(st.integers(1, 50), st.lists(st.integers(0, 300), min_size=20, max_size=200))
def test_over_any_time_no_more_pass_than_the_quota_and_one_burst(quota: int, gaps: list[int]) -> None:
    """With a take-back for each refused connection, as an address's rate has it (KIP-612)."""
    rate, now_ms, passed = Rate(), 0, []
    for gap in gaps:
        now_ms += gap
        if rate.charge(1, quota, now_ms=now_ms):
            rate.record(-1, now_ms=now_ms)
        else:
            passed.append(now_ms)
    for index, start_ms in enumerate(passed):
        within = [at for at in passed[index:] if at - start_ms <= 10 * SECOND]
        assert len(within) <= quota * 12 + 1


def test_a_burst_of_quota_times_the_full_windows_passes_at_once_and_not_one_more() -> None:
    rate = Rate(Window(11, SECOND))
    assert [rate.charge(1, 5, now_ms=0) for _ in range(50)] == [0] * 50
    assert rate.charge(1, 5, now_ms=0) == 200  # 5.1/s over 5/s, of 10 s


def test_a_sample_starts_at_a_record_and_is_complete_a_window_later() -> None:
    rate = Rate(Window(2, SECOND))
    rate.record(10, now_ms=500)
    rate.record(10, now_ms=1499)  # the same sample still
    assert rate.peek(now_ms=1499) == pytest.approx(20 / 1.999)
    rate.record(0, now_ms=1500)  # the next one
    assert rate.peek(now_ms=3498) == pytest.approx(20 / 2.998)  # until its last record is two windows old
    assert rate.peek(now_ms=3499) == 0


def test_taking_back_leaves_the_rate_as_it_was() -> None:
    rate = Rate()
    rate.record(7, now_ms=0)
    before = rate.peek(now_ms=10)
    rate.record(3, now_ms=10)
    rate.record(-3, now_ms=10)
    assert rate.peek(now_ms=10) == before


def test_undoing_takes_out_of_the_sample_that_it_was_recorded_in() -> None:
    rate, without = Rate(), Rate()
    for at_ms, amount in ((0, 5), (600, 3), (1200, 4), (2500, 1)):
        rate.record(amount, now_ms=at_ms)
        without.record(amount if at_ms != 600 else 0, now_ms=at_ms)
    rate.undo(3, at_ms=600)
    for now_ms in (2500, 11_300, 11_700, 12_300, 14_000):
        assert rate.peek(now_ms=now_ms) == without.peek(now_ms=now_ms)
        assert rate.charge(0, 0, now_ms=now_ms) == without.charge(0, 0, now_ms=now_ms)


def test_undoing_what_counts_no_more_does_nothing() -> None:
    rate = Rate()
    rate.record(5, now_ms=0)
    rate.charge(2, 1, now_ms=11_000)
    rate.undo(5, at_ms=0)
    assert rate.peek(now_ms=11_000) == 0.2


def test_measuring_changes_what_comes_later_and_peeking_does_not() -> None:
    """obsolete_by_last_record: the first sample, cleared at 11 s, starts there, and at 21.5 s it is the oldest."""

    def story(looked: bool) -> float:
        rate = Rate()
        rate.record(1, now_ms=0)
        rate.record(1, now_ms=10_000)
        if looked:
            rate.measure(now_ms=11_000)
        else:
            rate.peek(now_ms=11_000)
        rate.record(42, now_ms=21_500)
        return rate.measure(now_ms=21_500)

    assert story(looked=False) == 4.2
    assert story(looked=True) == 4.0


def test_nothing_recorded_is_a_rate_of_zero() -> None:
    assert Rate().measure(now_ms=5) == Rate().peek(now_ms=5) == 0
    assert Rate().idle_since_ms() is None


@pytest.mark.parametrize("seed", range(20))
def test_what_another_meter_recorded_is_counted_as_if_it_had_been_recorded_here(seed):
    chance = random.Random(seed)
    whole, here, at_ms = Rate(Window(3, 1000)), Rate(Window(3, 1000)), 0
    for _ in range(300):
        at_ms += chance.choice([0, 1, 50, 400, 1500, 4000])
        amount = chance.randint(1, 100)
        quota = chance.choice([10, 100, 1000])
        expected = whole.charge(amount, quota, now_ms=at_ms)
        if chance.random() < 0.5:
            here.insert(amount, at_ms=at_ms, now_ms=at_ms)
        else:
            assert here.charge(amount, quota, now_ms=at_ms) == expected


@pytest.mark.parametrize("seed", range(20))
def test_what_is_told_late_counts_for_a_whole_window_from_when_it_was_recorded(seed):
    chance = random.Random(seed)
    window = Window(chance.choice([1, 3, 11]), 1000)
    rate, late, recorded, now_ms = Rate(window), [], [], 0
    for _ in range(300):
        now_ms += chance.choice([0, 1, 50, 400, 1500, 4000])
        amount = chance.randint(1, 100)
        recorded.append((now_ms, amount))
        if chance.random() < 0.5:
            late.append((now_ms, amount))
        else:
            rate.charge(amount, None, now_ms=now_ms)
        if chance.random() < 0.2:
            for at_ms, told in late:
                rate.insert(told, at_ms=at_ms, now_ms=now_ms)
            late = []
        if not late:
            counts = sum(each for at_ms, each in recorded if at_ms > now_ms - window.samples * 1000)
            assert counts <= rate.units(now_ms=now_ms)
            assert len(rate._values) <= window.samples + 1
