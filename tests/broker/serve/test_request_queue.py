"""Requests that wait for a handler, and a shard that reads and answers nothing while too many of them do."""

from contextlib import closing

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from queued_shard import FETCH, HEARTBEAT, PRODUCE, QueuedShard, received, request


@pytest.fixture
def shard():
    with closing(QueuedShard()) as made:
        yield made


def opened(shard, count):
    return [shard.open()[0] for _ in range(count)]


def ask(client, body, key=PRODUCE):
    client.sendall(request(key, body))


def test_requests_are_served_and_answered_when_their_handlers_time_is_over(shard):
    first, second = opened(shard, 2)
    ask(first, b"a")
    ask(second, b"b")
    shard.wait(9)
    assert shard.served == [] and (received(first), received(second)) == (b"", b"")
    shard.wait(1)
    assert (received(first), received(second)) == (b"a", b"")
    shard.wait(10)
    assert received(second) == b"b" and shard.served == [(b"a", 10), (b"b", 20)]


def test_what_costs_nothing_is_answered_at_once_while_a_handler_is_idle_and_waits_its_turn_else(shard):
    first, second = opened(shard, 2)
    ask(first, b"beat", HEARTBEAT)
    shard.turn()
    assert received(first) == b"beat"
    ask(first, b"a")
    shard.turn()
    ask(second, b"beat", HEARTBEAT)
    shard.wait(9)
    assert received(second) == b""
    shard.wait(1)
    assert (received(first), received(second)) == (b"a", b"beat")


def test_a_full_queue_stalls_every_connection_of_the_shard(shard):
    clients = opened(shard, 5)
    for client, body in zip(clients, (b"a", b"b", b"c", b"d"), strict=False):
        ask(client, body)
    shard.turn()
    ask(clients[4], b"beat", HEARTBEAT)
    shard.wait(9)
    assert clients[4].send(b"") == 0 and shard.queue.queued == 2
    shard.wait(1)
    assert [received(client) for client in clients[:4]] == [b"a", b"", b"", b""], "d fits the queue: the thread goes on"
    assert received(clients[4]) == b"", "and reads the request that blocks it again"
    shard.wait(10)
    assert [received(client) for client in clients] == [b"", b"b", b"", b"", b""]
    shard.wait(20)
    assert [received(client) for client in clients] == [b"", b"", b"c", b"d", b"beat"]
    assert shard.queue.blocked_ns == 20_000_000


def test_answers_wait_while_the_thread_is_blocked_and_leave_before_it_blocks_again(shard):
    """Six are read together: until the last of them is in the queue nothing is sent."""
    clients = opened(shard, 6)
    for number, client in enumerate(clients):
        ask(client, b"%d" % number)
    shard.wait(29)
    assert len(shard.served) == 2 and not any(map(received, clients))
    shard.wait(1)
    assert [received(client) for client in clients] == [b"0", b"1", b"2", b"", b"", b""]


def test_what_clients_had_sent_behind_their_answers_may_block_it_again_at_once(shard):
    clients = opened(shard, 6)
    for number, client in enumerate(clients):
        ask(client, b"%d" % number)
    for client in clients[:3]:
        ask(client, b"more")
    shard.wait(30)
    assert [received(client) for client in clients] == [b"0", b"1", b"2", b"", b"", b""]
    shard.wait(29)
    assert [received(client) for client in clients] == [b""] * 6, "three requests more wait for room"
    shard.wait(1)
    assert [received(client) for client in clients] == [b"", b"", b"", b"3", b"4", b"5"]


def test_a_client_that_pipelines_does_not_keep_others_from_being_read(shard):
    """blocked_thread_turns: after each block all that are ready are read, one request each."""
    greedy, modest = opened(shard, 2)
    for _ in range(3):
        clients = opened(shard, 1)
        ask(clients[0], b"filler")
    for number in range(20):
        ask(greedy, b"g%d" % number)
    shard.turn()
    ask(modest, b"modest")
    shard.wait(100)
    assert b"modest" in [body for body, _ in shard.served[:6]]
    assert received(modest) == b"modest"


def test_while_it_is_blocked_what_clients_send_waits_in_the_kernel(shard):
    clients = opened(shard, 4)
    for client in clients:
        ask(client, b"x")
    shard.turn()
    client, connection = shard.open()
    client.sendall(request(PRODUCE, bytes(1000)))
    shard.wait(9)
    assert connection.received is None and not connection.busy and connection.bytes_moved == 0
    shard.wait(50)
    assert connection.requests == 1


