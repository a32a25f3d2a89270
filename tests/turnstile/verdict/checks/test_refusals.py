"""The checks of refusals, on timelines written by hand: growth, jitter, connections, recovery and the end."""

import random
from dataclasses import replace

import pytest
from courses import Seen, ns, refused

from turnstile.verdict.checks import backoff, footprint, herd, recovery, shutdown
from turnstile.verdict.machine import Beat
from turnstile.verdict.timeline import MS, Busy


def verdict(check, seen):
    return check.judge(seen.timeline()).verdict


def exponential(until_s=6.0, first_s=0.05, most_s=1.0, jitter=0.0, seed=0):
    source, at_s, pause_s, found = random.Random(seed), 0.0, first_s, []
    while at_s < until_s:
        found.append(at_s)
        at_s += pause_s * source.uniform(1 - jitter, 1 + jitter)
        pause_s = min(2 * pause_s, most_s)
    return found


def test_growing_pauses_pass_and_hasty_ones_fail():
    assert verdict(backoff, refused(*exponential())) == "pass"
    assert verdict(backoff, refused(*(n / 2 for n in range(12)))) == "warn", "twice a second for ever"
    assert verdict(backoff, refused(*(n / 100 for n in range(600)))) == "fail"
    assert verdict(backoff, refused(0, 1.5, 3, 4.5)) == "pass", "the pauses were long from the beginning"
    assert verdict(backoff, refused(0)) == "unjudged"
    assert verdict(backoff, Seen()) == "unjudged"


def test_time_for_which_the_machine_stalled_counts_for_no_client():
    attempts_s = [n / 8 for n in range(48) if not 2.5 <= n / 8 < 3 and not 4 <= n / 8 < 5]
    assert verdict(backoff, refused(*attempts_s)) == "warn", "a pause of its own"
    starved = refused(*attempts_s)
    starved.stalled((8, 9))
    assert verdict(backoff, starved) == "fail"


def test_one_client_of_two_that_storms_fails_both():
    """As librdkafka's did in one step of eight: one tried 20 times a second, the other waited for its back-off."""
    assert verdict(backoff, refused(*(n / 20 for n in range(120)), connections=3)) == "fail"


def busy(usual, then, attempts_s=()):
    """Shares of a second for which its threads ran and waited for a CPU: before, and while refused."""
    seen = refused(*(attempts_s or exponential()))
    seen.busy = [Busy(ns(0), 0.0, 0.0), Busy(ns(4), 4 * usual[0], 4 * usual[1])]
    ran_s, waited_s = 4 * usual[0], 4 * usual[1]
    seen.busy += [Busy(ns(4.1), ran_s, waited_s), Busy(ns(9.9), ran_s + 5.8 * then[0], waited_s + 5.8 * then[1])]
    return verdict(backoff, seen)


def test_a_busy_loop_shows_in_cpu_time_alone():
    assert busy((0.02, 0), (0.95, 0)) == "fail"
    assert busy((0.02, 0), (0.3, 0.65)) == "fail", "others have the CPU"
    assert busy((0.05, 0.5), (0.4, 0.58)) == "fail", "and had it before"
    assert busy((0.9, 0), (0.95, 0)) == "pass", "it is always that busy"
    assert busy((0.02, 0.02), (0.1, 0.4)) == "pass"


def test_many_threads_that_wait_for_a_cpu_are_no_busy_loop():
    many = [n / 100 for n in range(300)]
    assert busy((0.02, 0.02), (0.3, 3.0), attempts_s=many) == "pass"


def cut(copies, jitter, *, connections=1, late_ms=1.0, together=False):
    """Copies cut at 5 s. `together`: the connections of one copy are tried at one instant."""
    seen = Seen(connections)
    seen.step("herd", 4, 14, copies=copies, cut_ns=5, lifted_ns=12)
    seen.machine.beats += [Beat(ns(5 + number / 50), int(late_ms * MS)) for number in range(350)]
    for copy in range(copies):
        for connection in range(connections):
            for at_s in exponential(7, jitter=jitter, seed=copy if together else 100 * copy + connection):
                seen.event("refused", 5 + at_s, 0)
    return seen


@pytest.mark.parametrize("connections", [1, 3])
@pytest.mark.parametrize("copies", [4, 5, 20])
def test_copies_that_come_back_in_step(copies, connections):
    assert verdict(herd, cut(copies, 0.0, connections=connections)) == "fail"
    assert verdict(herd, cut(copies, 0.25, connections=connections)) == "pass"
    assert verdict(herd, Seen()) == "unjudged"


def test_connections_of_one_copy_are_no_herd():
    seen = cut(5, 0.25, connections=3, together=True)
    assert verdict(herd, seen) == "unjudged", "how they come alone is not known"
    seen.step("refuse", 14, 22, "closed at accept", lifted_ns=20, recovered_ns=20)
    for at_s in exponential(6, jitter=0.25):
        for _ in range(3):
            seen.event("refused", 14 + at_s, 0)
    assert verdict(herd, seen) == "pass"


def test_a_machine_that_wakes_threads_late_puts_copies_apart():
    assert verdict(herd, cut(5, 0.25, late_ms=9)) == "unjudged"
    assert verdict(herd, cut(5, 0.0, late_ms=9)) == "fail", "although it does"


