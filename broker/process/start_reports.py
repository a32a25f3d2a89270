"""The reports of processes while a cluster starts: that they are up, or why they can't start.

Each writes one line of JSON into a pipe: {} or the coordinator's report, {"fault": sentence} if it can't start.
"""

from __future__ import annotations

import errno
import json
import os
import select
import signal
import stat
import sys
import time
from collections.abc import Callable, Iterable
from typing import NamedTuple

from shards.errors import CannotStart, StoppedAtStart
from shards.supervisor.progress import Progress
from shards.supervisor.signals import wait_for
from shards.supervisor.supervisor import ENDING

_STUCK_S = 20.0
"""A start fails when no process makes progress for so long."""
SAID_S = 2.0
_LOOK_S = 0.25
_DISK = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS, errno.EIO, errno.EACCES, errno.EPERM}
_IN_THE_WAY = {errno.EEXIST, errno.ENOTDIR, errno.EISDIR}
"""A data directory that has a file where a folder is made, or a folder where a file is."""
_SHORT = {errno.EMFILE, errno.ENFILE, errno.ENOMEM}


class ReportPipe(NamedTuple):
    """The pipe of the reports. `report_to` is /dev/null once they have ended."""

    read_end: int
    report_to: int


def reporting(main: Callable[[int], int], pipe: ReportPipe, name: str) -> Callable[[int], int]:
    """`main`; a want of disk, descriptors or memory ends it with one sentence: reported while the cluster starts, on stderr
    from then on."""

    def run(epoch: int) -> int:
        # The supervisor alone reads, else is_starting would never be False. A process that is started again has not inherited the
        # read end, and its number may be another file's.
        if _is_pipe(pipe.report_to):
            os.close(pipe.read_end)
        report = os.dup(pipe.report_to)  # the process closes the other once it is up
        try:
            return main(epoch)
        except BaseException as fault:
            why = system_fault(fault)
            if why is None:
                raise
            sentence = f"{name} can't run: {why}"
            if is_starting(report):
                os.write(report, json.dumps({"fault": sentence}).encode() + b"\n")
            else:
                print(f"turnstile: {sentence}", file=sys.stderr, flush=True)
            return 1

    return run


def is_starting(report_to: int) -> bool:
    """True if reports are still read: until all processes are up, when `end_reports` closes the other end."""
    if not _is_pipe(report_to):
        return False
    ended = select.poll()
    ended.register(report_to, 0)
    return not ended.poll(0)


def _is_pipe(descriptor: int) -> bool:
    return stat.S_ISFIFO(os.fstat(descriptor).st_mode)


def system_fault(fault: BaseException) -> str | None:
    """The system's reason, if `fault` (or every exception of a group) is one of the disk, of a file in the way, or of too few
    descriptors; else None."""
    if isinstance(fault, BaseExceptionGroup):
        found = [system_fault(each) for each in fault.exceptions]
        return found[0] if found and None not in found else None
    if not isinstance(fault, OSError) or fault.errno not in _DISK | _SHORT | _IN_THE_WAY:
        return None
    where = f" ({fault.filename})" if fault.filename else ""
    return f"{os.strerror(fault.errno)}{where}"


def await_ready(
    read_end: int,
    processes: int,
    pids: Callable[[], Iterable[int]] = tuple,
    say: Callable[[str], None] = lambda sentence: None,
) -> dict[str, object]:
    """Waits until every process has reported; returns the coordinator's report.

    `pids()` are the processes whose progress counts. `say` is called every SAID_S with how many are up. Raises CannotStart when one
    can't start, and when none has made progress for _STUCK_S; KeyboardInterrupt for a SIGINT, which is blocked while the cluster
    starts.
    """
    progress = Progress()
    began_s = time.monotonic()
    stuck_at, say_at = began_s + _STUCK_S, began_s + SAID_S
    answer: dict[str, object] = {}
    received = b""
    ready = 0
    ended = False
    reported = select.poll()
    reported.register(read_end, select.POLLIN)
    while ready < processes:
        now = time.monotonic()
        if now >= say_at:
            say(f"starting: {ready} of {processes} processes are up ({now - began_s:.0f} s)")
            say_at += SAID_S
        if progress.is_made(pids(), now_s=now):
            stuck_at = now + _STUCK_S
        if now >= stuck_at:
            raise CannotStart(
                f"{processes - ready} of {processes} processes are not up, and there was no progress for {_STUCK_S:.0f} s"
            )
        ending = wait_for(ENDING, 0)
        if ending is not None and ending.si_signo == signal.SIGINT:
            raise KeyboardInterrupt
        if ending is not None:
            raise StoppedAtStart("stopped before it was up")
        # Asked before the pipe is looked into, where a process may have said why it ended.
        ended = ended or wait_for({signal.SIGCHLD}, 0) is not None
        if not reported.poll(0 if ended else _LOOK_S * 1000):
            if ended:
                raise CannotStart("a process ended while starting; it said why above")
            continue
        received += os.read(read_end, 65536)
        *lines, received = received.split(b"\n")
        for line in lines:
            report = json.loads(line)
            if "fault" in report:
                raise CannotStart(report["fault"])
            answer |= report
            ready += 1
            stuck_at = time.monotonic() + _STUCK_S
    if ended:
        raise CannotStart("a process ended while starting; it said why above")
    return answer


def end_reports(pipe: ReportPipe) -> None:
    """All have reported: what restarted processes report goes to /dev/null, as a pipe without a reader fills up."""
    os.close(pipe.read_end)
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, pipe.report_to, inheritable=False)
    os.close(null)