def test_a_client_that_has_left_is_served_and_not_answered(shard):
    first, _ = shard.open()
    second, connection = shard.open()
    ask(first, b"a")
    shard.turn()
    ask(second, b"b")
    shard.turn()
    second.close()
    shard.turn()
    assert connection.closed and shard.ended == ["client"], "what it held is free at once"
    shard.wait(20)
    assert shard.served == [(b"a", 10), (b"b", 20)] and not shard.bugs


def test_requests_behind_one_that_waits_are_served_one_by_one_though_their_client_has_left(shard):
    """Else a client that leaves would fill the queue with whatever it had sent."""
    client, connection = shard.open()
    for number in range(6):
        ask(client, b"acks0 %d" % number)
    shard.turn()
    client.close()
    shard.wait(35)
    assert shard.queue.queued == 0 and [ms for _, ms in shard.served] == [10, 20, 30] and not connection.closed
    shard.wait(100)
    assert [ms for _, ms in shard.served] == [10, 20, 30, 40, 50, 60] and connection.closed


def test_a_client_that_leaves_while_the_thread_is_blocked_is_noticed_when_that_is_over(shard):
    clients = opened(shard, 4)
    gone, connection = shard.open()
    for client in clients:
        ask(client, b"x")
    shard.turn()
    gone.close()
    shard.wait(9)
    assert not connection.closed
    shard.wait(1)
    assert connection.closed


def test_a_request_that_can_not_be_answered_ends_its_connection_when_its_turn_comes(shard):
    client, connection = shard.open()
    ask(client, b"bad")
    shard.wait(9)
    assert not connection.closed
    shard.wait(1)
    assert connection.closed and shard.faults == ["bad"]


@pytest.mark.parametrize(("body", "bugs"), [(b"bug", 1), (b"bad", 0)])
def test_a_mistake_of_ours_is_said_also_when_the_client_has_left(shard, body, bugs):
    first, second = opened(shard, 2)
    ask(first, b"a")
    ask(second, body)
    shard.turn()
    second.close()
    shard.wait(20)
    assert len(shard.bugs) == bugs


def test_what_waits_for_its_answer_needs_no_handler(shard):
    """waiting_needs_no_handler; and an answer that comes while the thread is blocked waits, too."""
    clients = opened(shard, 6)
    ask(clients[0], b"later")
    shard.wait(10)
    for client in clients[1:5]:
        ask(client, b"x")
    shard.turn()
    shard.laters[b"later"].resolve(b"late")
    shard.turn()
    assert received(clients[0]) == b""
    shard.wait(10)
    assert (received(clients[0]), received(clients[1])) == (b"late", b"x")


@pytest.fixture
def fetching():
    with closing(QueuedShard("Fetch=1ms+4ms/KiB,Produce=10ms")) as made:
        yield made


def test_the_bytes_of_an_answer_are_spent_by_the_handler_that_fetched_them(fetching):
    shard = fetching
    first, second = opened(shard, 2)
    ask(first, bytes(2048), FETCH)
    ask(second, b"b")
    shard.wait(8.9)
    assert shard.served[0][1] == 1 and received(first) == b""
    shard.wait(0.1)
    assert received(first) == bytes(2048)
    shard.wait(10)
    assert received(second) == b"b"


def test_those_of_an_answer_that_came_later_are_spent_by_the_next_free_handler(fetching):
    shard = fetching
    first, second, third = opened(shard, 3)
    ask(first, b"later", FETCH)
    shard.wait(1)
    ask(second, b"b")
    shard.turn()
    ask(third, b"c")
    shard.turn()
    shard.laters[b"later"].resolve(bytes(1024))
    shard.wait(10)
    assert received(second) == b"b" and received(first) == b""
    shard.wait(4)
    assert received(first) == bytes(1024) and received(third) == b""
    shard.wait(10)
    assert received(third) == b"c"


def test_a_fetch_whose_client_leaves_while_it_waits_is_cancelled(shard):
    client, connection = shard.open()
    ask(client, b"later")
    shard.wait(10)
    ended = []
    shard.laters[b"later"].ends_by(lambda: ended.append(1))
    client.close()
    shard.turn()
    assert connection.closed and ended


def test_a_request_that_would_wait_is_not_waited_for_when_its_client_has_left(shard):
    first, second = opened(shard, 2)
    ask(first, b"a")
    ask(second, b"later")
    shard.turn()
    second.close()
    shard.wait(20)
    assert shard.laters[b"later"]._cancelled


