"""The cost of hostile and hasty clients for a shard and its other clients.

    python scripts/bench/attacks/run.py [--only WORD]...

Each attack has a cluster of its own, and a well-behaved client beside it (bystander.py). Printed: the most memory that a
process of the cluster had (goal: 300 MB), how long the other client waited (goal: 50 ms in 99 of 100 cases, 100 ms at worst),
how many of its connections were lost (goal: none), and what the attack itself found. `idle` is the longest that a process
with nothing else to do took to answer meanwhile. On a busy machine no broker's worst is below that, so the goal for the worst is
`idle` plus 100 ms.
`no CPU` is the share of the shards' time for which other processes had the CPUs, the attacker's own among them; beyond a
third, a goal that is missed says nothing ("busy"): with two cores to itself a run has less than a quarter. A goal that is
missed is exit code 1.
"""

from __future__ import annotations

import argparse
import contextlib
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

ROOT = Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT))

from scripts.bench import machine, table  # noqa: E402 - importable only from here on
from scripts.bench.attacks.attack import Attack, Measured  # noqa: E402
from scripts.bench.attacks.bystander import Bystander  # noqa: E402
from scripts.bench.attacks.registry import ATTACKS  # noqa: E402
from scripts.bench.machine import Server  # noqa: E402
from tests.support.certificates import make_certificate  # noqa: E402

MOST_MB, MOST_P99_MS, MOST_MS = 300, 50, 100
BUSY = 1 / 3
COLUMNS = ("attack", "memory", "others' p99", "worst", "idle", "no CPU", "lost", "found", "")


def measure(attack: Attack) -> Measured:
    """One attack on a new cluster. Raises CannotMeasure."""
    with TemporaryDirectory(prefix="turnstile-bench-") as folder:
        options = [*attack.options, *(_tls_listener(Path(folder)) if attack.tls else ())]
        return _measure(attack, options)


def _tls_listener(folder: Path) -> tuple[str, ...]:
    certificate = make_certificate(folder)
    if certificate is None:
        raise machine.CannotMeasure("A listener with TLS needs a certificate: apt-get install openssl")
    return "--listener", "PLAIN=127.0.0.1:0", "--listener", certificate.listener("TLS")


def _measure(attack: Attack, options: Sequence[str]) -> Measured:
    with machine.turnstile(*options) as server:
        attack.prepare(server)
        other = Bystander(server.port)
        peak, ends = [0.0], threading.Event()
        watch = threading.Thread(target=_watch, args=(server.pid, peak, ends))
        watch.start()
        before = _scheduled(server)
        try:
            finding = attack.run(server)
            time.sleep(1)
        finally:
            ends.set()
            watch.join()
            waits = other.end()
        return Measured(peak[0], waits, _without_cpu(before, _scheduled(server)), finding)


def _scheduled(server: Server) -> dict[int, tuple[int, int]]:
    """The ns for which each shard ran, and for which it waited for a CPU, by pid (Linux's schedstat)."""
    found = {}
    for shard in machine.admin_of(server).get("/v1/shards")["shards"]:
        with contextlib.suppress(OSError):  # it was ended just now
            ran, waited, _ = Path(f"/proc/{shard['pid']}/schedstat").read_text().split()
            found[shard["pid"]] = int(ran), int(waited)
    return found


def _without_cpu(before: dict[int, tuple[int, int]], after: dict[int, tuple[int, int]]) -> float:
    ran, waited = (sum(after[pid][at] - before[pid][at] for pid in before.keys() & after.keys()) for at in (0, 1))
    return waited / (ran + waited) if ran + waited else 0.0


def verdict_of(measured: Measured) -> str:
    """met, missed, or busy: missed on a machine that had no CPU for the shards."""
    return "met" if within_goals(measured) else "busy" if measured.without_cpu > BUSY else "missed"


def within_goals(measured: Measured) -> bool:
    """True if all that was measured is within its goals."""
    waits, finding = measured.waits, measured.finding
    steady = waits.p99_ms <= MOST_P99_MS and waits.worst_ms <= MOST_MS + waits.idle_ms and not waits.lost
    if finding is None:
        return measured.peak_mb <= MOST_MB and steady
    return measured.peak_mb <= MOST_MB and finding.met and (steady or not finding.judges_waits)


def _watch(pid: int, peak: list[float], ends: threading.Event) -> None:
    """The most that any process of the cluster has resident, in MB."""
    while not ends.wait(0.02):
        for each in machine.tree(pid):
            with contextlib.suppress(OSError, IndexError, ValueError):
                resident = int(Path(f"/proc/{each}/statm").read_text().split()[1]) * 4096
                peak[0] = max(peak[0], resident / 1e6)


def _row(attack: Attack, measured: Measured) -> tuple[str, ...]:
    waits = measured.waits
    times = (f"{each:.1f} ms" for each in (waits.p99_ms, waits.worst_ms, waits.idle_ms))
    found = "" if measured.finding is None else measured.finding.text
    share = f"{measured.without_cpu:.0%}"
    return (attack.name, f"{measured.peak_mb:.0f} MB", *times, share, str(waits.lost), found, verdict_of(measured))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", action="append", metavar="WORD", help="attacks whose names have this word")
    asked = parser.parse_args()
    rows, missed = [], False
    for attack in ATTACKS:
        if asked.only and not any(word.lower() in attack.name.lower() for word in asked.only):
            continue
        print(f"measuring {attack.name} ...", file=sys.stderr, flush=True)
        measured = measure(attack)
        missed |= verdict_of(measured) == "missed"
        rows.append(_row(attack, measured))
    table.show_plain("Attacks", COLUMNS, rows)
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
