"""The whole of a verdict: its checks, its exit code, and its page."""

from courses import refused, throttled

from turnstile.verdict.card import lines
from turnstile.verdict.finding import Finding, worst
from turnstile.verdict.judge import CHECKS, exit_code, judge, steps_of
from turnstile.verdict.page import COLOURS, page
from turnstile.verdict.run import Verdict


def test_the_checks_are_those_of_the_documents():
    ids = "kip219 deadline not-failure backoff herd footprint groups kip599 kip714 delivery recovery shutdown"
    assert list(CHECKS) == ids.split()
    assert steps_of(["kip219", "recovery"]) == {"throttle", "refuse", "rate", "kill"}


def test_exit_code_follows_from_the_verdicts():
    def code(*verdicts):
        return exit_code({str(n): Finding(verdict, "", "") for n, verdict in enumerate(verdicts)})

    assert (code("pass", "warn", "unjudged"), code("pass", "fail"), code("unjudged"), code()) == (0, 1, 2, 2)


def test_the_worst_of_several_judged_ones_counts():
    assert worst([("pass", "a"), ("warn", "b"), ("unjudged", "c")]) == ("warn", "b; a; c")
    assert worst([("unjudged", "c")]) == ("unjudged", "c")


def test_the_page_has_a_picture_of_what_was_judged():
    seen = refused(0, 0.1, 0.3)
    seen.event("early", 4.2, took_ms=5)
    timeline = seen.timeline()
    findings = judge(timeline, CHECKS)
    verdict = Verdict("<client>", findings, timeline, "")
    text = page(verdict)
    assert "&lt;client&gt;" in text and "<client>" not in text
    assert text.count("<svg") == sum(1 for name in ("backoff", "footprint", "recovery"))
    assert [each["id"] for each in verdict.as_json()["checks"]] == list(CHECKS)
    assert page(Verdict("x", judge(throttled().timeline(), ["kip219"]), throttled().timeline(), "")).count("<svg") == 1


def test_the_card_and_the_page_say_first_in_words_what_is_judged():
    timeline = throttled().timeline()
    verdict = Verdict("x", judge(timeline, ["kip219"]), timeline, "")
    [(_, first, _)] = lines(verdict)
    assert first == "sends nothing while it is throttled (kip219)"
    assert "<h2>sends nothing while it is throttled (kip219)</h2>" in page(verdict)
    assert f'<td class="text"><span class="badge" style="color:{COLOURS[verdict.findings["kip219"].verdict]}"' in page(
        verdict
    )


def test_no_client_is_blamed_for_what_a_stall_may_do_to_timeouts():
    seen = refused(*(number / 100 for number in range(600)))
    for number in range(10, 14):
        seen.event("admitted", 5, number)
    seen.stalled((6, 7.5))
    found = judge(seen.timeline(), ["footprint", "backoff"])
    assert found["footprint"].verdict == "unjudged"
    assert found["footprint"].evidence.startswith("this machine stalled for 1.5 s meanwhile: 1 connections")
    assert found["backoff"].verdict == "fail", "a stall makes no attempts"


def test_no_client_is_blamed_where_a_shard_ended_by_itself():
    seen = refused(*(number / 100 for number in range(600)))
    assert judge(seen.timeline(), ["backoff"])["backoff"].verdict == "fail"
    seen.events.append(seen.events[-1]._replace(conn=(0, 0, 2, 1)))
    found = judge(seen.timeline(), ["backoff"])["backoff"]
    assert found.verdict == "unjudged" and found.evidence.startswith("a shard of the cluster ended by itself")
    seen.step("kill", 12, 13, place=(0, 0, 1), lifted_ns=12, recovered_ns=12)
    assert judge(seen.timeline(), ["backoff"])["backoff"].verdict == "fail", "the course had killed it"
