"""Memory of unfinished requests and unread answers, and that no connection waits for it for good."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.serve.request_memory import SMALL_BYTES, STALLED_S, AnswerMemory, RequestMemory

MIB = 1 << 20


class Desk:
    """A limit of 10 MiB; `soon` is what is to be called in a moment."""

    def __init__(self, limit=10 * MIB):
        self.now_ns, self.soon = 0, []
        self.memory = RequestMemory(limit, self.soon.append, lambda: self.now_ns)

    def settle(self):
        while self.soon:
            self.soon.pop(0)()
        self.memory.check()

    def later(self, seconds):
        self.now_ns += int(seconds * 1e9)
        self.memory.tick()
        self.settle()


class Client:
    """A connection whose client sends a request of `whole` bytes; `reads` says whether it is read."""

    def __init__(self, desk, whole):
        self.desk, self.whole, self.have = desk, whole, 0
        self.reads, self.closed, self.done = True, None, False

    def send(self, size):
        if not self.reads or self.done or self.closed:
            return
        self.have = min(self.have + size, self.whole)
        if self.have == self.whole:
            self.done = True
            self.desk.memory.finished(self)
        else:
            self.reads = self.desk.memory.grown(self, self.have, self.whole)

    def read_on(self):
        assert not self.reads and not self.closed
        self.reads = True

    def close(self, why="client"):
        self.closed = why
        self.desk.memory.finished(self)


def test_requests_that_wait_for_a_handler_count_and_make_room_when_they_are_served():
    desk = Desk()
    desk.memory.queued(9 * MIB)
    first, second = Client(desk, 4 * MIB), Client(desk, 5 * MIB)
    for client in (first, second):
        client.send(3 * MIB)
    desk.settle()
    assert first.reads and not second.reads, "one goes on beyond the limit"
    desk.memory.queued(-9 * MIB)
    desk.settle()
    assert first.reads and second.reads


def test_while_it_is_paused_none_is_read_and_none_becomes_stalled():
    desk = Desk()
    holder, waiting = Client(desk, 11 * MIB), Client(desk, 2 * MIB)
    holder.send(10 * MIB)
    waiting.send(MIB)
    desk.memory.pause()
    desk.later(STALLED_S + 1)
    desk.memory.finished(holder)
    desk.settle()
    assert not waiting.reads and not holder.closed
    desk.memory.resume()
    assert waiting.reads


def test_the_time_for_which_it_was_paused_does_not_count_and_any_other_does():
    desk = Desk()
    holders = [Client(desk, 11 * MIB), Client(desk, 11 * MIB)]
    holders[0].send(10 * MIB)
    for _ in range(10):
        desk.memory.pause()
        desk.later(STALLED_S)
        desk.memory.resume()
    desk.later(STALLED_S / 2)
    waiting, beyond = Client(desk, 3 * MIB), Client(desk, 2 * MIB)
    for client in (waiting, beyond):
        client.send(MIB)
    desk.later(STALLED_S / 4)
    assert not holders[0].closed
    desk.later(STALLED_S / 2)
    assert holders[0].closed == "stalled"


def test_within_the_limit_every_connection_is_read():
    desk = Desk()
    clients = [Client(desk, 5 * MIB) for _ in range(3)]
    for client in clients:
        client.send(3 * MIB)
    assert all(client.reads for client in clients) and desk.memory.used == 9 * MIB


def test_beyond_it_only_the_one_that_lacks_fewest_bytes_is_read():
    desk = Desk()
    large, small, last = Client(desk, 100 * MIB), Client(desk, 2 * MIB), Client(desk, 3 * MIB)
    large.send(11 * MIB)
    small.send(MIB)
    last.send(MIB)
    desk.settle()
    assert (large.reads, small.reads, last.reads) == (False, True, False)
    small.send(MIB)
    desk.settle()
    assert small.done and (large.reads, last.reads) == (False, True)


def test_memory_that_is_given_back_lets_the_others_go_on():
    desk = Desk()
    clients = [Client(desk, 20 * MIB) for _ in range(4)]
    for client in clients:
        client.send(6 * MIB)
    desk.settle()
    clients[0].close()
    clients[1].close()
    clients[2].close()
    desk.settle()
    assert clients[3].reads and desk.memory.used == 6 * MIB


def test_what_holds_memory_and_sends_nothing_is_closed_while_others_wait():
    desk = Desk()
    stalled, waits = Client(desk, 99 * MIB), Client(desk, 50 * MIB)
    stalled.send(9 * MIB)
    desk.later(10)
    assert stalled.closed is None, "no other connection waits for its memory"
    waits.send(2 * MIB)
    desk.settle()
    assert waits.reads, "it lacks fewer bytes than any other that waits"
    another = Client(desk, MIB)
    another.send(MIB // 2)
    assert not another.reads
    desk.later(STALLED_S)
    assert stalled.closed == "stalled" and another.reads


def test_a_few_bytes_now_and_then_are_no_progress():
    desk = Desk()
    dribbles, waits = Client(desk, 99 * MIB), Client(desk, 99 * MIB)
    dribbles.send(11 * MIB)
    desk.settle()
    waits.send(MIB)
    for _ in range(5):
        dribbles.send(100)
        desk.later(STALLED_S / 4)
    assert dribbles.closed == "stalled" and waits.closed is None


def test_small_requests_and_a_limit_that_is_none_never_wait():
    desk = Desk(limit=0)
    small = Client(desk, SMALL_BYTES)
    small.send(100)
    assert small.reads and desk.memory.used == 0
    desk = Desk(limit=-1)
    huge = Client(desk, 1 << 40)
    huge.send(1 << 39)
    assert huge.reads


@given(
    st.lists(st.integers(SMALL_BYTES + 1, 30 * MIB), min_size=1, max_size=6),
    st.lists(st.tuples(st.integers(0, 5), st.integers(1, 4 * MIB)), max_size=60),
)
def test_clients_that_go_on_sending_are_all_served_and_the_limit_holds(sizes, steps):
    desk = Desk()
    clients = [Client(desk, size) for size in sizes]

    def send(client, size):
        client.send(size)
        desk.settle()
        assert desk.memory.used <= 10 * MIB + max(sizes) + 4 * MIB * len(sizes)

    for index, size in steps:
        send(clients[index % len(clients)], size)
    for _ in range(len(clients) * 30):
        for client in clients:
            send(client, 4 * MIB)
    assert all(client.done for client in clients) and desk.memory.used == 0


@pytest.mark.parametrize(("unsent", "wanted", "most"), [(0, 1000, 100), (30, 1000, 70), (30, 50, 50), (110, 50, 0)])
def test_a_fetch_gets_what_is_left_for_answers(unsent, wanted, most):
    answers = AnswerMemory(100)
    answers.waits(Slow(answers), unsent)
    assert answers.most_bytes(wanted) == most


def test_without_a_limit_a_fetch_gets_what_it_wants_and_no_connection_is_closed():
    answers = AnswerMemory(-1)
    slow = Slow(answers)
    answers.waits(slow, 1 << 40)
    assert answers.most_bytes(1 << 30) == 1 << 30 and slow.ended is None


class Slow:
    """A connection whose client reads nothing."""

    def __init__(self, answers):
        self.answers = answers
        self.ended = None

    def close(self, why):
        self.ended = why
        self.answers.waits(self, 0)


def test_beyond_twice_the_limit_the_connection_with_the_most_unread_is_closed():
    answers = AnswerMemory(100)
    first, second, third = (Slow(answers) for _ in range(3))
    answers.waits(first, 90)
    answers.waits(second, 100)
    answers.waits(third, 10)
    answers.check()
    assert [each.ended for each in (first, second, third)] == [None] * 3
    answers.waits(third, 11)
    assert [each.ended for each in (first, second, third)] == [None, "unread", None]
    answers.waits(third, 250)
    assert third.ended == "unread" and answers.unsent == 90
    answers.check()
