"""Runs seeded schedules and says which fail: of the token protocol and of accepting (`run.py --schedules 10000 --seed 0`), of
client quotas (`--of quotas`), or of the cap or the rate of a whole cluster (`--of cluster-cap`, `--of cluster-rate`).

A failure is reproduced, step by step, by `run.py --seed N --schedules 1 --verbose`. `run.py --mutants` breaks each guard
of the protocol instead, or of client quotas, and says how soon that is seen.
"""

from __future__ import annotations

import argparse
import itertools
import os
import sys
import time
import traceback
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parents[2]), str(Path(__file__).parents[1] / "support")]
os.environ["TURNSTILE_COMPILED"] = "0"  # mutants and doubles replace parts of modules

# The path above makes it a script that runs from anywhere.
from simulation import mutants, quota_mutants  # noqa: E402
from simulation.seeds import KINDS, LOGGED, QUOTAS, TOKENS, failures, schedule_of  # noqa: E402

_CHUNK = 100


def main() -> int:
    """Exit code 0: all held; 1: some schedule failed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--schedules", type=int, default=500)
    parser.add_argument("--seed", type=int, default=0, help="of the first schedule; the next has the next number")
    parser.add_argument("--of", choices=KINDS, default=TOKENS, help="the kind of schedules")
    parser.add_argument("--verbose", action="store_true", help="print every step, in one process")
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    parser.add_argument(
        "--mutants",
        action="store_true",
        help=f"check that each mutant is seen within {mutants.ENOUGH} schedules ({quota_mutants.ENOUGH} of quotas)",
    )
    arguments = parser.parse_args()
    kind = arguments.of
    if (arguments.verbose or arguments.mutants) and kind not in LOGGED:
        parser.error(f"--verbose and --mutants go with --of {' or '.join(LOGGED)}")
    if arguments.mutants:
        return check_mutants(arguments.processes, quotas=kind == QUOTAS)
    seeds = range(arguments.seed, arguments.seed + arguments.schedules)
    if arguments.verbose:
        for seed in seeds:
            try:
                schedule_of(seed, print, kind=kind).run()
            except Exception:
                traceback.print_exc()
                return 1
        return 0
    chunks = [seeds[start : start + _CHUNK] for start in range(0, len(seeds), _CHUNK)]
    started, done, failed = time.monotonic(), 0, 0
    with ProcessPoolExecutor(arguments.processes) as pool:
        for chunk, found in zip(chunks, pool.map(failures, chunks, itertools.repeat(kind)), strict=True):
            done += len(chunk)
            for seed, error in found:
                failed += 1
                verbose = " --verbose" if kind in LOGGED else ""
                print(
                    f"\nseed {seed}: {error}\n  reproduce: {sys.argv[0]} --of {kind} --seed {seed} --schedules 1{verbose}"
                )
            print(
                f"\r{done}/{len(seeds)} schedules, {failed} failed, {time.monotonic() - started:.0f} s",
                end="",
                flush=True,
            )
    print()
    return 1 if failed else 0


def check_mutants(processes: int, *, quotas: bool) -> int:
    """Exit code 0: each violates its invariant within ENOUGH schedules; 1: some survive."""
    of = quota_mutants if quotas else mutants
    survivors, count = 0, len(of.MUTANTS)
    with ProcessPoolExecutor(processes) as pool:
        seeds = pool.map(_seed_of, range(count), itertools.repeat(quotas))
        for mutant, seed in zip(of.MUTANTS, seeds, strict=False):
            survivors += seed is None
            print(f"{'survives' if seed is None else f'seed {seed}':9} {mutant.invariant:5} {mutant.name}", flush=True)
    print(f"{count - survivors} of {count} mutants were seen within {of.ENOUGH} schedules")
    return 1 if survivors else 0


def _seed_of(number: int, quotas: bool) -> int | None:
    of = quota_mutants if quotas else mutants
    return of.seed_that_sees(of.MUTANTS[number])


if __name__ == "__main__":
    sys.exit(main())
