"""The checks of throttling, on timelines written by hand: each fails for what it is about, and says when it can't tell."""

from dataclasses import replace

import pytest
from courses import Seen, ns, throttled

from turnstile.verdict.card import api_lines
from turnstile.verdict.checks import deadline, delivery, groups, kip219, kip599, kip714, not_failure
from turnstile.verdict.finding import ApiFinding
from turnstile.verdict.pauses import usual_pauses_ms


def verdict(check, seen):
    return check.judge(seen.timeline()).verdict


def test_nothing_arrives_on_a_muted_connection():
    assert verdict(kip219, throttled()) == "pass"
    assert verdict(kip219, Seen()) == "unjudged"


@pytest.mark.parametrize(("told", "verdict_"), [(2, "unjudged"), (3, "pass")])
def test_two_throttled_responses_say_little(told, verdict_):
    seen = Seen()
    seen.step("throttle", 4, 9)
    for number in range(told):
        seen.request(4.1 + number, throttle_ms=400)
    assert verdict(kip219, seen) == verdict_


@pytest.mark.parametrize(("early", "told"), [(0, "pass"), (2, "warn"), (3, "fail"), (9, "fail")])
def test_what_arrives_in_the_middle_of_a_mute_is_early(early, told):
    seen = throttled()
    for number in range(early):
        seen.event("early", 4.2 + number / 2, took_ms=200)
    assert verdict(kip219, seen) == told


@pytest.mark.parametrize(("early", "told"), [(2, "pass"), (8, "fail")])
def test_what_arrives_at_once_may_have_been_under_way_but_not_every_time(early, told):
    seen = throttled()
    for number in range(early):
        seen.event("early", 4.001 + number / 2, took_ms=1)
    assert verdict(kip219, seen) == told


def test_what_arrives_at_once_after_two_responses_of_each_length():
    seen = Seen()
    seen.step("throttle", 4, 9)
    for number, throttle_ms in enumerate((250, 250, 300, 300, 400, 400)):
        seen.request(4.1 + number / 2, throttle_ms=throttle_ms, value=0 if number % 2 else 90)
        if number % 2:
            seen.event("early", 4.102 + number / 2, took_ms=2)
    assert verdict(kip219, seen) == "fail"


@pytest.mark.parametrize(("api", "throttle_ms"), [("Fetch", 250), ("Produce", 1500)])
def test_a_client_that_waits_for_some_throttle_times_only(api, throttle_ms):
    seen = throttled(60)
    for number in range(3):
        seen.request(4.25 + number, 2, api=api, throttle_ms=throttle_ms)
        seen.event("early", 4.35 + number, 2, took_ms=100)
    found = kip219.judge(seen.timeline())
    assert found.verdict == "fail" and f"as a rule after {api} throttled by {throttle_ms} ms" in found.evidence


def test_each_api_is_judged_by_itself_and_the_worst_is_told_first():
    seen = throttled(20)
    for number in range(3):
        seen.request(4.25 + 2 * number, 2, api="ShareFetch", throttle_ms=400)
        seen.event("early", 4.35 + 2 * number, 2, took_ms=100)
        seen.request(4.30 + 2 * number, 3, api="OffsetCommit", throttle_ms=400)
    seen.request(4.4, 4, api="FindCoordinator", throttle_ms=400)
    found = kip219.judge(seen.timeline())
    assert found.verdict == "fail" and "after ShareFetch throttled by 400 ms" in found.evidence
    assert [(each.api, each.verdict, each.throttled, each.early) for each in found.apis] == [
        ("ShareFetch", "fail", 3, 3),
        ("OffsetCommit", "pass", 3, 0),
        ("Produce", "pass", 20, 0),
        ("FindCoordinator", "unjudged", 1, 0),
    ]
    assert "KAFKA-20828" in found.apis[0].known and found.apis[1].known == ""
    told = api_lines(found.apis)
    assert told[0].startswith("fail ShareFetch: after 3 of 3 throttled responses (") and "KAFKA-20828" in told[0]
    assert told[1:] == ["pass OffsetCommit (3), Produce (20)", "unjudged FindCoordinator (1)"]


