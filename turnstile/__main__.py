"""`python -m turnstile`, and the program for `spark-submit`, which takes a file of Python."""

import sys
from pathlib import Path

if __name__ == "__main__":
    here = Path(__file__).parent
    # As a program, this file's own folder is where Python looks first.
    sys.path[:] = [str(here.parent), *(each for each in sys.path if Path(each) != here)]
    from turnstile.entry import main

    main()
