"""Every client of clients/client.py through the whole quick course, over several seeds: each fails its check, and only that.

    python tests/turnstile/verdict/run.py [--seeds 10] [NAME ...]

About 50 s for each; exit code 1 when one came out otherwise.
"""

from __future__ import annotations

import argparse
import re
import sys
from dataclasses import replace
from pathlib import Path

import turnstile
from turnstile.verdict.course import Times
from turnstile.verdict.finding import FAIL, WARN
from turnstile.verdict.run import PRIVATE

CLIENT = Path(__file__).parent / "clients" / "client.py"
BAD = dict(re.findall(r'^    "([\w-]+)": "([\w-]+)",$', CLIENT.read_text(), re.MULTILINE))


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("names", nargs="*", default=["good", *BAD])
    parser.add_argument("--seeds", type=int, default=1)
    chosen = parser.parse_args()
    wrong = 0
    for name in chosen.names:
        for seed in range(chosen.seeds):
            with turnstile.Cluster(topics={"orders": 1}, shards=2, limits=PRIVATE) as cluster:
                command = [sys.executable, str(CLIENT), name]
                found = cluster.verdict(command, times=replace(Times().quick(), copies=3), seed=seed)
            failed = [check for check, finding in found.findings.items() if finding.verdict == FAIL]
            warned = [check for check, finding in found.findings.items() if finding.verdict == WARN]
            is_right = failed == ([BAD[name]] if name in BAD else [])
            wrong += not is_right
            print(f"{'ok   ' if is_right else 'WRONG'} {name} seed {seed}: failed {failed} warned {warned}", flush=True)
            if not is_right:
                print(
                    "\n".join(f"      {check}: {finding.evidence}" for check, finding in found.findings.items()),
                    flush=True,
                )
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
