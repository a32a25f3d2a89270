"""Large buffers are reused: without asking for that, glibc maps and clears them anew each time."""

import platform
import subprocess
import sys

import pytest

PROGRAM = """
import os, resource, sys, tempfile
from broker.storage.memory import keep_freed_buffers
if sys.argv[1] == "kept":
    keep_freed_buffers()
file = tempfile.TemporaryFile()
file.write(bytes(1 << 20))
file.flush()
def faults():
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt
def answer():
    return b"".join([b"head", os.pread(file.fileno(), 1 << 20, 0)])
for _ in range(20):
    answer()
before = faults()
for _ in range(100):
    answer()
print((faults() - before) // 100)
"""


def faults_per_answer(how: str) -> int:
    return int(subprocess.run([sys.executable, "-c", PROGRAM, how], capture_output=True, check=True).stdout)


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="only glibc is told how")
def test_a_fetch_answer_of_a_megabyte_takes_no_fresh_pages() -> None:
    assert faults_per_answer("kept") < 10
    assert faults_per_answer("as it comes") > 100
