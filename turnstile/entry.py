"""Entry of the `turnstile` command. Ctrl-C is in its hands before anything else is imported (interrupted.py).

The interpreter's own start, before this, takes 10 to 20 ms, in which a signal is Python's own business.
"""

from turnstile.interrupted import end_at_once


def main() -> None:
    """Runs the command of `sys.argv`; ends the process."""
    end_at_once()
    try:
        from turnstile.cli.main import main as run

        run()
    finally:
        end_at_once()


if __name__ == "__main__":
    main()