def test_what_a_stall_has_held_up_is_no_herd():
    seen = cut(5, 0.25)
    seen.machine.beats.clear()
    for number in range(12):
        ended_s = 7.1 + 0.4 * number
        seen.stalled((ended_s - 0.1, ended_s))
        for copy in range(5):
            seen.event("refused", ended_s + copy / 1000, 0)
    assert verdict(herd, seen) == "unjudged"
    seen.machine.beats.clear()
    assert verdict(herd, seen) == "fail"


def test_attempts_without_pauses_are_too_dense():
    seen = Seen(1)
    seen.step("herd", 4, 14, copies=5, cut_ns=5, lifted_ns=12)
    for number in range(700):
        seen.event("refused", 5 + number / 100, 0)
    assert verdict(herd, seen) == "unjudged"


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


@pytest.mark.parametrize(("closed_s", "told"), [(6.1, "pass"), (6.5, "fail")])
def test_an_end_that_is_seen_a_little_later_than_the_next_beginning_is_no_pile(closed_s, told):
    seen = refused(*exponential(), connections=4)
    for number in range(1, 5):
        seen.event("admitted", 6, 10 + number)
        seen.event("closed", closed_s, number)
    assert verdict(footprint, seen) == told


def test_connections_whose_login_failed_are_the_brokers():
    seen = opened()
    seen.step("refuse", 13, 20, recovery.FAILED_LOGIN, lifted_ns=18, recovered_ns=18.1)
    for number in range(10, 20):
        seen.event("admitted", 14, number)
        seen.event("closed", 14.2, number)
    assert verdict(footprint, seen) == "pass"


@pytest.mark.parametrize(("next_s", "told"), [(24, "pass"), (20, "fail")])
def test_copies_that_end_before_the_next_step_are_no_pile(next_s, told):
    seen = opened()
    seen.step("herd", 13, 20, "copies")
    for number in range(10, 20):
        seen.event("admitted", 21, number)
        seen.event("closed", 23, number)
    seen.step("refuse", next_s, 30, "reset", lifted_ns=28, recovered_ns=28.1)
    assert verdict(footprint, seen) == told


def test_a_killed_shard_takes_its_connections_with_it_and_no_others():
    seen = opened()
    for number in range(30, 34):
        seen.event("admitted", 12.3, number)
    for place, told in (((0, 0, 1), "pass"), ((0, 1, 1), "fail")):
        seen.steps = seen.steps[:2]
        seen.step("kill", 12, 14, place=place, lifted_ns=12, recovered_ns=12.5)
        assert verdict(footprint, seen) == told


def test_a_connection_that_was_given_up_while_it_was_held_is_none():
    seen = opened()
    for number in range(30, 34):
        seen.event("admitted", 11, number)
        seen.event("closed", 11.1, number)
    assert verdict(footprint, seen) == "pass"


@pytest.mark.parametrize(("recovered_s", "told"), [(0.3, "pass"), (7, "warn"), (None, "fail")])
def test_recovery_is_judged_by_its_time(recovered_s, told):
    assert verdict(recovery, refused(0, recovered_s=recovered_s)) == told


def test_time_for_which_the_machine_stalled_is_not_the_clients():
    seen = refused(0, recovered_s=7)
    seen.stalled((11, 14))
    assert verdict(recovery, seen) == "unjudged"
    late = Seen()
    late.step("shutdown", 9, 22, signalled_ns=10, ended_ns=17)
    late.stalled((11, 14))
    assert verdict(shutdown, late) == "unjudged"


def test_a_client_that_got_no_cpu_is_not_blamed_for_still_being_there():
    def told(waited_s):
        seen = refused(0, recovered_s=None)
        seen.step("shutdown", 12, 24, signalled_ns=12, ended_ns=None)
        for at_s in (10.1, 11.9, 12, 24):
            seen.busy.append(Busy(ns(at_s), 0.0, waited_s * at_s))
        return verdict(recovery, seen), verdict(shutdown, seen)

    assert told(0.1) == ("fail", "fail")
    assert told(0.5) == ("unjudged", "unjudged")


def test_a_client_that_does_not_come_back_to_a_running_cluster_may_have_been_ended():
    gone = replace(refused(0, recovered_s=None).timeline(), is_attached=True)
    assert recovery.judge(gone).verdict == "unjudged"


@pytest.mark.parametrize("step", [recovery.FAILED_LOGIN, recovery.ANSWERED_WITH_AN_ERROR])
def test_a_failed_login_and_an_error_for_an_answer_may_be_final(step):
    seen = refused(0)
    seen.step("refuse", 13, 20, step, lifted_ns=18, recovered_ns=None, has_ended=True)
    assert verdict(recovery, seen) == "warn"


@pytest.mark.parametrize(("ended_s", "told"), [(10.5, "pass"), (17, "warn"), (21, "fail"), (None, "fail")])
def test_shutdown_is_judged_by_when_it_ended(ended_s, told):
    seen = Seen()
    seen.step("shutdown", 9, 22, signalled_ns=10, ended_ns=ended_s)
    assert verdict(shutdown, seen) == told
    assert verdict(shutdown, Seen()) == "unjudged"
