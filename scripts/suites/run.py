"""Clients' own integration suites, run against Apache Kafka 4.3 and Turnstile with the same settings.

    python scripts/suites/run.py                                    all suites, against all peers: hours
    python scripts/suites/run.py --suite franz-go --peer shards     one of each; both can be given several times
    python scripts/suites/run.py --suite franz-go --only TestPing   of that suite, tests whose name contains a word
    python scripts/suites/run.py --table                            runs nothing: what is kept

A suite comes from its package (Go proxy, PyPI, npm, Maven) and is built under build/suites, once. Each run has a cluster of its
own, and ends after --limit minutes: what has not ended by then has failed. A test that failed is run once more, as many of them
have time limits of a second or two; what passes then is said to. --keep FOLDER keeps what each suite printed.
--write keeps the results in scripts/suites/results.json and makes the section of docs/clients.md from all that are there.
Ctrl-C ends the suite and its cluster.

Exit code 0: Turnstile passes every test that Kafka passes; 1: not so; 2: something could not be run.
"""

from __future__ import annotations

import argparse
import shutil
import signal
import sys
import time
from datetime import UTC, datetime
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from scripts.suites import franz_go, kafka_python, kafka_tools, librdkafka, table  # noqa: E402 - importable only from here on
from scripts.suites.peers import PEERS, Peer  # noqa: E402
from scripts.suites.suite import CannotRun, Results, Suite, Target  # noqa: E402

SUITES = (franz_go.SUITE, kafka_python.SUITE, *librdkafka.SUITES, kafka_tools.SUITE)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--suite", action="append", choices=[suite.name for suite in SUITES])
    parser.add_argument("--peer", action="append", choices=[peer.name for peer in PEERS])
    parser.add_argument("--only", default="", metavar="WORD")
    parser.add_argument("--limit", type=float, default=45, metavar="MINUTES")
    parser.add_argument("--keep", type=Path, metavar="FOLDER")
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--table", action="store_true")
    asked = parser.parse_args()
    if asked.only and asked.write:
        parser.error("--write keeps whole runs, not --only a part of one")
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    found, complete = ({} if asked.only else table.load()), True
    for suite in () if asked.table else SUITES:
        if asked.suite is None or suite.name in asked.suite:
            complete &= _measure(suite, asked, found)
    print("\n".join(table.lines(found, SUITES)))
    if asked.write:
        table.write(found, SUITES)
    worse = any(table.missed(of_suite["runs"], peer) for of_suite in found.values() for peer in table.ORACLES)
    return 2 if not complete else 1 if worse else 0


def _measure(suite: Suite, asked: argparse.Namespace, found: table.Found) -> bool:
    """Runs a suite against the peers asked for; whether it could be."""
    try:
        suite.prepare()
        for peer in PEERS:
            if asked.peer is None or peer.name in asked.peer:
                results = _run(suite, peer, asked)
                if asked.write:
                    found.update(table.load())  # another run may have written meanwhile
                table.add(found, suite, peer.name, f"{datetime.now(UTC):%Y-%m-%d}", results)
                if asked.write:
                    table.write(found, SUITES)
    except CannotRun as fault:
        print(f"{suite.name}: {fault}", file=sys.stderr)
        return False
    return True


def _run(suite: Suite, peer: Peer, asked: argparse.Namespace) -> Results:
    print(f"{suite.name} {suite.version} against {peer.shown}", flush=True)
    began = time.monotonic()
    with peer.start() as target:
        results = suite.run(target, asked.only, asked.limit * 60)
        if suite.alone:
            results |= _again(suite, target, results, began + asked.limit * 60)
        if asked.keep is not None:
            shutil.copytree(target.folder, asked.keep / f"{suite.name}-{peer.name}", dirs_exist_ok=True)
    failed = [name for name, outcome in results.items() if outcome == "fail"]
    print(f"    {table.counts(results)} in {time.monotonic() - began:.0f} s", flush=True)
    for name in failed:
        print(f"    failed: {name}", flush=True)
    return results


def _again(suite: Suite, target: Target, results: Results, deadline: float) -> Results:
    """The second try of what failed; a subtest is run with its test."""
    failed = [name for name, outcome in results.items() if outcome == "fail"]
    second: Results = {}
    folder = target.folder / "second-try"
    folder.mkdir()
    for top in dict.fromkeys(name.partition("/")[0] for name in failed):
        if time.monotonic() < deadline:
            second |= suite.run(target._replace(folder=folder), top, deadline - time.monotonic())
    return {name: "again" for name in failed if second.get(name) == "pass"}


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        print("ended", file=sys.stderr)
        sys.exit(130)
