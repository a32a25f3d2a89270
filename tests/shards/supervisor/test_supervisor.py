"""The supervisor's rules, with real processes: restarts, stages, crash loops, epochs."""

import errno
import json
import os
import signal
import socket
import subprocess

import pytest

from shards.config.cluster_plan import ListenerSpec
from shards.supervisor import restarts
from shards.supervisor import supervisor as supervising
from shards.supervisor.binding import Backlogs, bind_clients
from shards.supervisor.epochs import Epochs
from shards.supervisor.memory_limit import MemoryLimit
from shards.supervisor.owner import Owner
from shards.supervisor.restarts import RestartBoard
from shards.supervisor.supervisor import ENDING, Child, Supervisor
from tests.support.forks import in_a_process


def test_what_dies_is_started_again_with_a_new_epoch(tmp_path):
    read_end, write_end = os.pipe()

    def main(epoch):
        os.write(write_end, bytes([epoch]))
        if epoch == 1:
            os.kill(os.getpid(), signal.SIGKILL)
        os.kill(os.getppid(), signal.SIGTERM)
        signal.pause()
        return 0

    said = tmp_path / "said"

    def body():
        supervisor = Supervisor(
            [Child("a shard", 1, main)], Epochs(tmp_path / "epoch"), tell=lambda text: said.write_text(text)
        )
        supervisor.start()
        return supervisor.run()

    assert in_a_process(body) == 0
    assert os.read(read_end, 10) == b"\x01\x02"
    assert "was killed by SIGKILL" in said.read_text()
    os.close(read_end)
    os.close(write_end)


def test_what_is_killed_for_want_of_memory_is_told_as_that(tmp_path):
    counter, mine = tmp_path / "memory.events", tmp_path / "mine"
    mine.write_text("0::/\n")
    counter.write_text("oom_kill 0\n")
    (tmp_path / "memory.max").write_text(f"{64 << 20}\n")
    said, board = tmp_path / "said", RestartBoard(1)

    def tell(text):
        with said.open("a") as file:
            file.write(text + "\n")

    def main(epoch):
        if epoch == 1:
            counter.write_text("oom_kill 1\n")
        if epoch < 3:
            os.kill(os.getpid(), signal.SIGKILL)
        os.kill(os.getppid(), signal.SIGTERM)
        signal.pause()
        return 0

    def body():
        supervisor = Supervisor(
            [Child("a shard", 1, main)], Epochs(tmp_path / "epoch"), tell=tell, board=board,
            memory=MemoryLimit(tmp_path, mine),
        )  # fmt: skip
        supervisor.start()
        return supervisor.run()

    assert in_a_process(body) == 0
    first, second = said.read_text().splitlines()
    assert "was killed for want of memory (its cgroup may have 64 MiB); starting it again" in first
    assert "was killed by SIGKILL" in second
    assert (board.restarts(0), board.memory_kills(0)) == (2, 1)


def test_what_keeps_dying_is_started_again_later_and_later_while_the_others_go_on(tmp_path, monkeypatch):
    monkeypatch.setattr(restarts, "FIRST_S", 0.002)
    said = tmp_path / "said"
    deaths = 9
    board = RestartBoard(2)

    def tell(text):
        with said.open("a") as file:
            file.write(text + "\n")

    def dying(epoch):
        if epoch > 1 + deaths:
            os.kill(os.getppid(), signal.SIGTERM)
            signal.pause()
        return 3

    def living(epoch):
        assert epoch == 1
        signal.pause()
        return 0

    def body():
        supervisor = Supervisor(
            [Child("a shard", 1, dying), Child("another", 0, living)],
            Epochs(tmp_path / "epoch"),
            tell=tell,
            board=board,
        )
        supervisor.start()
        return supervisor.run()

    assert in_a_process(body) == 0
    lines = said.read_text().splitlines()
    assert len(lines) == deaths
    assert lines[0].endswith("ended with code 3; starting it again")
    assert lines[-1].endswith("starting it again in 0.3 s, as it keeps ending")
    assert (board.restarts(0), board.restarts(1)) == (deaths, 0)
    assert board.due_in_s(0) is None


def test_who_is_away_for_long_does_not_listen_until_it_starts_again(tmp_path, monkeypatch):
    monkeypatch.setattr(supervising, "AWAY_S", 0.004)
    monkeypatch.setattr(restarts, "FIRST_S", 0.004)
    _, bound = bind_clients([ListenerSpec("A", "127.0.0.1", 0)], brokers=1, shards=2, backlog=100)
    sockets = [sock for shard in bound.values() for _, sock in shard]
    said = tmp_path / "said"

    def tell(text):  # from the supervisor, when it has noted the death
        with said.open("a") as file:
            file.write(f"{_connected(sockets)}\n")

    def dying(epoch):
        if epoch > 2:
            with said.open("a") as file:
                file.write(f"{_connected(sockets)}\n")
            os.kill(os.getppid(), signal.SIGTERM)
            signal.pause()
        return 3

    def body():
        child = Child("a shard", 1, dying, backlogs=Backlogs(sockets[:1], 100))
        supervisor = Supervisor([child], Epochs(tmp_path / "epoch"), tell=tell)
        supervisor.start()
        return supervisor.run()

    assert in_a_process(body) == 0
    for sock in sockets:
        sock.close()
    at_once, later, again = (json.loads(line) for line in said.read_text().splitlines())
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