def test_a_muted_channel_is_not_read_before_the_thread_goes_on(shard):
    muted, connection = shard.open()
    clients = opened(shard, 4)
    ask(muted, b"throttle")
    ask(muted, b"beat", HEARTBEAT)
    shard.wait(10)
    assert received(muted) == b"throttle" and connection.muted
    shard.wait(9)
    for client in clients:
        ask(client, b"x")
    shard.wait(8)
    assert connection.muted, "its delay is over"
    shard.wait(2)
    assert not connection.muted
    shard.wait(50)
    assert received(muted) == b"beat"


def test_switched_off_it_serves_all_that_waits_and_is_not_on_the_path_any_more(shard):
    clients = opened(shard, 5)
    for client in clients:
        ask(client, b"x")
    shard.turn()
    shard.change(**{"turnstile.request.queue": "false"})
    ask(clients[0], b"behind")
    shard.turn()
    assert [received(client) for client in clients] == [b"xbehind", b"x", b"x", b"x", b"x"]
    assert shard.queue.size == 0 and shard.queue.around(shard._serve) == shard._serve
    shard.change(**{"turnstile.request.queue": "true"})
    ask(clients[1], b"y")
    shard.wait(9)
    assert received(clients[1]) == b""


def test_what_is_read_while_it_is_switched_off_costs_no_handler_time(shard):
    """Answers that waited for a blocked thread leave first, and with them goes on what their clients had sent behind."""
    clients = opened(shard, 6)
    for client in clients:
        ask(client, b"x")
    for client in clients[:2]:
        ask(client, b"behind")
    shard.wait(20)
    shard.change(**{"turnstile.request.queue": "false"})
    assert [received(client) for client in clients] == [b"xbehind", b"xbehind", b"x", b"x", b"x", b"x"]


def test_more_handlers_take_up_what_waits(shard):
    clients = opened(shard, 5)
    for client in clients:
        ask(client, b"x")
    shard.wait(5)
    shard.change(**{"num.io.threads": "3"})
    assert shard.queue.queued == 2
    shard.wait(5)
    assert [received(client) for client in clients] == [b"x", b"", b"", b"", b""]
    shard.wait(5)
    assert [received(client) for client in clients] == [b"", b"x", b"x", b"", b""]


def test_queued_requests_count_for_the_memory_of_requests(shard):
    clients = opened(shard, 4)
    for client in clients[:3]:
        ask(client, bytes(60_000))
    shard.turn()
    assert shard.requests.used == 3 * 60_008
    shard.requests.check()
    large = request(PRODUCE, bytes(150_000))
    clients[3].setblocking(True)
    clients[3].sendall(large[:70_000])
    shard.turn()
    clients[3].sendall(large[70_000:140_000])
    shard.wait(1)
    assert shard.requests.used > 200_000 or shard.requests._beyond is not None
    clients[3].sendall(large[140_000:])
    shard.wait(60)
    assert shard.requests.used == 0 and len(shard.served) == 4
    shard.requests.check()


def test_a_large_request_that_waits_for_memory_is_read_when_the_thread_goes_on(shard):
    client, connection = shard.open()
    large = request(PRODUCE, bytes(110_000))
    client.setblocking(True)
    client.sendall(large[:70_000])
    shard.turn()
    others = opened(shard, 4)
    for other in others:
        ask(other, bytes(60_000))
    client.sendall(large[70_000:80_000])
    shard.turn()
    assert connection.waits_for_memory
    client.sendall(large[80_000:])
    shard.wait(9)
    assert connection.waits_for_memory, "the thread is blocked"
    shard.wait(100)
    assert len(shard.served) == 5 and shard.requests.used == 0


def test_dropped_requests_hold_no_memory_and_block_nothing(shard):
    made = [shard.open() for _ in range(5)]
    for client, _ in made:
        ask(client, b"x")
    shard.turn()
    for _, connection in made:
        connection.close("reset")
    shard.queue.reset()
    shard.wait(100)
    assert shard.served == [] and shard.requests.used == 0
    client, _ = shard.open()
    ask(client, b"y")
    shard.wait(10)
    assert received(client) == b"y"


def test_frames_that_no_handler_is_asked_for_are_answered_by_the_thread(shard):
    busy, short, unknown = opened(shard, 3)
    ask(busy, b"x")
    shard.turn()
    ask(unknown, b"y", key=999)
    short.sendall((3).to_bytes(4, "big") + b"abc")
    shard.turn()
    assert [body for body, _ in shard.served] == [b"y", b""]


def test_before_authentication_the_thread_answers(shard):
    busy, connection = shard.open()
    ask(busy, b"x")
    shard.turn()
    client, connection = shard.open()
    connection.authentication = object()
    ask(client, b"login")
    shard.turn()
    assert received(client) == b"login"


