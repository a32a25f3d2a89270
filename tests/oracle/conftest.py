"""The modules of this folder import each other by name, under pytest as under `python tests/oracle/compare.py`."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
