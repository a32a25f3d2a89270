"""Turnstile beside Apache Kafka 4.3.1, answer by answer: `run.py [--record] [--api NAME] [--kafka VERSION]`.

Holds every conversation of tests/support/differential with both, live, and prints what docs/differences.md does not say of
their answers. `--record` keeps what Kafka answered, for the test that has no Java. `--recorded` compares with that instead.
Needs Maven and a JDK. Exit code 0: all differences are listed, and all that are listed are there; 1: not so.
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
from differential.known import rows, unexplained  # noqa: E402
from differential.recording import Recording, load, recording, save  # noqa: E402
from differential.table import converse  # noqa: E402

RECORDED = ROOT / "tests" / "clients" / "differences.json"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--record", action="store_true")
    parser.add_argument("--recorded", action="store_true")
    parser.add_argument("--api", default="", help="only conversations about APIs whose name begins so")
    parser.add_argument("--kafka", default=brokers.KAFKA, metavar="VERSION", help="another release, such as 4.1.0")
    arguments = parser.parse_args()
    if arguments.record and arguments.kafka != brokers.KAFKA:
        parser.error(f"what is recorded is of Kafka {brokers.KAFKA}")
    theirs = load(RECORDED) if arguments.recorded else _of_kafka(arguments.api, arguments.kafka)
    if arguments.record:
        kept = load(RECORDED) if arguments.api else {}
        save(RECORDED, {**kept, **theirs})
    with (
        tempfile.TemporaryDirectory(prefix="differences-") as folder,
        brokers.turnstile(Path(folder) / "data") as addresses,
    ):
        ours = recording(converse(*addresses, arguments.api))
    theirs = {name: said for name, said in theirs.items() if name.startswith(arguments.api)}
    found = list(differences(theirs, ours))
    wrong = list(unexplained(found, [row for row in rows() if row.api.startswith(arguments.api)]))
    print("\n".join(wrong))
    answers = sum(len(said) for said in ours.values())
    print(f"{len(ours)} conversations, {answers} answers, {len(found)} fields differ, {len(wrong)} findings")
    return 1 if wrong else 0


def _of_kafka(api: str, version: str) -> Recording:
    with brokers.kafka(version) as addresses:
        return recording(converse(*addresses, api))


if __name__ == "__main__":
    sys.exit(main())
