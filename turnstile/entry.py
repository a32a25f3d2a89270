"""Entry of the `turnstile` command. Ctrl-C is in its hands before anything else is imported (interrupted.py).

The interpreter's own start, before this, takes 10 to 20 ms, in which a signal is Python's own business.
"""

import gc
import os
import sys

from turnstile.interrupted import end_at_once


def main() -> None:
    """Runs the command of `sys.argv`; ends the process."""
    end_at_once()
    # A container's health check runs for ever, and should cost nothing.
    if sys.argv[1:] == ["health"] and "TURNSTILE_NAME" not in os.environ:
        from turnstile.health import main as check

        check()
    try:
        gc.disable()  # collector.paused, which is not to be imported yet (main.py, _import_ours)
        from turnstile.cli.main import main as run

        gc.enable()
        run()
    finally:
        end_at_once()
        gc.freeze()  # Python ends with several searches for garbage: a tenth of what starting a cluster costs, for nothing


if __name__ == "__main__":
    main()
