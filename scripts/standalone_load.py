"""The load part of standalone.py: drivers on workers that see nothing of this machine, and one worker killed in the middle.

They connect from addresses of their own, which stand for the scenario's, and their clocks differ by more than an hour.
"""

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from scripts.bench import machine
from scripts.standalone_check import Check
from scripts.standalone_network import HOST, RANGE
from turnstile.admin_client import AdminClient
from turnstile.load import counters

WAIT_S = 120
SCENARIO = """
title = "An office and a data centre"

[[group]]
name = "office"
sources = "127.1.0.1"
clients = 120
rate = 60
duration_s = 3
hold_s = "end"
reconnect = true

[[group]]
name = "data centre"
sources = "127.2.0.0/30"
clients = 80
duration_s = 3
hold_s = 0.2
repeat = true
pause_s = 0.2
"""
LONG = ("--connections", "3000", "--rate", "200", "--hold", "0.1")
Turnstile = Callable[..., "subprocess.Popen[str]"]


@contextlib.contextmanager
def broker(begin: Turnstile, data: Path) -> Iterator[tuple[str, str]]:
    """(bootstrap, admin API) of a cluster on this machine, which workers reach as they reach the driver."""
    ports = [_free_port(), _free_port()]
    options = ["--listener", f"PLAINTEXT={HOST}:{ports[0]}", "--admin-port", str(ports[1]), "--data-dir", str(data)]
    process = begin("up", "--json", *options, "--set", "kafka_connections_max_per_ip=50")
    try:
        assert process.stdout is not None
        if not process.stdout.readline():
            sys.exit(f"the cluster did not start: {process.communicate()[1]}")
        yield f"{HOST}:{ports[0]}", f"http://127.0.0.1:{ports[1]}"
    finally:
        process.terminate()
        process.communicate()


def checks(begin: Turnstile, folder: Path, master: str, worker: int) -> Iterator[Check]:
    """Loads of a cluster on this machine. In the middle of the last, pid `worker` and all below it are killed."""
    scenario = folder / "office.toml"
    scenario.write_text(SCENARIO)
    with broker(begin, folder / "data") as (bootstrap, admin):
        to = ("load", "--json", "--bootstrap", bootstrap, "--admin", admin)
        here = ("--master", master, "--processes", "2")
        on = (*here, "--worker-sources", RANGE)
        sources = ("--sources", "127.1.0.0/28")
        yield Check("load of a scenario", *_whole(begin, (*to, *on, "--scenario", str(scenario))))
        yield Check("load from addresses that reach nothing", *_unreachable(begin, (*to, *here, *sources)))
        yield Check("load with expectations", *_expected(begin, (*to, *on, *sources, "--connections", "50")))
        yield Check("load, a worker killed", *_killed(begin, (*to, *on, *LONG), AdminClient(admin), worker))


def _whole(begin: Turnstile, command: tuple[str, ...]) -> tuple[str, str]:
    code, told, said = _done(begin(*command))
    office = told["groups"]["office"]
    if code or not told["reconciled"] or len(told["drivers"]) != 2:
        return f"exit code {code}: {told} {said}", ""
    # Each of the scenario's five addresses is one of a worker's, so the office alone meets the cap.
    if not 50 <= office["admitted"] < 120 or not office["refused"] or told["groups"]["data centre"]["refused"]:
        return f"a cap of 50 for an address let in {told['groups']}", ""
    late_ms = max(each["late_ms"] for each in told["drivers"])
    if late_ms > 1000:
        return f"drivers started {late_ms} ms late", ""
    return "", _summary(told)


def _unreachable(begin: Turnstile, command: tuple[str, ...]) -> tuple[str, str]:
    code, told, said = _done(begin(*command))
    is_right = code == 1 and "--worker-sources names addresses" in told.get("error", "")
    return "" if is_right else f"exit code {code}: {told} {said}", str(told.get("error"))


def _expected(begin: Turnstile, command: tuple[str, ...]) -> tuple[str, str]:
    code, told, said = _done(begin(*command, "--expect", "admitted==50", "--expect", "refused>1"))
    holds = code == 99 and said.splitlines()[-1] == "missed: refused>1: it was 0" and told["admitted"] == 50
    return "" if holds else f"exit code {code}: {told} {said}", f"exit code {code}, {said.splitlines()[-1]}"


def _killed(begin: Turnstile, command: tuple[str, ...], admin: AdminClient, worker: int) -> tuple[str, str]:
    before = _admitted(admin)
    process = begin(*command)
    until_s = time.monotonic() + WAIT_S
    while _admitted(admin) < before + 200:
        if process.poll() is not None or time.monotonic() > until_s:
            return f"it did not begin: {process.communicate()}", ""
        time.sleep(0.1)
    for pid in [worker, *machine.tree(worker)]:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    code, told, said = _done(process)
    lost = [driver for driver in told["drivers"] if driver["lost_s"] is not None]
    if code != 1 or len(lost) != 1 or told["reconciled"] is not True:
        return f"exit code {code}: {told} {said}", ""
    [whole] = [driver for driver in told["drivers"] if driver["lost_s"] is None]
    if whole["admitted"] != 1500 or not 0 < lost[0]["admitted"] < 1500:
        return f"of 1,500 clients each: {told['drivers']}", ""
    return "", f"exit code {code}, {_summary(told)}; {said.splitlines()[-1]}"


def _done(process: "subprocess.Popen[str]") -> tuple[int, dict[str, Any], str]:
    out, said = process.communicate(timeout=300)
    try:
        return process.returncode, json.loads(out), said
    except ValueError:
        sys.exit(f"load: exit code {process.returncode}\n{out}{said}")


def _summary(told: dict[str, Any]) -> str:
    drivers = ", ".join(f"{each['host']} {each['admitted']:,}" for each in told["drivers"])
    return f"{told['attempted']:,} attempted, admitted by driver {drivers}; {told['reconciliation']}"


def _admitted(admin: AdminClient) -> int:
    found = counters.read(admin)
    return found.admitted if found is not None else 0


def _free_port() -> int:
    with socket.socket() as sock:
        sock.bind((HOST, 0))
        return int(sock.getsockname()[1])
