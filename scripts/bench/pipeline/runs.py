"""One measure in a process of its own: seconds, CPU time and memory of the process and all below it."""

import ctypes
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from scripts.bench import machine
from scripts.bench.pipeline.measures import MEASURES

SAMPLE_S = 0.25
TOLD_S = 30
_END_S = 10
_SET_CHILD_SUBREAPER = 36


class Measured(NamedTuple):
    """`events`: an open or a close of a log; of a journal, its events. `peak_bytes`: resident in all processes together at most;
    `largest_bytes`: in the largest."""

    seconds: float
    cpu_s: float
    peak_bytes: int
    largest_bytes: int
    events: int
    answer: str

    @property
    def cpu_us(self) -> float:
        """CPU time for each event."""
        return 1e6 * self.cpu_s / self.events


def measure(what: str, source: Path, connections: int, script: str, told: Callable[[str], None]) -> Measured:
    """Run one of MEASURES by `script --one`. Raises CannotMeasure when it fails; ends its processes when interrupted."""
    scratch = source.parent / "scratch"
    scratch.mkdir(exist_ok=True)
    command = [sys.executable, script, "--one", what, "--source", str(source)]
    environment = {**os.environ, "TMPDIR": str(scratch)}
    # In a session of its own: Ctrl-C is for the benchmark, which ends the whole tree.
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment, start_new_session=True)
    assert process.stdout is not None
    try:
        peak_bytes, largest_bytes, below_s = _watched(process, told)
        said = process.stdout.read()
    finally:
        end(process)
        process.stdout.close()
        shutil.rmtree(scratch, ignore_errors=True)
    if not said:
        raise machine.CannotMeasure(f"{what} at {connections:,} connections ended with {process.returncode}")
    one = json.loads(said)
    if "reason" in one:
        raise machine.CannotMeasure(one["reason"])
    found = re.fullmatch(r"([\d,]+) (events|charges|lines)", one["answer"])
    events = int(found[1].replace(",", "")) if found else 2 * connections
    # Workers that their JVM leaves behind are in no parent's sum, so what was seen of each counts where that is more.
    cpu_s = max(one["cpu_s"], one["own_s"] + below_s)
    return Measured(one["seconds"], cpu_s, peak_bytes, largest_bytes, events, one["answer"])


def run_one(what: str, source: Path) -> None:
    """Runs one measure in this process, and prints one line of JSON."""
    # What a child leaves behind becomes this process's, so that it is seen, and ended, too.
    ctypes.CDLL(None).prctl(_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    before_s, own_s, start = machine.cpu_s(os.getpid()), time.process_time(), time.perf_counter()
    try:
        answer = MEASURES[what][1](source)
    except machine.CannotMeasure as reason:
        print(json.dumps({"reason": str(reason)}))
        return
    seconds = time.perf_counter() - start
    cpu_s, own_s = machine.cpu_s(os.getpid()) - before_s, time.process_time() - own_s
    print(json.dumps({"seconds": seconds, "cpu_s": cpu_s, "own_s": own_s, "answer": answer}))


def _watched(process: subprocess.Popen[str], told: Callable[[str], None]) -> tuple[int, int, float]:
    """Watches a process until it ends: the most bytes resident in all its processes, and in the largest; CPU seconds of all below
    it."""
    peak_bytes = largest_bytes = 0
    cpu_s: dict[int, float] = {}
    start = said = time.monotonic()
    while process.poll() is None:
        pids = machine.tree(process.pid)
        resident = [_resident(pid) for pid in pids]
        cpu_s |= {pid: max(cpu_s.get(pid, 0), _own_s(pid)) for pid in pids[1:]}
        peak_bytes, largest_bytes = max(peak_bytes, sum(resident)), max(largest_bytes, *resident, 0)
        if time.monotonic() - said > TOLD_S:
            said = time.monotonic()
            told(f"  {said - start:,.0f} s, {sum(resident) / 2**30:.1f} GiB")
        time.sleep(SAMPLE_S)
    return peak_bytes, largest_bytes, sum(cpu_s.values())


def end(process: subprocess.Popen[str]) -> None:
    """Ends the whole tree of a process; nothing if it has ended by itself."""
    pids = machine.tree(process.pid) if process.poll() is None else []
    for each in (signal.SIGTERM, signal.SIGKILL):
        for pid in pids:
            with suppress(ProcessLookupError):
                os.kill(pid, each)
        until = time.monotonic() + _END_S
        while pids and time.monotonic() < until:
            process.poll()
            pids = [pid for pid in pids if _resident(pid)]
            time.sleep(SAMPLE_S / 10)
    process.wait()


def _resident(pid: int) -> int:
    try:
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, IndexError):
        return 0


def _own_s(pid: int) -> float:
    """CPU seconds of a process without its children; 0 where it has ended."""
    try:
        words = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0
    return (int(words[11]) + int(words[12])) / machine.TICKS_PER_S
