"""Request handlers and their queue: as the recurrence of a queue of first come, first served, whenever it is asked."""

import heapq

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.serve.request_handlers import RequestHandlers

ARRIVALS = st.lists(st.tuples(st.integers(0, 30), st.integers(0, 40)), max_size=25)  # (after so long, takes so long)


def modelled(handlers, arrivals):
    """[(arrived, begun, done)] of each request: it begins with the first handler that is free, once it is there."""
    free, now, found = [0] * handlers, 0, []
    for after, takes in arrivals:
        now += after
        begun = max(now, heapq.heappop(free))
        heapq.heappush(free, begun + takes)
        found.append((now, begun, begun + takes))
    return found


def drained(pool, now):
    """What has been finished by `now`: [(request, at)]."""
    found = []
    while (finished := pool.finish(now)) is not None:
        found.append(tuple(finished))
        pool.free(finished)
        pool.check()
    return found


@given(st.integers(1, 4), st.integers(1, 4), ARRIVALS, st.data())
def test_each_request_begins_and_ends_when_the_model_says_and_blocks_what_it_blocks_there(
    handlers, queue_size, arrivals, data
):
    """time_is_exact, first_in_first_out, queue_is_bounded: however late anything is noticed."""
    model = modelled(handlers, arrivals)
    pool, done = RequestHandlers(handlers, queue_size), {}
    for number, (_, takes) in enumerate(arrivals):
        arrived = model[number][0]
        if data.draw(st.booleans()):
            done |= drained(pool, arrived)
            waiting = sum(begun > arrived for _, begun, _ in model[:number])
            assert pool.queued == min(waiting, queue_size)
            assert pool.is_blocked == (waiting > queue_size)
        pool.put(number, takes, arrived)
        pool.check()
    done |= drained(pool, 10**9)
    assert done == {number: end for number, (_, _, end) in enumerate(model)}
    assert pool.taken == len(model)
    assert pool.waited_ns == sum(begun - arrived for arrived, begun, _ in model)
    assert pool.busy_ns(10**9) == sum(takes for _, takes in arrivals)


@given(st.integers(1, 3), ARRIVALS, st.integers(0, 2000))
def test_the_time_for_which_handlers_were_busy_is_that_until_now(handlers, arrivals, later):
    model = modelled(handlers, arrivals)
    now = (model[-1][0] if model else 0) + later
    pool = RequestHandlers(handlers, 100)
    for number, (arrived, _, _) in enumerate(model):
        pool.put(number, arrivals[number][1], arrived)
    drained(pool, now)
    assert pool.busy_ns(now) == sum(max(min(end, now) - begun, 0) for _, begun, end in model)


def test_requests_beyond_the_queue_block_and_move_up_in_their_order():
    pool = RequestHandlers(1, 2)
    for request in "abcde":
        pool.put(request, 10, 0)
    assert (pool.queued, pool.is_blocked) == (2, True)
    assert drained(pool, 10) == [("a", 10)] and pool.is_blocked, "d is in the queue, e is not"
    assert drained(pool, 20) == [("b", 20)] and not pool.is_blocked
    assert drained(pool, 50) == [("c", 30), ("d", 40), ("e", 50)]
    assert pool.next_ns is None


def test_a_handler_that_is_kept_takes_up_nothing_else():
    pool = RequestHandlers(1, 5)
    pool.put("fetch", 10, 0)
    pool.put("next", 1, 0)
    finished = pool.finish(10)
    assert finished == ("fetch", 10) and not pool.has_idle
    pool.keep(finished, 5)
    assert pool.finish(14) is None and drained(pool, 16) == [("fetch", 15), ("next", 16)]
    assert pool.taken == 2 and pool.busy_ns(16) == 16


def test_what_has_been_served_goes_before_all_that_are_queued():
    pool = RequestHandlers(1, 1)
    for request in "abc":
        pool.put(request, 10, 0)
    pool.put_first("served", 3, 5)
    assert drained(pool, 100) == [("a", 10), ("served", 13), ("b", 23), ("c", 33)]
    assert pool.taken == 3, "it had been taken before"


def test_more_handlers_take_up_what_waits_and_fewer_end_with_what_they_have():
    pool = RequestHandlers(1, 2)
    for request in "abcdef":
        pool.put(request, 10, 0)
    pool.resize(4, 5)
    assert (pool.queued, pool.is_blocked) == (2, False)
    pool.resize(1, 6)
    assert drained(pool, 15) == [("a", 10), ("b", 15), ("c", 15), ("d", 15)]
    assert pool.queued == 1 and pool.next_ns == 25, "one handler is left, for e"


def test_dismissed_handlers_are_done_at_once_with_all_that_waits_in_its_order():
    pool = RequestHandlers(2, 1)
    for request, time in zip("abcde", (30, 20, 10, 10, 10), strict=True):
        pool.put(request, time, 0)
    pool.put_first("first", 10, 1)
    pool.dismiss(5)
    assert [request for request, _ in drained(pool, 5)] == ["b", "a", "first", "c", "d", "e"]
    assert pool.busy_ns(5) == pool.busy_ns(100) == 10
    pool.put("more", 10, 6)
    assert drained(pool, 16) == [("more", 16)]


@pytest.mark.parametrize("handlers", [1, None])
def test_dropped_requests_are_told_and_cost_no_handler_more_time(handlers):
    pool = RequestHandlers(handlers, 1)
    for request in "abc":
        pool.put(request, 10, 0)
    pool.put_first("first", 10, 0)
    assert sorted(pool.clear(4)) == ["a", "b", "c", "first"]
    assert pool.busy_ns(100) == (4 if handlers else 16)
    assert pool.next_ns is None and pool.has_idle and not pool.is_blocked
    pool.check()
