"""`make chaos`: runs of traffic under faults and changes at random, one seed after the other, until the time is over.

    python tests/chaos/run.py [--seconds 7200] [--each 120] [--seed 1] [--shards 2] [--verbose]

Exit code 0: everything held; 1: something did not, and its seed is printed; its data directory is kept.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
import time
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parents[2]), str(Path(__file__).parents[1] / "support")]

from chaos.run import chaos  # noqa: E402 - importable only from here on


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=7200, help="for all runs together")
    parser.add_argument("--each", type=float, default=120, help="seconds of faults in a run")
    parser.add_argument("--seed", type=int, default=1, help="of the first run; the next has the next number")
    parser.add_argument("--shards", type=int, default=2)
    parser.add_argument("--verbose", action="store_true", help="print every fault and change")
    asked = parser.parse_args()
    ends_s = time.monotonic() + asked.seconds
    seed, failed = asked.seed, []
    while time.monotonic() < ends_s:
        folder = Path(tempfile.mkdtemp(prefix="turnstile-chaos-"))
        print(f"seed {seed}", flush=True)
        lines: list[str] = []

        def log(line: str, lines: list[str] = lines) -> None:
            lines.append(line)
            if asked.verbose:
                print(f"  {line}", flush=True)

        each = min(asked.each, max(5.0, ends_s - time.monotonic()))
        found = chaos(folder / "data", seed, each, shards=asked.shards, log=log)
        for line in found[:20]:
            print(f"  WRONG: {line}")
        if not asked.verbose:
            print(*(f"  {line}" for line in lines[-2:]), sep="\n", flush=True)
        if found:
            failed.append(seed)
            print(f"  kept: {folder}", flush=True)
        else:
            shutil.rmtree(folder)
        seed += 1
    print(f"{seed - asked.seed - len(failed)} passed, {len(failed)} failed" + (f": seeds {failed}" if failed else ""))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
