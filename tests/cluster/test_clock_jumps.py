"""A wall clock that is set under a running cluster, forward and back: limits, displays and the audit don't notice, or say so.

libfaketime sets the clock of the cluster's processes alone; their steady clock goes on, as it does when a clock is set.
"""

import os
import time
from contextlib import ExitStack
from pathlib import Path

import pytest
from harness import admitted, connect, running, until

FAKETIME = next(Path("/usr/lib").glob("*/faketime/libfaketimeMT.so.1"), None)
pytestmark = pytest.mark.skipif(FAKETIME is None, reason="libfaketime is missing: apt-get install libfaketime")

CAPPED, RATED = "127.0.0.2", "127.0.0.3"
RATE, WINDOWS = 2, 11  # connections a second, and seconds' worth that pass at once
JUMPS_S = [3600, -3600, -1, -7200, 90_000]


class Clock:
    """The wall clock of every process that is started under it."""

    def __init__(self, folder: Path, patch: pytest.MonkeyPatch) -> None:
        self.file, self.ahead_s = folder / "ahead", 0
        self.jump(0)
        patch.setenv("LD_PRELOAD", str(FAKETIME))
        patch.setenv("FAKETIME_TIMESTAMP_FILE", str(self.file))
        patch.setenv("DONT_FAKE_MONOTONIC", "1")
        patch.setenv("FAKETIME_CACHE_DURATION", "1")  # how long, in s, until a process sees a jump
        patch.setenv("NO_FAKE_STAT", "1")

    def now_s(self) -> float:
        return time.time() + self.ahead_s

    def jump(self, by_s: int) -> None:
        self.ahead_s += by_s
        new = self.file.with_suffix(".new")
        new.write_text(f"{self.ahead_s:+d}\n")
        os.replace(new, self.file)


def opened(cluster, ip, count):
    """How many of so many connections at a time are let in; all are closed again."""
    with ExitStack() as stack:
        socks = [stack.enter_context(connect(cluster.address, ip)) for _ in range(count)]
        for each in socks:
            each.settimeout(60)  # every look at a clock costs much more under libfaketime
        return sum([admitted(each) for each in socks])


def is_seen(cluster, clock):
    """Whether the cluster answers by this clock; an answer may take long."""
    asked_s = clock.now_s()
    return asked_s - 0.5 < cluster.get("/v1/live")["at"] < clock.now_s() + 0.5


def test_a_clock_that_is_set_changes_no_limit_and_is_told(tmp_path, monkeypatch):
    clock = Clock(tmp_path, monkeypatch)
    # By env: processes are forked of one that has no such library, unless a command is run.
    with running(tmp_path / "d", "--set", "kafka_connections_max_per_ip=5", within=["env"]) as cluster:
        cluster.turnstile("quota", "set", f"ip={RATED}", f"connection_creation_rate={RATE}")
        processes = cluster.processes()
        began_s, rated = time.monotonic(), 0
        for by_s in JUMPS_S:
            clock.jump(by_s)
            until(lambda: is_seen(cluster, clock), what="the jump is seen")
            assert opened(cluster, CAPPED, 8) == 5
            until(lambda: not cluster.metric("turnstile_connections_open"), what="closed connections")
            rated += sum(opened(cluster, RATED, 1) for _ in range(WINDOWS))
            instants = [point["at"] for point in cluster.get(f"/v1/live?since={time.time() - 60}")["series"]]
            assert instants == sorted(instants)
        took_s = time.monotonic() - began_s
        assert rated <= RATE * (WINDOWS + took_s + 1)
        cluster.set("kafka_connections_max_per_ip", 6)

        def is_shown():
            shown = cluster.get("/v1/live?since=4102444800")["series"]  # as a page asks that was opened before
            return shown and abs(shown[-1]["at"] - clock.now_s()) < 30

        until(is_shown, within_s=60, what="seconds by the clock that was set")
        assert cluster.processes() == processes
    told = cluster.turnstile("audit", str(tmp_path / "d"))
    assert "held: " in told and "The wall clock was set meanwhile" in told, told
