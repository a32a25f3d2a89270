"""Requests of every API and version, right and wrong, against a cluster of its own: `run.py --frames 1000000 --seed 0`.

Exit code 0: nothing came to harm (tests/support/fuzz/driver.py says what that means); 1: something did. Then the last
frames are in the file that is named, and the same seed sends the same frames again.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parents[2]), str(Path(__file__).parents[1] / "support")]

from fuzz.driver import Fuzzer, Harm  # noqa: E402 (the path above makes it a script that runs from anywhere)
from harness import Cluster  # noqa: E402


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--frames", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--keep", type=Path, default=Path("fuzz-frames.txt"), help="where the last frames go if it fails"
    )
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="turnstile-fuzz-") as folder:
        cluster = Cluster(Path(folder) / "data", "--topic", "a:4", "--topic", "b:1")
        fuzzer = Fuzzer(cluster, arguments.seed)
        try:
            fuzzer.run(arguments.frames, told=lambda text: print(text, flush=True))
        except Harm as harm:
            lines = [f"{each.number} {each.api_key} {each.version} {each.data[:20_000].hex()}" for each in fuzzer.sent]
            arguments.keep.write_text("\n".join(lines) + "\n")
            print(f"FAILED {harm}\nreproduce: {sys.argv[0]} --seed {arguments.seed} --frames {fuzzer.frames.number}")
            print(f"the last {len(lines)} frames: {arguments.keep}")
            cluster.kill()
            return 1
        cluster.stop()
    print(f"seed {arguments.seed}: {fuzzer.frames.number} frames, nothing came to harm")
    return 0


if __name__ == "__main__":
    sys.exit(main())
