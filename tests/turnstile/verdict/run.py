"""Every client of clients/client.py through the whole quick course, over several seeds: each fails its check, and only that.

    python tests/turnstile/verdict/run.py [--seeds 10] [--first 0] [--jobs 3] [NAME ...]

About a minute for each, mostly waiting: `--jobs` of them go on side by side, each a process with a cluster of its own. Where the
machine kept a bad client from being judged, that is said, and it is judged again, `--tries` times in all. Exit code 1 when one came
out otherwise.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path

import turnstile
from turnstile.verdict.finding import FAIL, PASS, UNJUDGED, Finding
from turnstile.verdict.run import PRIVATE
from turnstile.verdict.times import Times

CLIENT = Path(__file__).parent / "clients" / "client.py"
BAD = dict(re.findall(r'^    "([\w-]+)": "([\w-]+)",$', CLIENT.read_text(), re.MULTILINE))
GOOD = ("good", "logs-in")
TIMES = Times().quick()


def judge(name: str, seed: int) -> dict[str, Finding]:
    """Here and now."""
    has_login = name == "logs-in"
    listeners = ["CLIENTS=127.0.0.1:0,sasl", "READER=127.0.0.1:0"] if has_login else []
    users = {"alice": "secret"} if has_login else {}
    with turnstile.Cluster(topics=["orders"], users=users, listeners=listeners, limits=PRIVATE) as cluster:
        read_at = cluster.bootstrap_of("READER") if has_login else None
        found = cluster.verdict([sys.executable, str(CLIENT), name], times=TIMES, seed=seed, read_at=read_at)
    return dict(found.findings)


def judged(name: str, seed: int) -> dict[str, Finding]:
    """In a process of its own."""
    command = [sys.executable, __file__, name, "--first", str(seed), "--only"]
    told = subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout
    return {check: Finding(*finding) for check, finding in json.loads(told).items()}


def failed(findings: Mapping[str, Finding]) -> list[str]:
    return [check for check, finding in findings.items() if finding.verdict == FAIL]


def is_clean(findings: Mapping[str, Finding]) -> bool:
    """Whether all is passed, but for what the machine kept from being judged."""
    return {finding.verdict for finding in findings.values()} <= {PASS, UNJUDGED}


def is_open(name: str, findings: Mapping[str, Finding]) -> bool:
    """Whether a bad client was blamed for nothing, as its check could not be judged."""
    return name in BAD and not failed(findings) and findings[BAD[name]].verdict == UNJUDGED


def decided(name: str, seed: int, tries: int) -> dict[str, Finding]:
    """Once more while it is open."""
    findings = judged(name, seed)
    for _ in range(tries - 1):
        if not is_open(name, findings):
            break
        print(f"again {name} seed {seed}: {findings[BAD[name]].evidence}", flush=True)
        findings = judged(name, seed)
    return findings


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("names", nargs="*", default=[*GOOD, *BAD])
    parser.add_argument("--seeds", type=int, default=1, help="how many")
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--jobs", type=int, default=1, help="verdicts side by side")
    parser.add_argument("--tries", type=int, default=3, help="for each, while the machine keeps it from being judged")
    parser.add_argument("--only", action="store_true", help="the first seed of one client, and its findings as JSON")
    chosen = parser.parse_args()
    if chosen.only:
        print(json.dumps(judge(chosen.names[0], chosen.first)))
        return 0
    seeds = range(chosen.first, chosen.first + chosen.seeds)
    right: Counter[str] = Counter()
    with ThreadPoolExecutor(chosen.jobs) as pool:
        running = {
            pool.submit(decided, name, seed, chosen.tries): (name, seed) for seed in seeds for name in chosen.names
        }
        for done in as_completed(running):
            name, seed = running[done]
            findings = done.result()
            is_right = failed(findings) == ([BAD[name]] if name in BAD else []) and (name in BAD or is_clean(findings))
            right[name] += is_right
            others = {
                check: finding.verdict for check, finding in findings.items() if finding.verdict not in (PASS, FAIL)
            }
            print(
                f"{'ok   ' if is_right else 'WRONG'} {name} seed {seed}: failed {failed(findings)} {others}", flush=True
            )
            if not is_right:
                for check, finding in findings.items():
                    print(f"      {check}: {finding.verdict}: {finding.evidence}", flush=True)
    for name in chosen.names:
        print(f"{name} ({BAD.get(name, 'none')}): {right[name]} of {len(seeds)}")
    return 0 if right.total() == len(seeds) * len(chosen.names) else 1


if __name__ == "__main__":
    sys.exit(main())
