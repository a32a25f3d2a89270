"""The baseline begins when the client has begun all that it does."""

import pytest
from courses import Seen, ns

from turnstile.verdict.steps.baseline import is_all


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


def test_a_new_connection_is_waited_for():
    opened = Seen(0)
    opened.event("admitted", 4.5)
    assert not is_all([*events("Produce"), *opened.events], ns(4))
