"""`turnstile load --master` as a user types it: its exit codes, and what is on which stream."""

import json
import os
import shutil
import signal
import subprocess
import sys
from contextlib import contextmanager

import pytest
from fake_brokers import fake_broker
from harness import until

COMMAND = [
    sys.executable,
    "-c",
    "from turnstile.cli.main import main; main()",
    "load",
    "--master",
    "local[2]",
    "--json",
]

pytestmark = pytest.mark.skipif(
    shutil.which("java") is None and not os.environ.get("JAVA_HOME"), reason="no JDK: Spark can't start"
)


@contextmanager
def load(*options):
    """The command against a fake broker of its own, and that broker's admin API."""
    with fake_broker() as (bootstrap, admin):
        arguments = ["--bootstrap", bootstrap, "--admin", admin.url, "--sources", "127.1.0.0/28", *options]
        process = subprocess.Popen(
            [*COMMAND, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
        )
        yield process, admin


def test_an_expectation_that_does_not_hold_is_exit_code_99():
    with load("--connections", "30", "--expect", "admitted==30", "--expect", "refused>1") as (process, _):
        out, err = process.communicate(timeout=120)
    assert process.returncode == 99, err
    told = json.loads(out)
    assert told["admitted"] == 30 and told["reconciled"] is True and len(told["drivers"]) == 2
    assert err.endswith("missed: refused>1: it was 0\n")
    assert err.startswith("load: ")  # progress, as stderr is no terminal a line every few seconds


def test_ctrl_c_ends_it_in_order_and_shows_what_there_is():
    with load("--rate", "100", "--duration", "100", "--hold", "end") as (process, admin):
        until(
            lambda: _admitted(admin.text("/metrics")) >= 3 or process.poll() is not None,
            within_s=120,
            what="a load that runs",
        )
        assert process.poll() is None, process.stderr.read()
        os.killpg(process.pid, signal.SIGINT)
        out, err = process.communicate(timeout=60)
    told = json.loads(out)
    assert process.returncode == 130
    assert told["interrupted"] is True and told["reconciled"] is True
    assert told["attempted"] == told["admitted"] + told["unanswered"]
    assert "Traceback" not in err and err.endswith("turnstile: interrupted\n")


def _admitted(metrics):
    if "turnstile_connections_admitted_total" not in metrics:
        return 0
    return int(metrics.splitlines()[0].rpartition(" ")[2])
