"""The supervisor's rules, with real processes: restarts, stages, crash loops, epochs."""

import errno
import json
import os
import signal
import socket
import subprocess
from contextlib import ExitStack

import pytest

from shards.config.cluster_plan import ListenerSpec
from shards.supervisor import backoff
from shards.supervisor import supervisor as supervising
from shards.supervisor.binding import ListeningSockets, bind_listeners
from shards.supervisor.epochs import Epochs
from shards.supervisor.memory_limit import MemoryLimit
from shards.supervisor.owner import Owner
from shards.supervisor.restart_board import RestartBoard
from shards.supervisor.supervisor import ENDING, Child, Supervisor
from tests.support.forks import in_a_process


class Said:
    """Lines that any process of a test adds: what a supervisor says, or what a child notes."""

    def __init__(self, path):
        self.path = path

    def __call__(self, text):
        with self.path.open("a") as file:
            file.write(f"{text}\n")

    def lines(self):
        return self.path.read_text().splitlines()


@pytest.fixture
def said(tmp_path):
    return Said(tmp_path / "said")


@pytest.fixture
def pipe():
    """Makes pipes, as (read end, write end), and closes them."""
    with ExitStack() as stack:

        def made():
            ends = os.pipe()
            for end in ends:
                stack.callback(os.close, end)
            return ends

        yield made


@pytest.fixture
def supervised(tmp_path):
    """Runs a supervisor of children in a process of its own, after `before()` there, and returns its exit status."""

    def run(*children, tell=print, before=lambda: None, **more):
        def body():
            supervisor = Supervisor([*children], Epochs(tmp_path / "epoch"), tell=tell, **more)
            before()
            supervisor.start()
            return supervisor.run()

        return in_a_process(body)

    return run


def end_all():
    """Ends the supervisor, from a child of it."""
    os.kill(os.getppid(), signal.SIGTERM)
    signal.pause()
    return 0


def test_what_dies_is_started_again_with_a_new_epoch(said, pipe, supervised):
    read_end, write_end = pipe()

    def main(epoch):
        os.write(write_end, bytes([epoch]))
        if epoch == 1:
            os.kill(os.getpid(), signal.SIGKILL)
        return end_all()

    assert supervised(Child("a shard", 1, main), tell=said) == 0
    assert os.read(read_end, 10) == b"\x01\x02"
    assert "was killed by SIGKILL" in said.lines()[0]


def test_what_is_killed_for_want_of_memory_is_told_as_that(tmp_path, said, supervised):
    counter, mine = tmp_path / "memory.events", tmp_path / "mine"
    mine.write_text("0::/\n")
    counter.write_text("oom_kill 0\n")
    (tmp_path / "memory.max").write_text(f"{64 << 20}\n")
    board = RestartBoard(1)

    def main(epoch):
        if epoch == 1:
            counter.write_text("oom_kill 1\n")
        if epoch < 3:
            os.kill(os.getpid(), signal.SIGKILL)
        return end_all()

    memory = MemoryLimit(tmp_path, mine)
    assert supervised(Child("a shard", 1, main), tell=said, board=board, memory=memory) == 0
    first, second = said.lines()
    assert "was killed for want of memory (its cgroup may have 64 MiB); starting it again" in first
    assert "was killed by SIGKILL" in second
    assert board.get(0) == (2, 1, None)


def test_what_keeps_dying_is_started_again_later_and_later_while_the_others_go_on(monkeypatch, said, supervised):
    monkeypatch.setattr(backoff, "FIRST_S", 0.002)
    deaths = 9
    board = RestartBoard(2)

    def dying(epoch):
        if epoch > 1 + deaths:
            end_all()
        return 3

    def living(epoch):
        assert epoch == 1
        signal.pause()
        return 0

    children = Child("a shard", 1, dying), Child("another", 0, living)
    assert supervised(*children, tell=said, board=board) == 0
    lines = said.lines()
    assert len(lines) == deaths
    assert lines[0].endswith("ended with code 3; starting it again")
    assert lines[-1].endswith("starting it again in 0.3 s, as it keeps ending")
    assert (board.get(0).number, board.get(1).number) == (deaths, 0)
    assert board.get(0).due_in_s is None


