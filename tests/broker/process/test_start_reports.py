"""What processes report while a cluster starts."""

import os
import signal

import pytest

from broker.process.start_reports import await_ready, system_fault
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
