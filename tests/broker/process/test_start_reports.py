"""What processes report while a cluster starts."""

import os
import signal

import pytest

from broker.process.start_reports import ReportPipe, await_ready, end_reports, is_starting, reporting, system_fault
from shards.errors import CannotStart
from tests.support.forks import in_a_process


def test_a_process_that_says_why_it_ends_is_heard_although_it_has_ended():
    read_end, write_end = os.pipe()

    def body():
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGCHLD})
        os.write(write_end, b'{}\n{"fault": "the file is no database"}\n')
        os.kill(os.getpid(), signal.SIGCHLD)
        try:
            await_ready(read_end, 3)
        except CannotStart as fault:
            return 0 if str(fault) == "the file is no database" else 1
        return 2

    assert in_a_process(body) == 0
    os.close(read_end)
    os.close(write_end)


def test_a_file_where_a_folder_is_made_is_named(tmp_path):
    (tmp_path / "run").touch()
    with pytest.raises(OSError) as caught:
        (tmp_path / "run").mkdir()
    assert system_fault(caught.value) == f"File exists ({tmp_path / 'run'})"


def test_a_child_of_the_start_hears_that_it_is_over():
    pipe = ReportPipe(*os.pipe())
    hears, says = os.pipe()
    asked, asks = os.pipe()

    def main(epoch):
        os.write(says, b"ready")
        os.read(asked, 1)
        return int(is_starting(pipe.report_to))

    pid = os.fork()
    if not pid:
        os._exit(reporting(main, pipe, "a shard")(1))
    os.read(hears, 5)
    end_reports(pipe)
    os.write(asks, b"?")
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    for descriptor in (pipe.report_to, hears, says, asked, asks):
        os.close(descriptor)


def test_a_process_that_is_started_again_closes_no_file_of_that_number(tmp_path):
    pipe = ReportPipe(*os.pipe())
    end_reports(pipe)
    own = os.open(tmp_path / "journal", os.O_WRONLY | os.O_CREAT)
    os.dup2(own, pipe.read_end)
    assert reporting(lambda epoch: 0, pipe, "a shard")(2) == 0
    for descriptor in {own, *pipe}:
        os.close(descriptor)  # of which each is open still
