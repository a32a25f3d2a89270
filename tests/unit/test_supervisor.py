"""The supervisor's rules, with real processes: restarts, stages, crash loops, epochs."""

import os
import signal
import threading

import pytest

from shards.errors import CannotStart
from shards.supervisor import Child, Supervisor, next_epoch


def test_epochs_only_rise(tmp_path):
    path = tmp_path / "epoch"
    assert [next_epoch(path) for _ in range(3)] == [1, 2, 3]
    assert path.read_text() == "3\n"


def test_a_spoilt_epoch_file_is_named(tmp_path):
    path = tmp_path / "epoch"
    path.write_text("many")
    with pytest.raises(CannotStart, match="epoch should hold one number"):
        next_epoch(path)


def in_a_process(body):
    """Runs `body` in a fork of its own, for it changes signal masks; returns its exit code."""
    assert threading.active_count() == 1
    pid = os.fork()
    if pid == 0:
        code = 99
        try:
            code = body()
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


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
            [Child("a shard", 1, main)], tmp_path / "epoch", tell=lambda text: said.write_text(text)
        )
        supervisor.start()
        return supervisor.run()

    assert in_a_process(body) == 0
    assert os.read(read_end, 10) == b"\x01\x02"
    assert "was killed by SIGKILL" in said.read_text()
    os.close(read_end)
    os.close(write_end)


def test_a_crash_loop_ends_everything_with_a_sentence(tmp_path):
    said = tmp_path / "said"

    def tell(text):
        with said.open("a") as file:
            file.write(text + "\n")

    def body():
        supervisor = Supervisor([Child("a shard", 1, lambda epoch: 3)], tmp_path / "epoch", tell=tell)
        supervisor.start()
        return supervisor.run()

    assert in_a_process(body) == 1
    assert "giving up" in said.read_text().splitlines()[-1]


def test_later_stages_end_first(tmp_path):
    read_end, write_end = os.pipe()

    def child(name, ready=False):
        def main(epoch):
            signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
            if ready:
                os.kill(os.getppid(), signal.SIGTERM)
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
        supervisor = Supervisor(children, tmp_path / "epoch", tell=print)
        supervisor.start()
        return supervisor.run()

    assert in_a_process(body) == 0
    assert os.read(read_end, 10) == b"imo"
    os.close(read_end)
    os.close(write_end)
