"""Programs that do not behave like programs: nothing is left of them, and what they write takes no room."""

import os
import subprocess
import sys
import uuid
from contextlib import closing
from pathlib import Path

import pytest
from harness import until

from turnstile.verdict.judged import CannotJudge
from turnstile.verdict.output import Output
from turnstile.verdict.program import Program, end_all


@pytest.fixture
def output():
    with closing(Output()) as output:
        yield output


@pytest.fixture
def mark():
    mark = uuid.uuid4().hex
    yield mark
    end_all(mark)


def alive(pid):
    """Whether a process runs; one that has ended and was not waited for does not."""
    stat = Path(f"/proc/{pid}/stat")
    return stat.exists() and stat.read_text().rpartition(")")[2].split()[0] not in "ZX"


def told(output):
    """The process id that the program wrote."""
    return int(until(lambda: output.last_words().strip()))


def test_what_lingers_in_its_session_is_the_program(output, mark):
    program = Program(["sh", "-c", "sleep 1000 & echo $!"], "", output.fd, mark)
    sleeper = told(output)
    until(lambda: program._popen.poll() is not None)
    assert program.exit_code() is None and program.busy_s() >= (0, 0)
    program.kill()
    assert program.exit_code() == 0 and not alive(sleeper)


def test_what_it_puts_into_another_session_is_ended_with_the_rest(output, mark):
    program = Program(["sh", "-c", "setsid sleep 1000 & echo $!"], "", output.fd, mark)
    sleeper = told(output)
    until(lambda: os.getsid(sleeper) == sleeper)
    until(lambda: program.exit_code() is not None)
    program.kill()
    assert alive(sleeper)
    end_all(mark)
    assert not alive(sleeper)


def test_a_program_that_ignores_sigterm_is_killed(output, mark):
    program = Program(["sh", "-c", "trap '' TERM; echo $$; while :; do sleep 1; done"], "", output.fd, mark)
    told(output)
    program.terminate()
    assert not program.wait(0.1)
    program.kill()
    assert program.exit_code() is not None


def test_a_program_ends_with_the_thread_that_started_it():
    """Also when that is killed."""
    starting = "import time; from turnstile.verdict.program import Program\n"
    starting += "print(Program(['sleep', '1000'], '', 2, 'mark')._popen.pid, flush=True); time.sleep(1000)"
    with subprocess.Popen([sys.executable, "-c", starting], stdout=subprocess.PIPE, text=True) as starter:
        sleeper = int(starter.stdout.readline())
        starter.kill()
    until(lambda: not alive(sleeper))


@pytest.mark.parametrize(
    ("word", "why"), [("/no/such", "No such file or directory"), ("/etc/passwd", "Permission denied")]
)
def test_a_command_that_cannot_be_run(output, mark, word, why):
    with pytest.raises(CannotJudge, match=f"{word} can't be run: {why}"):
        Program([word], "", output.fd, mark)


def test_only_the_last_words_are_kept(output):
    subprocess.run(["sh", "-c", "yes | head -c 5000000; echo the end"], stdout=output.fd, check=True)
    until(lambda: output.last_words().endswith("the end\n"))
    assert len(output.last_words()) == 2000


def test_a_process_that_still_writes_is_not_waited_for():
    output = Output()
    with subprocess.Popen(["yes"], stdout=output.fd, stderr=subprocess.DEVNULL) as writer:
        until(output.last_words)
        output.close()
        writer.wait()  # its pipe is gone