@pytest.mark.parametrize(("throttle_ms", "told"), [(400, "unjudged"), (2600, "pass")])
def test_an_api_passes_only_if_it_was_throttled_for_longer_than_the_usual_pause_after_it(throttle_ms, told):
    seen = Seen()
    for at_s in (0.0, 2.0, 4.0):
        seen.request(at_s, 2, api="ConsumerGroupHeartbeat", took_ms=1)
    seen.step("throttle", 4, 14)
    for number in range(3):
        seen.request(6.0 + number * 2.6, 2, api="ConsumerGroupHeartbeat", throttle_ms=throttle_ms)
    (found,) = kip219.judge(seen.timeline()).apis
    assert (found.api, found.verdict) == ("ConsumerGroupHeartbeat", told)


def test_pauses_are_from_an_answer_to_the_next_request_of_its_connection():
    seen = Seen(0)
    seen.events = []
    for at_s in (0.0, 3.0, 6.0):
        seen.request(at_s, 1, api="Heartbeat", took_ms=100)
        seen.request(at_s + 1, 1, api="OffsetCommit", throttle_ms=50)
        seen.request(at_s + 0.5, 2, api="Produce", took_ms=4000)
    seen.request(9.0, 3, api="InitProducerId")
    assert usual_pauses_ms(seen.timeline().events) == {"Heartbeat": 900, "Produce": 0}


def test_what_arrives_early_while_the_machine_stalls_is_not_the_clients():
    def stalled(early):
        seen = throttled()
        for number in range(early):
            seen.event("early", 4.2 + number / 2, took_ms=200)
            seen.stalled((4.05 + number / 2, 4.15 + number / 2))
        return seen

    found = kip219.judge(stalled(4).timeline())
    assert found.verdict == "unjudged" and found.evidence.startswith("this machine stalled")
    assert verdict(kip219, stalled(5)) == "fail", "it is the rule, and so no chance"
    seen = stalled(4)
    for number in range(3):
        seen.event("early", 4.45 + number / 2, took_ms=450)
    assert verdict(kip219, seen) == "fail", "by more than that"


@pytest.mark.parametrize(("stalled", "told"), [(7, "pass"), (8, "unjudged")])
def test_nothing_arrives_of_a_client_that_got_no_cpu(stalled, told):
    seen = throttled()
    for number in range(stalled):
        seen.stalled((4.1 + number / 2, 4.4 + number / 2))
    assert verdict(kip219, seen) == told


def test_what_arrives_early_once_in_a_while_is_said_and_no_more():
    seen = throttled(20)
    seen.event("early", 4.2, took_ms=200)
    found = kip219.judge(seen.timeline())
    assert found.verdict == "pass" and "after 1 of 20 throttled responses" in found.evidence


def overlap(*sent_s, waiting=50, behind=0):
    """1000 ms told at 4.2, while another request waits; 100 ms told to that at 4.35; and then requests of 50 bytes.

    `behind`: bytes that have arrived when the 100 ms are told.
    """
    seen = Seen()
    seen.step("overlap", 4, 6)
    seen.request(4.05, took_ms=150, value=waiting, size=50)
    seen.event("fault", 4.2, api="Produce", reason="throttle", value=1000)
    seen.request(4.2, took_ms=150, value=behind, size=50)
    seen.event("fault", 4.35, api="Produce", reason="throttle", value=100)
    for at_s in sent_s:
        seen.request(at_s, size=50)
    return seen


def test_the_later_of_two_deadlines_holds():
    assert verdict(deadline, overlap(5.21)) == "pass"
    assert verdict(deadline, overlap(4.46, 4.6)) == "fail"
    assert deadline.judge(overlap(4.46, 4.6).timeline()).apis == (ApiFinding("Produce", "fail", 1, 1),)
    assert verdict(deadline, overlap(4.36, behind=50)) == "unjudged", "it waits for none"
    assert verdict(deadline, overlap(4.37)) == "unjudged", "nor does this one"
    assert verdict(deadline, overlap(4.36, waiting=100, behind=50)) == "pass", "that was on the way, too"
    assert verdict(deadline, overlap(5.21, waiting=0)) == "unjudged", "the second was sent in spite of the first"
    assert verdict(deadline, throttled()) == "unjudged"
    slow = overlap(4.46, 4.6)
    slow.step("throttle", 7, 12)
    for at_s in (7, 8, 9):
        slow.request(at_s, throttle_ms=400)
        slow.event("early", at_s + 0.2, took_ms=200)
    assert verdict(deadline, slow) == "unjudged", "it waits for no throttle time: that it came late is chance"


