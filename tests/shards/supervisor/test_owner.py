"""What a cluster ends with: a program, or its end of our standard input."""

import os
import subprocess
import time

import pytest
from harness import until

from shards.supervisor import owner
from shards.supervisor.owner import Owner


def test_without_an_owner_it_never_ends():
    assert not Owner().has_ended()


def test_a_program_has_ended_when_it_is_killed_even_before_it_was_waited_for():
    program = subprocess.Popen(["sleep", "600"])
    watched = Owner(pid=program.pid)
    assert not watched.has_ended()
    program.kill()
    until(watched.has_ended, what="the end of the program")
    program.wait()
    assert watched.has_ended()
    assert Owner(pid=program.pid).has_ended(), "one that was gone before"


@pytest.fixture
def stdin(monkeypatch):
    """The other end of what stands for our standard input."""
    read_end, write_end = os.pipe()
    monkeypatch.setattr(owner, "_STDIN", read_end)
    yield write_end
    os.close(read_end)


def test_what_standard_input_says_is_dropped_and_its_end_counts(stdin):
    watched = Owner(stdin=True)
    os.write(stdin, b"y\n" * 5000)
    assert not watched.has_ended()
    os.close(stdin)
    deadline = time.monotonic() + 10
    while not watched.has_ended():
        assert time.monotonic() < deadline
    assert watched.has_ended()


def test_no_standard_input_is_its_end(monkeypatch):
    monkeypatch.setattr(owner, "_STDIN", 987)
    assert Owner(stdin=True).has_ended()
