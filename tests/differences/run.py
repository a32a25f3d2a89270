"""Turnstile beside Apache Kafka 4.1, answer by answer: `run.py [--record] [--only WORD]`.

Holds every conversation of tests/support/differential with both, live, and prints the answers that differ, those that
docs/differences.md lists apart. `--record` keeps what Kafka answered for the tests that have no Java. Needs Maven and a JDK.
Exit code 0: all differences are listed, and all that are listed are there; 1: not so.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "tests" / "support")]

from differential import brokers, conversations  # noqa: E402, F401 (the path above makes it a script that runs from anywhere)
from differential.compare import differences  # noqa: E402
from differential.recording import Recording, load, recording, save  # noqa: E402
from differential.table import converse  # noqa: E402

RECORDED = ROOT / "tests" / "clients" / "differences.json"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--record", action="store_true")
    parser.add_argument("--recorded", action="store_true")
    parser.add_argument("--only", default="")
    arguments = parser.parse_args()
    if arguments.recorded:
        theirs = load(RECORDED)
    else:
        with brokers.kafka() as addresses:
            theirs = recording(converse(*addresses, arguments.only))
    if arguments.record:
        save(RECORDED, theirs)
    with tempfile.TemporaryDirectory(prefix="differences-") as folder, brokers.turnstile(Path(folder) / "d") as addresses:
        ours = recording(converse(*addresses, arguments.only))
    n = 0
    for each in differences({k: v for k, v in theirs.items() if k in ours}, ours):
        print(each)
        n += 1
    print(len(ours), "conversations", sum(map(len, ours.values())), "answers", n, "differences")
    return 0


if __name__ == "__main__":
    sys.exit(main())