def test_a_process_that_is_away_for_long_does_not_listen_until_it_starts_again(monkeypatch, said, supervised):
    monkeypatch.setattr(supervising, "AWAY_S", 0.004)
    monkeypatch.setattr(backoff, "FIRST_S", 0.004)
    bound = bind_listeners([ListenerSpec("A", "127.0.0.1", 0)], brokers=1, shards=2, backlog=100).sockets
    sockets = [sock for shard in bound.values() for _, sock in shard]

    def tell(text):  # from the supervisor, when it has noted the death
        said(_connected(sockets))

    def dying(epoch):
        if epoch > 2:
            said(_connected(sockets))
            end_all()
        return 3

    child = Child("a shard", 1, dying, listening=ListeningSockets(sockets[:1], 100))
    assert supervised(child, tell=tell) == 0
    for sock in sockets:
        sock.close()
    at_once, later, again = (json.loads(line) for line in said.lines())
    assert sum(at_once) == sum(again) == 40 and at_once[0] and again[0]
    assert later == [0, 40]


def _connected(sockets):
    """How many connections of 40 wait on each socket; they are closed."""
    clients = [socket.create_connection(sockets[0].getsockname()) for _ in range(40)]
    found = [_accept_all(sock) for sock in sockets]
    for client in clients:
        client.close()
    return found


def _accept_all(sock):
    sock.setblocking(False)
    count = 0
    try:
        while True:
            sock.accept()[0].close()
            count += 1
    except OSError:  # none waits, or it does not listen
        return count


def test_later_stages_end_first(pipe, supervised):
    read_end, write_end = pipe()
    others_ready, say_ready = pipe()

    def child(name, ready=False):
        def main(epoch):
            signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
            if ready:
                assert os.read(others_ready, 1) + os.read(others_ready, 1) == b"!!"
                os.kill(os.getppid(), signal.SIGTERM)
            else:
                os.write(say_ready, b"!")
            signal.sigwait({signal.SIGTERM})
            os.write(write_end, name)
            return 0

        return main

    children = (
        Child("inner", 2, child(b"i", ready=True)),
        Child("outer", 0, child(b"o")),
        Child("middle", 1, child(b"m")),
    )
    assert supervised(*children) == 0
    assert os.read(read_end, 10) == b"imo"


def test_what_cannot_be_forked_now_is_forked_later_and_does_not_listen_until_then(monkeypatch, said, supervised):
    bound = bind_listeners([ListenerSpec("A", "127.0.0.1", 0)], brokers=1, shards=2, backlog=100).sockets
    sockets = [sock for shard in bound.values() for _, sock in shard]
    fork = os.fork
    tries = []

    def failing_twice():
        tries.append(1)
        if len(tries) in (2, 3):
            raise OSError(errno.EAGAIN, "Resource temporarily unavailable")
        if len(tries) == 4:
            said(_connected(sockets))
        return fork()

    def main(epoch):
        if epoch == 1:
            return 3
        return end_all()

    def tell(text):
        said(text)
        if "can't" in text:
            said(_connected(sockets))

    monkeypatch.setattr(supervising, "_RETRY_S", 0.01)

    child = Child("a shard", 1, main, listening=ListeningSockets(sockets[:1], 100))
    assert supervised(child, tell=tell, before=lambda: monkeypatch.setattr(os, "fork", failing_twice)) == 0
    for sock in sockets:
        sock.close()
    lines = said.lines()
    assert lines[1] == "a shard can't be started: Resource temporarily unavailable; trying again"
    assert json.loads(lines[2]) == [0, 40]
    again = json.loads(lines[3])
    assert sum(again) == 40 and again[0] and len(lines) == 4


@pytest.mark.parametrize("number", sorted(ENDING))
def test_every_signal_that_would_end_it_ends_all_in_order(number, pipe, supervised):
    read_end, write_end = pipe()
    other_ready, say_ready = pipe()

    def child(name, asks=False):
        def main(epoch):
            signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
            if asks:
                os.read(other_ready, 1)
                os.kill(os.getppid(), number)
            else:
                os.write(say_ready, b"!")
            signal.sigwait({signal.SIGTERM})
            os.write(write_end, name)
            return 0

        return main

    assert supervised(Child("outer", 0, child(b"o")), Child("inner", 1, child(b"i", asks=True))) == 0
    assert os.read(read_end, 10) == b"io"


