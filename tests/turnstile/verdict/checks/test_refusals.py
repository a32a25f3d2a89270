"""The checks of refusals, on timelines written by hand: growth, jitter, connections, recovery and the end."""

import random
from dataclasses import replace

import pytest
from courses import Seen, ns, refused

from turnstile.verdict.checks import backoff, footprint, herd, recovery, shutdown


def verdict(check, seen):
    return check.judge(seen.timeline()).verdict


def exponential(until_s=6.0, first_s=0.05, most_s=1.0, jitter=0.0, seed=0):
    source, at_s, pause_s, found = random.Random(seed), 0.0, first_s, []
    while at_s < until_s:
        found.append(at_s)
        at_s += pause_s * source.uniform(1 - jitter, 1 + jitter)
        pause_s = min(2 * pause_s, most_s)
    return found


def test_pauses_that_grow():
    assert verdict(backoff, refused(*exponential())) == "pass"
    assert verdict(backoff, refused(*(n / 2 for n in range(12)))) == "warn", "twice a second for ever"
    assert verdict(backoff, refused(*(n / 100 for n in range(600)))) == "fail"
    assert verdict(backoff, refused(0, 1.5, 3, 4.5)) == "pass", "the pauses were long from the beginning"
    assert verdict(backoff, refused(0)) == "unjudged"
    assert verdict(backoff, Seen()) == "unjudged"


@pytest.mark.parametrize(("usual", "told"), [(0.02, "fail"), (0.9, "pass")])
def test_a_busy_loop_shows_in_cpu_time_alone(usual, told):
    seen = refused(*exponential())
    seen.busy = [(ns(0), 0.0), (ns(4), 4 * usual), (ns(4.1), 4 * usual), (ns(9.9), 4 * usual + 5.5)]
    assert verdict(backoff, seen) == told


def cut(copies, jitter):
    seen = Seen(1)
    seen.step("herd", 4, 14, copies=copies, cut_ns=5, lifted_ns=12)
    for copy in range(copies):
        for at_s in exponential(7, jitter=jitter, seed=copy):
            seen.event("refused", 5 + at_s, 0)
    return seen


@pytest.mark.parametrize("copies", [4, 5, 20])
def test_copies_that_come_back_in_step(copies):
    assert verdict(herd, cut(copies, 0.0)) == "fail"
    assert verdict(herd, cut(copies, 0.25)) == "pass"
    assert verdict(herd, Seen()) == "unjudged"


def opened(*more_s, closed_s=()):
    seen = refused(*exponential())
    for number, at_s in enumerate(more_s, start=10):
        seen.event("admitted", at_s, number)
    for number, at_s in enumerate(closed_s, start=10):
        seen.event("closed", at_s, number)
    return seen


def test_connections_do_not_pile_up():
    assert verdict(footprint, opened()) == "pass"
    assert verdict(footprint, opened(5, 6, closed_s=(8, 8))) == "pass"
    assert verdict(footprint, opened(5, 6)) == "warn", "not back to the baseline"
    assert verdict(footprint, opened(5, 6, 7, closed_s=(8, 8, 8))) == "fail"


def test_a_killed_shard_takes_its_connections_with_it():
    seen = opened()
    seen.step("kill", 12, 14, place=(0, 0, 1), lifted_ns=12, recovered_ns=12.5)
    for number in range(30, 34):
        seen.event("admitted", 12.3, number)
    assert verdict(footprint, seen) == "fail"
    assert seen.timeline().most_open(lambda at_ns: at_ns > ns(12)) == 4


@pytest.mark.parametrize(("recovered_s", "told"), [(0.3, "pass"), (7, "warn"), (None, "fail")])
def test_recovery(recovered_s, told):
    assert verdict(recovery, refused(0, recovered_s=recovered_s)) == told


def test_who_does_not_come_back_to_a_running_cluster_may_have_been_ended():
    gone = replace(refused(0, recovered_s=None).timeline(), is_attached=True)
    assert recovery.judge(gone).verdict == "unjudged"


def test_a_failed_login_may_be_final():
    seen = refused(0)
    seen.step("refuse", 13, 20, recovery.FAILED_LOGIN, lifted_ns=18, recovered_ns=None, has_ended=True)
    assert verdict(recovery, seen) == "warn"


@pytest.mark.parametrize(("ended_s", "told"), [(10.5, "pass"), (17, "warn"), (21, "fail"), (None, "fail")])
def test_the_end(ended_s, told):
    seen = Seen()
    seen.step("shutdown", 9, 22, signalled_ns=10, ended_ns=ended_s)
    assert verdict(shutdown, seen) == told
    assert verdict(shutdown, Seen()) == "unjudged"
