"""The pipe of a program under test: its last words, however many descriptors are open."""

from __future__ import annotations

import os
import resource
import subprocess
import sys

from turnstile.verdict.output import Output


def test_the_end_is_kept_of_what_has_been_written_when_it_is_closed():
    output = Output()
    os.write(output.fd, b"first " + b"." * 3000 + b" last")
    output.close()
    assert output.last_words().endswith(" last") and "first" not in output.last_words()


def test_descriptors_beyond_what_select_can_name():
    code = (
        "import os; from turnstile.verdict.output import Output; held = [os.pipe() for _ in range(600)]; output = Output();"
        "os.write(output.fd, b'words'); output.close(); print(output.last_words())"
    )
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource_limit = f"import resource; resource.setrlimit(resource.RLIMIT_NOFILE, ({most}, {most})); "
    done = subprocess.run([sys.executable, "-c", resource_limit + code], capture_output=True, text=True, timeout=60)
    assert (done.stdout, done.stderr) == ("words\n", "")