def test_a_second_ctrl_c_kills_what_has_not_ended(monkeypatch, said, pipe, supervised):
    monkeypatch.setattr(supervising, "_STOP_S", 600.0)
    deaf_ready, say_ready = pipe()

    def deaf(epoch):
        signal.pthread_sigmask(signal.SIG_BLOCK, ENDING)
        os.write(say_ready, b"!")
        while True:
            signal.pause()

    def asking(epoch):
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
        os.read(deaf_ready, 1)
        os.kill(os.getppid(), signal.SIGINT)
        signal.sigwait({signal.SIGTERM})
        os.kill(os.getppid(), signal.SIGINT)
        return 0

    assert supervised(Child("deaf", 1, deaf), Child("asking", 1, asking), tell=said) == 0
    assert said.lines() == ["ending at once: killing what has not ended"]


def test_processes_that_are_stopped_end_in_order(tmp_path, pipe):
    read_end, write_end = pipe()
    resource_ready, say_ready = pipe()

    def child(name):
        def main(epoch):
            signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
            os.write(say_ready, b"!")
            os.kill(os.getpid(), signal.SIGSTOP)
            signal.sigwait({signal.SIGTERM})
            os.write(write_end, name)
            return 0

        return main

    def body():
        supervisor = Supervisor(
            [Child("outer", 0, child(b"o")), Child("inner", 1, child(b"i"))], Epochs(tmp_path / "epoch"), tell=print
        )
        supervisor.start()
        for _ in "oi":
            os.read(resource_ready, 1)
        for pid in supervisor.pids():
            os.waitid(os.P_PID, pid, os.WSTOPPED)
        supervisor.stop()
        return 0

    assert in_a_process(body) == 0
    assert os.read(read_end, 10) == b"io"


def test_a_stage_is_prepared_after_the_one_before_it_was_forked_and_before_its_own_children(tmp_path):
    def body():
        children = [Child(name, stage, lambda epoch: 0) for name, stage in (("a", 1), ("b", 2), ("c", 2))]
        forked_at = {}
        supervisor = Supervisor(children, Epochs(tmp_path / "epoch"), tell=print)
        supervisor.start(lambda stage: forked_at.update({stage: [child.name for child in children if child.pid]}))
        supervisor.stop()
        return 0 if forked_at == {1: [], 2: ["a"]} else 1

    assert in_a_process(body) == 0


def test_the_end_of_its_owner_ends_it(monkeypatch, supervised):
    monkeypatch.setattr(supervising, "LOOK_S", 0.01)
    owner = subprocess.Popen(["cat"], stdin=subprocess.PIPE)

    def main(epoch):
        os.kill(owner.pid, signal.SIGKILL)
        signal.pause()
        return 0

    assert supervised(Child("a shard", 1, main), owner=Owner(pid=owner.pid)) == 0
    owner.communicate()


def test_a_signal_without_a_name_is_told_by_its_number(said, supervised):

    def main(epoch):
        if epoch == 1:
            os.kill(os.getpid(), signal.SIGRTMIN + 5)
        return end_all()

    assert supervised(Child("a shard", 1, main), tell=said) == 0
    assert f"was killed by signal {signal.SIGRTMIN + 5}" in said.lines()[0]


def test_as_process_1_of_a_container_it_reaps_what_others_have_left(tmp_path):
    def leave():
        pid = os.fork()
        if not pid:
            os._exit(0)
        os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)  # it is a zombie from here on
        return pid

    def body():
        supervisor = Supervisor(
            [Child("a shard", 1, lambda epoch: 0)], Epochs(tmp_path / "epoch"), tell=lambda text: None
        )
        strangers = [leave() for _ in range(3)]
        supervisor._reap_strangers()
        for pid in strangers:
            with pytest.raises(ChildProcessError):
                os.waitpid(pid, os.WNOHANG)
        supervisor.start()
        own = supervisor.pids()[0]
        os.waitid(os.P_PID, own, os.WEXITED | os.WNOWAIT)
        supervisor._reap_strangers()
        assert os.waitpid(own, os.WNOHANG)[0] == own, "its own end is not taken from _reap, which starts it again"
        return 0

    assert in_a_process(body) == 0
