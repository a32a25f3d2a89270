"""A scenario on a cluster as it is, then under the limits that the scenario suggests: `turnstile load --apply`.

The second run begins when the rates of the first are forgotten: after quota.window.num x quota.window.size.seconds.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from turnstile.admin_client import AdminClient
from turnstile.load.driver import LoadResult
from turnstile.load.drivers import DriverReport
from turnstile.load.spec import LoadScenario
from turnstile.load.suggestion import in_force


@dataclass(frozen=True)
class Comparison:
    """Both runs. `limited` is None where the first was interrupted."""

    scenario: LoadScenario
    plain: LoadResult
    limited: LoadResult | None

    @property
    def interrupted(self) -> bool:
        return self.limited is None or self.limited.interrupted

    @property
    def disagrees(self) -> bool:
        """True if driver and cluster counted differently in one of the runs."""
        return any(run is not None and run.reconciliation.agree is False for run in (self.plain, self.limited))

    @property
    def lost(self) -> list[DriverReport]:
        """Drivers that were lost in one of the runs."""
        return [driver for run in (self.plain, self.limited) if run is not None for driver in run.lost]


def compare(
    scenario: LoadScenario,
    admin: AdminClient,
    run: Callable[[], LoadResult],
    *,
    wait: Callable[[float], None] = time.sleep,
) -> Comparison:
    """Calls `run` twice, `wait` with seconds in between. Raises AdminError, and what `run` raises."""
    config = admin.get("/v1/cluster_config")
    plain = run()
    if plain.interrupted:
        return Comparison(scenario, plain, None)
    wait(float(config["quota.window.num"] * config["quota.window.size.seconds"]))
    with in_force(scenario.suggested, admin):
        return Comparison(scenario, plain, run())
