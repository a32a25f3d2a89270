"""What every test folder shares: the modules of `tests/support` as a plain import, and a quick Hypothesis profile."""

import sys
from pathlib import Path

from hypothesis import HealthCheck, settings

sys.path.insert(0, str(Path(__file__).parent / "support"))

from admin_fixtures import api, start_api  # noqa: F401 - importable only from here on; fixtures

settings.register_profile("quick", max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("long", max_examples=2000, deadline=None)
settings.load_profile("quick")