@pytest.mark.parametrize(
    ("shards", "handlers", "places", "share", "warned"),
    [(2, 5, 7, 3, []), (3, 3, 3, 1, []), (4, 3, 2, 1, ["num.io.threads", "queued.max.requests"])],
)
def test_shares_of_shards_are_equal_and_one_at_least_which_is_said(shards, handlers, places, share, warned):
    given = {"num.io.threads": str(handlers), "queued.max.requests": str(places)}
    with closing(QueuedShard(shards=shards, **given)) as shard:
        assert shard.queue.size == share
        assert [each["setting"] for each in shard.warned] == warned
        for client in opened(shard, share + places // shards + 2):
            ask(client, b"x")
        shard.turn()
        assert shard.queue.queued == max(-(-places // shards), 1)


def test_handlers_idle_share_is_the_mean_since_they_are_there(shard):
    client, _ = shard.open()
    ask(client, b"x")
    shard.wait(40)
    shard.poller.touch()
    assert shard.queue.idle_share() == pytest.approx(0.75)
    assert shard.queue.busy_ns() == 10_000_000 and shard.queue.taken == 1


def test_parts_of_the_idle_share_add_up_to_the_mean_over_the_brokers_handlers():
    parts = []
    for number in range(2):
        with closing(QueuedShard(shards=2, shard=number, **{"num.io.threads": "3"})) as shard:
            assert shard.queue.size == 2 - number
            ask(shard.open()[0], b"x")
            shard.wait(40)
            shard.poller.touch()
            parts.append(shard.queue.part_of_idle_share())
    # Of three handlers for 40 ms, two are busy for 10 ms each.
    assert sum(parts) == pytest.approx(1 - 20 / 120)


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("ask"), st.integers(0, 5), st.sampled_from([PRODUCE, FETCH, HEARTBEAT]), st.integers(1, 3)),
        st.tuples(st.just("later"), st.integers(0, 5)),
        st.tuples(st.just("resolve")),
        st.tuples(st.just("close"), st.integers(0, 5)),
        st.tuples(st.just("wait"), st.integers(0, 25)),
        st.tuples(st.just("lag"), st.integers(0, 25)),
        st.tuples(st.just("threads"), st.integers(1, 3)),
        st.tuples(st.just("switch"), st.booleans()),
    ),
    max_size=40,
)


@given(STEPS, st.booleans(), st.booleans())
@example([("later", 3), *(("ask", number, PRODUCE, 1) for number in range(3))], False, False)
def test_each_client_that_stays_is_answered_in_order_and_nothing_is_left_behind(steps, all_at_once, is_hurried):
    """Whatever clients do: their requests are served once each, one at a time, and the thread is blocked for nobody for good."""
    with closing(QueuedShard("Produce=10ms,Fetch=2ms+1ms/KiB")) as shard:
        shard.is_hurried = is_hurried
        made, sent, told, closed = [shard.open() for _ in range(6)], [[] for _ in range(6)], [b""] * 6, set()

        def send(number, key, body):
            if number not in closed:
                sent[number].append(body)
                ask(made[number][0], body, key)

        for count, (step, *values) in enumerate(steps):
            match step, values:
                case "ask", [number, key, repeated]:
                    for each in range(repeated):
                        send(number, key, b"<%d.%d>" % (count, each))
                case "later", [number]:
                    send(number, FETCH, b"later<%d>" % count)
                case "resolve", []:
                    resolve_all(shard)
                case "close", [number]:
                    closed.add(number)
                    made[number][0].close()
                case "wait", [ms]:
                    shard.wait(ms)
                case "lag", [ms]:
                    shard.lag(ms)
                case "threads", [threads]:
                    shard.change(**{"num.io.threads": str(threads)})
                case "switch", [on]:
                    shard.change(**{"turnstile.request.queue": str(on).lower()})
            if not all_at_once:
                shard.turn()
            assert shard.queue.queued <= 2
            shard.requests.check()
        for _ in range(200):
            shard.wait(10)
            resolve_all(shard)
            for number in set(range(6)) - closed:
                told[number] += received(made[number][0])
        for number in range(6):
            if number in closed:
                assert made[number][1].closed
            else:
                assert told[number] == b"".join(sent[number])
        bodies = [body for body, _ in shard.served]
        assert len(set(bodies)) == len(bodies)
        assert shard.requests.used == 0 and shard.queue.queued == 0 and not shard.muted
        held = shard.poller._held  # one that was released after the last pass is dropped by the next one
        assert held is None or (held.released and held.after_release is None and not held.descriptors)


def resolve_all(shard):
    waiting, shard.laters = shard.laters, {}
    for body, answer in waiting.items():
        answer.resolve(body)
    shard.turn()
