"""A million connects and closes: memory stays flat, no pool is left behind, no token is lost.

    .venv/bin/python scripts/soak.py [--connections 1000000]

Drives a real cluster with the benchmarks' C client from 1,000 addresses under caps, in rounds. After each round it waits
until every idle token has gone home, and prints what the shards' memory is and what the cluster still knows of pools.
Exit code 0: the last rounds took no more memory than the first ones, and nothing was left.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "bench"))

import machine

FLAT_WITHIN = 1.05
HOME_WITHIN_S = 60.0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--connections", type=int, default=1_000_000)
    wanted = parser.parse_args().connections
    with machine.turnstile(
        "--set", "kafka_connections_max_per_ip=50", "--set", "kafka_connections_max=100000"
    ) as server:
        return soak(server, wanted)


def soak(server: machine.Server, wanted: int) -> int:
    done = rounds = 0
    settled: list[int] = []
    while done < wanted:
        load = machine.drive(server, "connect", seconds=10, sources=1000)
        done += load.answered + load.refused
        rounds += 1
        pools = wait_until_home(server)
        settled.append(sum(map(private_bytes, shard_pids(server))))
        print(f"{done:>9,} connections   {settled[-1] / 1e6:7.2f} MB in the shards   {pools} pools left", flush=True)
        if pools:
            print("pools were left behind")
            return 1
    # What the first round brings with it is imports, buffers and caches; from then on nothing may grow.
    growth = settled[-1] / settled[min(1, len(settled) - 1)]
    print(f"memory after the last round is {growth:.3f} of that after the second; {rounds} rounds")
    return 0 if growth <= FLAT_WITHIN else 1


def shard_pids(server: machine.Server) -> list[int]:
    return [shard["pid"] for shard in machine.admin_of(server).get("/v1/shards")["shards"]]


def private_bytes(pid: int) -> int:
    """Memory that is this process's alone, not shared with the supervisor it was forked from."""
    for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
        if line.startswith("Private_Dirty:"):
            return int(line.split()[1]) * 1024
    return 0


def wait_until_home(server: machine.Server) -> int:
    """Waits until no address has a token anywhere; returns how many pools of addresses are left if that does not come."""
    deadline = time.monotonic() + HOME_WITHIN_S
    while True:
        pools = [pool for pool in machine.admin_of(server).get("/v1/tokens")["pools"] if pool["kind"] == "ip"]
        if not pools or time.monotonic() > deadline:
            return len(pools)
        time.sleep(0.5)


if __name__ == "__main__":
    sys.exit(main())
