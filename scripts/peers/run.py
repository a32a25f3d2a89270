"""Start a peer by hand: `python -m scripts.peers.run kafka|kfake`. Prints its address; ends with Ctrl-C."""

from __future__ import annotations

import contextlib
import signal
import sys

from scripts.peers import fetching, servers


def main(name: str) -> int:
    """Run the peer until a signal."""
    try:
        with {"kafka": servers.kafka, "kfake": servers.kfake}[name]() as server:
            print(f"{name} listens on {server.bootstrap} (pid {server.pid})", flush=True)
            with contextlib.suppress(KeyboardInterrupt):
                signal.pause()
    except fetching.Missing as missing:
        print(missing, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    if len(sys.argv) != 2 or sys.argv[1] not in ("kafka", "kfake"):
        print(__doc__, file=sys.stderr)
        sys.exit(2)
    sys.exit(main(sys.argv[1]))