def test_a_pair_in_which_the_machine_stalled_says_nothing():
    seen = overlap(4.46, 4.6)
    seen.stalled((4.3, 4.4))
    found = deadline.judge(seen.timeline())
    assert (found.verdict, found.evidence) == ("unjudged", "this machine stalled in each of its pairs")


def test_to_be_throttled_is_no_reason_to_close():
    assert verdict(not_failure, throttled()) == "pass"
    seen = throttled()
    seen.event("closed", 4.3, reason="client")
    assert verdict(not_failure, seen) == "warn"
    seen.event("closed", 4.8, reason="client")
    assert verdict(not_failure, seen) == "fail"
    other = throttled()
    for number in (7, 8):
        other.event("closed", 4.5, number, reason="client")
    assert verdict(not_failure, other) == "pass", "not of a connection that was throttled"


def test_a_client_of_a_running_cluster_may_be_ended_by_others():
    gone = throttled(api="Fetch")
    gone.events = [event for event in gone.events if event.at_ns < ns(6)]
    for number in (1, 2):
        gone.request(0.5, number, api="JoinGroup")
        gone.request(5.5, number, api="Fetch", throttle_ms=400)
        gone.event("closed", 6, number, reason="client")
    assert (verdict(not_failure, gone), verdict(groups, gone)) == ("fail", "fail")
    attached = replace(gone.timeline(), is_attached=True)
    assert (not_failure.judge(attached).verdict, groups.judge(attached).verdict) == ("pass", "unjudged")


def member(*joined_s, beats_s=(4, 6, 8)):
    seen = throttled(api="Fetch")
    seen.request(9.2, api="Fetch")
    for at_s in (0.5, *joined_s):
        seen.request(at_s, 2, api="JoinGroup")
    for at_s in beats_s:
        seen.request(at_s, 2, api="Heartbeat")
    return seen


@pytest.mark.parametrize("kind", ["Consumer", "Share", "Streams"])
def test_a_member_of_a_group_that_joins_by_its_heartbeat_stays_one(kind):
    fetch = "ShareFetch" if kind == "Share" else "Fetch"
    seen = throttled(api=fetch)
    for at_s in (0.5, 4, 8.5):
        seen.request(at_s, 2, api=f"{kind}GroupHeartbeat")
    assert verdict(groups, seen) == "fail", "no fetch after a throttled one"
    seen.request(9.2, api=fetch)
    found = groups.judge(seen.timeline())
    assert found.verdict == "pass" and "heartbeats at most 4.5 s apart" in found.evidence


def test_a_throttled_member_stays_one():
    assert verdict(groups, member()) == "pass"
    assert verdict(groups, member(5)) == "fail"
    assert verdict(groups, throttled()) == "unjudged"
    slow = member(beats_s=())
    slow.request(4, 2, api="Heartbeat", throttle_ms=6000)
    slow.request(15, 2, api="Heartbeat")
    assert verdict(groups, slow) == "pass", "it may send no heartbeat while it is throttled"
    slow.request(25.1, 2, api="Heartbeat")
    slow.step("throttle", 9, 26)
    assert verdict(groups, slow) == "fail"
    silent = throttled(api="Fetch")
    silent.request(1, api="JoinGroup")
    assert verdict(groups, silent) == "fail", "no Fetch after a throttled one"


def mutation(again_s, throttle_ms=1000, **columns):
    seen = Seen()
    seen.step("mutation", 4, 8)
    seen.request(5, api="CreateTopics", throttle_ms=throttle_ms)
    seen.event("early" if columns else "request", again_s, 2, api=columns.get("api", "CreateTopics"))
    return seen


def test_a_mutation_is_not_tried_again_too_soon():
    assert verdict(kip599, mutation(6.01)) == "pass"
    assert verdict(kip599, mutation(5.5)) == "fail", "on another connection"
    assert verdict(kip599, mutation(5.5, api="")) == "fail", "on the muted one"
    assert verdict(kip599, mutation(5.1, throttle_ms=40)) == "unjudged", "that is over before anybody tries again"
    assert verdict(kip599, throttled()) == "unjudged"


