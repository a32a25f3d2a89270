"""Headroom above what a log shows, and the commands that set it."""

import shlex
import subprocess
from fractions import Fraction

from hypothesis import given
from hypothesis import strategies as st

from turnstile.pipeline.plan.candidates import commands
from turnstile.pipeline.plan.recommend import LogLevels, recommend
from turnstile.pipeline.plan.variants import raised, variants

HALF = Fraction(1, 2)


def of_peaks(peaks: dict[str, int]) -> LogLevels:
    """A log in which each address opens as many connections as its peak, and closes none."""
    levels: dict[int, int] = {}
    counts: dict[int, int] = {}
    for peak in peaks.values():
        counts[peak] = counts.get(peak, 0) + 1
        for level in range(1, peak + 1):
            levels[level] = levels.get(level, 0) + 1
    of_address = {ip: dict.fromkeys(range(1, peak + 1), 1) for ip, peak in peaks.items()}
    return LogLevels(levels, of_address, peaks, counts)


def test_a_day_with_one_connection_more_is_no_outage() -> None:
    """The issue's example: a cap and overrides that equal what was observed."""
    log = of_peaks({"10.0.0.1": 40, "10.0.0.2": 12, **{f"10.0.1.{number}": 3 for number in range(50)}})
    simple, tight = variants(log, log, recommend(log, at_most=0.0), HALF)
    assert (simple.without_headroom, simple.cap, simple.overrides) == (40, 60, {})
    assert (tight.without_headroom, tight.cap) == (3, 5)
    assert tight.overrides == {"10.0.0.1": 60, "10.0.0.2": 18}
    assert tight.entities_hit == tight.refused == tight.entities_close == 0


def test_an_address_that_the_raised_cap_suffices_for_needs_no_override() -> None:
    log = of_peaks({"10.0.0.1": 40, "10.0.0.2": 5, **{f"10.0.1.{number}": 4 for number in range(50)}})
    tight = variants(log, log, recommend(log, at_most=0.0), HALF)[-1]
    assert all(override > tight.cap for override in tight.overrides.values())


@given(
    st.dictionaries(st.integers(0, 60).map(lambda n: f"10.0.0.{n}"), st.integers(1, 40), min_size=1), st.integers(0, 99)
)
def test_what_a_variant_hits_is_what_is_above_it(peaks: dict[str, int], percent: int) -> None:
    log, headroom = of_peaks(peaks), Fraction(percent, 100)
    for each in variants(log, log, recommend(log, at_most=0.1), headroom):
        limit = {ip: each.overrides.get(ip, each.cap) for ip in peaks}
        over = {ip for ip, peak in peaks.items() if peak > limit[ip]}
        close = {ip for ip, peak in peaks.items() if raised(peak, headroom) > limit[ip]} - over
        assert (each.entities_hit, each.entities_close) == (len(over), len(close))
        assert each.refused == sum(max(0, peak - limit[ip]) for ip, peak in peaks.items())
        assert set(each.hit) <= over and len(each.hit) == min(5, len(over))


def test_commands_reach_their_program_as_they_are_meant() -> None:
    """Through a shell: rpk gets a JSON list, Kafka's tool a file with a line for each setting."""
    told = commands(5, {"10.0.0.1": 50, "2001:db8::1": 7})
    assert shlex.split(told["turnstile"][1])[-2:] == [
        "kafka_connections_max_overrides", '["10.0.0.1:50", "[2001:db8::1]:7"]',
    ]  # fmt: skip
    script = 'kafka-configs.sh() { cat "${@: -1}"; }; ' + told["kafka"][0]
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == [
        "max.connections.per.ip=5", "max.connections.per.ip.overrides=10.0.0.1:50,[2001:db8::1]:7",
    ]  # fmt: skip
    assert commands(5, {})["kafka"][0].endswith("--add-config max.connections.per.ip=5")
