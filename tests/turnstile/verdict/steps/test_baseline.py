"""The baseline begins when the client has begun all that it does."""

from dataclasses import replace
from pathlib import Path

import pytest
from courses import Seen, ns

from turnstile.verdict.judged import CannotJudge
from turnstile.verdict.machine import Machine
from turnstile.verdict.stage import Stage
from turnstile.verdict.steps.baseline import baseline, is_all
from turnstile.verdict.tail import Tail
from turnstile.verdict.times import Times
from turnstile.verdict.watch import Watch


def events(*apis):
    """A connection at 0 s, and the first requests of APIs half a second apart from 1 s on, each made again at 9 s."""
    seen = Seen(0)
    seen.events.clear()
    seen.event("admitted", 0.0)
    for number, api in enumerate(apis):
        seen.request(1 + number / 2, api=api)
        seen.request(9, api=api)
    return seen.events


@pytest.mark.parametrize(
    ("apis", "before_s", "told"),
    [
        (["Produce"], 2, True),
        (["Produce"], 0.9, False),
        (["JoinGroup", "Heartbeat"], 5, False),
        (["Produce", "JoinGroup", "Fetch"], 5, True),
        (["Produce", "JoinGroup", "Fetch"], 1.9, False),
        (["ConsumerGroupHeartbeat"], 5, False),
    ],
)
def test_all_that_it_does(apis, before_s, told):
    assert is_all(events(*apis), ns(before_s)) == told


@pytest.mark.parametrize(
    ("target", "who"),
    [({"client_id": "orders"}, "no client with client-id=orders asked"), ({}, "no client at .TURNSTILE_BOOTSTRAP, ")],
)
def test_who_was_waited_for_is_said(target, who):
    watch = Watch(Tail(Path("/nonexistent")), target)
    times = replace(Times(), connect_s=0)
    with pytest.raises(CannotJudge, match=who):
        baseline(Stage(None, watch, Machine(), None, times=times, seed=0, target=target, say=lambda sentence: None))


def test_a_new_connection_is_waited_for():
    opened = Seen(0)
    opened.event("admitted", 4.5)
    assert not is_all([*events("Produce"), *opened.events], ns(4))