def telemetry(*answers, asked=1):
    """One step of pushes, by the error of each answer; as many requests for subscriptions behind them."""
    seen = Seen()
    seen.step("telemetry", 4, 14)
    seen.steps[-1] = seen.steps[-1]._replace(detail={"interval_ms": 1000})
    for place, error in enumerate(answers):
        seen.request(4 + place / 2, api="PushTelemetry", reason=error)
    for place in range(asked):
        seen.request(13 + place / 10, api="GetTelemetrySubscriptions")
    return seen


def test_telemetry_is_pushed_as_told():
    assert verdict(kip714, telemetry("", "", "")) == "pass"
    assert verdict(kip714, telemetry("", "", "", "THROTTLING_QUOTA_EXCEEDED")) == "fail"
    assert verdict(kip714, telemetry("", "", "UNKNOWN_SUBSCRIPTION_ID", "")) == "pass"
    assert verdict(kip714, telemetry("", *["UNKNOWN_SUBSCRIPTION_ID"] * 3, asked=1)) == "fail", "it did not ask again"
    assert verdict(kip714, telemetry("", "")) == "unjudged"
    assert verdict(kip714, throttled()) == "unjudged"


def test_an_error_that_the_course_has_made_is_not_the_clients():
    seen = telemetry("", "", "", "THROTTLING_QUOTA_EXCEEDED")
    seen.event("fault", 5.5, api="PushTelemetry", reason="error")
    assert verdict(kip714, seen) == "pass"
    seen.request(5.7, api="PushTelemetry", reason="THROTTLING_QUOTA_EXCEEDED")
    seen.request(5.8, api="PushTelemetry", reason="THROTTLING_QUOTA_EXCEEDED")
    assert verdict(kip714, seen) == "fail", "it pushed again at once"


def test_a_push_that_came_late_makes_the_next_one_early():
    seen = telemetry("", "", "", "THROTTLING_QUOTA_EXCEEDED")
    seen.stalled((4.7, 5.0), (5.1, 5.5))
    assert verdict(kip714, seen) == "fail", "by more than that"
    seen.stalled((4.5, 4.7))
    assert verdict(kip714, seen) == "unjudged"


@pytest.mark.parametrize(("code", "told"), [(1, "fail"), (0, "pass"), (None, "pass")])
def test_a_client_that_crashes_when_throttled_takes_it_for_failure(code, told):
    seen = throttled()
    seen.steps[-1] = seen.steps[-1]._replace(detail={"exit_code": code})
    assert verdict(not_failure, seen) == told, "who has done all its work may end"


def test_two_instances_push_in_turns():
    seen = telemetry(*[""] * 3)
    for place in range(3):
        seen.request(4.2 + place / 2, 2, api="PushTelemetry")
    assert verdict(kip714, seen) == "pass"


def test_pushes_that_a_machine_delays_do_not_show_that_none_is_early():
    seen = telemetry(*[""] * 4)
    seen.stalled((4.1, 4.4), (4.6, 4.9))
    assert verdict(kip714, seen) == "unjudged", "two of three are late by more than a quarter of an interval"
    seen = telemetry(*[""] * 4)
    seen.stalled((4.1, 4.3), (4.6, 4.9))
    assert verdict(kip714, seen) == "pass"


def produced(*numbers, text="order-{}", stamps=None):
    seen = throttled()
    for place, number in enumerate(numbers):
        seen.record(1 + (place if stamps is None else stamps[place]) / 10, text.format(number).encode())
    return seen


def test_nothing_is_lost_or_doubled():
    assert verdict(delivery, produced(*range(60))) == "pass"
    assert verdict(delivery, produced(*range(40), *range(41, 60))) == "fail"
    assert verdict(delivery, produced(*range(50), 49, stamps=[*range(50), 49])) == "fail"
    plain = delivery.judge(produced(*"abcdefgh").timeline())
    assert plain.verdict == "pass" and "can't be told" in plain.evidence
    assert verdict(delivery, produced(*"aa", stamps=[0, 0])) == "unjudged", "its records are alike"
    assert verdict(delivery, throttled()) == "unjudged"


def test_a_record_that_was_stamped_again_is_not_lost():
    seen = produced(*range(40), *range(41, 60))
    seen.record(12, b"order-40")
    assert verdict(delivery, seen) == "pass"
    herd = produced(*range(40), *range(41, 60))
    herd.step("herd", 11, 14, copies=2, cut_ns=0, lifted_ns=0)
    herd.record(12, b"order-40")
    assert verdict(delivery, herd) == "fail", "a copy's"