def test_later_stages_end_first(tmp_path):
    read_end, write_end = os.pipe()
    others_ready, say_ready = os.pipe()

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

    def body():
        children = [
            Child("inner", 2, child(b"i", ready=True)),
            Child("outer", 0, child(b"o")),
            Child("middle", 1, child(b"m")),
        ]
        supervisor = Supervisor(children, Epochs(tmp_path / "epoch"), tell=print)
        supervisor.start()
        return supervisor.run()

    assert in_a_process(body) == 0
    assert os.read(read_end, 10) == b"imo"
    for each in (read_end, write_end, others_ready, say_ready):
        os.close(each)


def test_what_cannot_be_forked_now_is_forked_later_and_does_not_listen_until_then(tmp_path, monkeypatch):
    _, bound = bind_clients([ListenerSpec("A", "127.0.0.1", 0)], brokers=1, shards=2, backlog=100)
    sockets = [sock for shard in bound.values() for _, sock in shard]
    said = tmp_path / "said"
    fork = os.fork
    tries = []

    def failing_twice():
        tries.append(1)
        if len(tries) in (2, 3):
            raise OSError(errno.EAGAIN, "Resource temporarily unavailable")
        if len(tries) == 4:
            with said.open("a") as file:
                file.write(f"{_connected(sockets)}\n")
        return fork()

    def main(epoch):
        if epoch == 1:
            return 3
        os.kill(os.getppid(), signal.SIGTERM)
        signal.pause()
        return 0

    def tell(text):
        with said.open("a") as file:
            file.write(text + "\n")
            if "can't" in text:
                file.write(f"{_connected(sockets)}\n")

    monkeypatch.setattr(supervising, "_RETRY_S", 0.01)

    def body():
        child = Child("a shard", 1, main, backlogs=Backlogs(sockets[:1], 100))
        supervisor = Supervisor([child], Epochs(tmp_path / "epoch"), tell=tell)
        monkeypatch.setattr(os, "fork", failing_twice)
        supervisor.start()
        return supervisor.run()

    assert in_a_process(body) == 0
    for sock in sockets:
        sock.close()
    lines = said.read_text().splitlines()
    assert lines[1] == "a shard can't be started: Resource temporarily unavailable; trying on"
    assert json.loads(lines[2]) == [0, 40]
    again = json.loads(lines[3])
    assert sum(again) == 40 and again[0] and len(lines) == 4


@pytest.mark.parametrize("number", sorted(ENDING))
def test_every_signal_that_would_end_it_ends_all_in_order(tmp_path, number):
    read_end, write_end = os.pipe()
    other_ready, say_ready = os.pipe()

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

    def body():
        children = [Child("outer", 0, child(b"o")), Child("inner", 1, child(b"i", asks=True))]
        supervisor = Supervisor(children, Epochs(tmp_path / "epoch"), tell=print)
        supervisor.start()
        return supervisor.run()

    assert in_a_process(body) == 0
    assert os.read(read_end, 10) == b"io"
    for each in (read_end, write_end, other_ready, say_ready):
        os.close(each)


def test_a_second_ctrl_c_kills_what_has_not_ended(tmp_path, monkeypatch):
    monkeypatch.setattr(supervising, "_STOP_S", 600.0)
    said = tmp_path / "said"
    deaf_ready, say_ready = os.pipe()

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

    def body():
        children = [Child("deaf", 1, deaf), Child("asking", 1, asking)]
        supervisor = Supervisor(children, Epochs(tmp_path / "epoch"), tell=lambda text: said.write_text(text))
        supervisor.start()
        return supervisor.run()

    assert in_a_process(body) == 0
    assert said.read_text() == "ending at once: killing what has not ended"
    os.close(deaf_ready)
    os.close(say_ready)


def test_processes_that_are_stopped_end_in_order(tmp_path):
    read_end, write_end = os.pipe()
    resource_ready, say_ready = os.pipe()

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
    for each in (read_end, write_end, resource_ready, say_ready):
        os.close(each)


def test_the_end_of_its_owner_ends_it(tmp_path, monkeypatch):
    monkeypatch.setattr(supervising, "LOOK_S", 0.01)
    owner = subprocess.Popen(["cat"], stdin=subprocess.PIPE)

    def main(epoch):
        os.kill(owner.pid, signal.SIGKILL)
        signal.pause()
        return 0

    def body():
        children = [Child("a shard", 1, main)]
        supervisor = Supervisor(children, Epochs(tmp_path / "epoch"), tell=print, owner=Owner(pid=owner.pid))
        supervisor.start()
        return supervisor.run()

    assert in_a_process(body) == 0
    owner.communicate()


def test_a_signal_without_a_name_is_told_by_its_number(tmp_path):
    said = tmp_path / "said"

    def main(epoch):
        if epoch == 1:
            os.kill(os.getpid(), signal.SIGRTMIN + 5)
        os.kill(os.getppid(), signal.SIGTERM)
        signal.pause()
        return 0

    def body():
        supervisor = Supervisor(
            [Child("a shard", 1, main)], Epochs(tmp_path / "epoch"), tell=lambda text: said.write_text(text)
        )
        supervisor.start()
        return supervisor.run()

    assert in_a_process(body) == 0
    assert f"was killed by signal {signal.SIGRTMIN + 5}" in said.read_text()


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
