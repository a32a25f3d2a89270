"""`trace.py FIRST LAST`: a digest of every step of these schedules of the token protocol, and whether they ran compiled modules.

Two builds that print the same digest did the same, message by message.
"""

from __future__ import annotations

import hashlib
import sys
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parents[3]), str(Path(__file__).parents[1])]

from simulation.schedule import Schedule  # noqa: E402 - importable only from here on

from shards import is_compiled  # noqa: E402


def main(first: int, last: int) -> None:
    """Runs the schedules; raises what the first that fails raises."""
    steps, digest = 0, hashlib.sha256()
    for seed in range(first, last + 1):
        lines: list[str] = []
        Schedule(seed, log=lines.append).run()
        steps += len(lines)
        digest.update("\n".join(lines).encode())
    print("compiled" if is_compiled else "sources", steps, digest.hexdigest())


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
