"""Watchers that are not called for a while: what came meanwhile is told afterwards, once, and to nobody else."""

import os

import pytest

from shards.loop.held_events import HeldEvents
from shards.loop.poller import EPOLLET, EPOLLHUP, EPOLLIN, EPOLLOUT, EPOLLRDHUP, Poller


class Pipe:
    """A watcher of the end of a pipe that is read."""

    def __init__(self, poller):
        self.readable, self.writable = os.pipe()
        self.seen = []
        poller.watch(self.readable, self, EPOLLIN | EPOLLET)

    def ready(self, events):
        self.seen.append(events)

    def write(self):
        os.write(self.writable, b"x")


class Held(Pipe):
    """One of the class that is held."""


@pytest.fixture
def poller():
    made = Poller()
    yield made
    made.close()


@pytest.fixture
def pipe(poller):
    made = []

    def make(kind=Held):
        made.append(kind(poller))
        return made[-1]

    yield make
    for each in made:
        os.close(each.readable)
        if each.writable is not None:
            os.close(each.writable)


def passes(poller):
    count = 0
    while poller.run_pass():
        count += 1
        assert count < 10, "it does not spin"
    return count


def test_held_watchers_are_called_after_the_release_and_others_at_once(poller, pipe):
    held, other = pipe(), pipe(Pipe)
    poller.hold(Held)
    held.write()
    other.write()
    passes(poller)
    assert held.seen == [] and len(other.seen) == 1 and poller.holds(held.readable)
    poller.release()
    passes(poller)
    assert held.seen == [EPOLLIN] and not poller.holds(held.readable)
    held.write()
    passes(poller)
    assert len(held.seen) == 2


def test_events_of_one_watcher_are_told_together_also_with_one_of_the_pass_itself(poller, pipe):
    held = pipe()
    poller.hold(Held)
    held.write()
    passes(poller)
    os.close(held.writable)
    held.writable = None
    poller.release()
    passes(poller)
    assert held.seen == [EPOLLIN | EPOLLHUP]


def test_none_of_its_events_is_lost():
    watchers = {5: object()}
    held = HeldEvents(object)
    for events in (EPOLLIN, EPOLLRDHUP):
        assert held.sift([(5, events)], {}, watchers) == []
    held.release()
    assert held.sift([(5, EPOLLOUT)], {5: None}, watchers) == [(5, EPOLLIN | EPOLLRDHUP | EPOLLOUT)]


def test_a_callback_that_asked_to_be_called_again_is_called_after_the_release(poller, pipe):
    held = pipe()
    poller.again(held.readable)
    poller.hold(Held)
    passes(poller)
    assert held.seen == []
    poller.release()
    passes(poller)
    assert held.seen == [0]


def test_of_a_descriptor_that_is_another_watchers_by_then_nothing_is_told(poller, pipe):
    held = pipe()
    poller.hold(Held)
    held.write()
    passes(poller)
    poller.unwatch(held.readable)
    os.read(held.readable, 1)
    other = []
    poller.watch(held.readable, type("Other", (), {"ready": lambda self, events: other.append(events)})(), EPOLLIN)
    poller.release()
    passes(poller)
    assert held.seen == [] and all(events == 0 for events in other)


def test_those_that_are_held_again_before_they_were_called_are_called_first(poller, pipe):
    """released_for_a_pass"""
    held, late = pipe(), pipe()
    poller.hold(Held)
    held.write()
    passes(poller)
    poller.release()
    poller.hold(Held)
    late.write()
    passes(poller)
    assert held.seen == [EPOLLIN] and late.seen == [EPOLLIN], "in one pass"
    held.write()
    passes(poller)
    assert len(held.seen) == 1
    poller.release()
    poller.release()
    passes(poller)
    assert len(held.seen) == 2


def test_those_that_were_held_again_and_released_before_the_pass_are_not_held(poller, pipe):
    held = pipe()
    poller.hold(Held)
    poller.release()
    poller.hold(Held)
    poller.release()
    held.write()
    passes(poller)
    held.write()
    passes(poller)
    assert len(held.seen) == 2


def test_a_release_of_nothing_does_nothing(poller, pipe):
    poller.release()
    poller.hold(Held)
    poller.release()
    held = pipe()
    held.write()
    passes(poller)
    assert held.seen == [EPOLLIN]
