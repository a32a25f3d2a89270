"""A load whose drivers are the tasks of one barrier stage, one in each slot.

Spark starts the tasks of such a stage together or not at all. When one of them is lost it gives up the stage; the others are
left to run to their end (SETTINGS), since what they do is asked for by the clock and can't be done again.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Future
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from turnstile.admin_client import AdminClient
from turnstile.fleet import task
from turnstile.fleet.hub import Driver, Hub
from turnstile.fleet.member import Order
from turnstile.load.driver import LoadResult, Played, around, resolve
from turnstile.load.drivers import DriverReport
from turnstile.load.own_addresses import OwnAddresses
from turnstile.load.spec import LoadScenario
from turnstile.load.tally import COUNTS, Tally
from turnstile.load.watch import Lookout, Watch
from turnstile.pipeline.errors import PipelineError, sentence
from turnstile.pipeline.interrupts import in_thread
from turnstile.pipeline.session import is_local

if TYPE_CHECKING:
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

SETTINGS: Mapping[str, str] = {
    "spark.task.maxFailures": "1",
    "spark.stage.maxConsecutiveAttempts": "1",
    "spark.speculation": "false",
    "spark.dynamicAllocation.enabled": "false",
    "spark.scheduler.barrier.maxConcurrentTasksCheck.maxFailures": "1",
    # Spark gives up a barrier stage that has lost a task, and ends the Python of the others this much later.
    "spark.python.task.killTimeout": "30d",
    "spark.python.daemon.module": "pyspark.daemon",
}
"""A load is not to be begun again in the middle, and each slot is to have its driver for as long as it lasts."""
SHIPPED = ("turnstile/load/*.py", "turnstile/fleet/*.py")
STEADY_S = 3.0
"""Slots are taken for all there are when none has come for so long."""
POLL_S = 0.1
ENDS_WITHIN_S = 10.0
REASON_WITHIN_S = 5.0
SLOTS_WITHIN_S = 60.0
LOCAL_HUB = "127.0.0.1"


class Places(NamedTuple):
    """The number of drivers, and what they reach. None: as many as there are slots; the scenario's addresses; Spark's own host."""

    drivers: int | None = None
    allowed: str | None = None
    hub: tuple[str, int] | None = None


def run(
    spark: SparkSession,
    scenario: LoadScenario,
    bootstrap: str,
    admin: AdminClient,
    places: Places = Places(),  # noqa: B008 - immutable
    *,
    step: Callable[[str], None] = lambda _: None,
    watch: Callable[[Watch], None] = lambda _: None,
) -> LoadResult:
    """As driver.run, on the workers of a session with SETTINGS. `step`: what is being waited for.

    Ctrl-C ends the run early and returns what there is. Raises DriverError and AdminRefused as driver.run does, PipelineError for
    what fails in Spark.
    """
    context = spark.sparkContext
    count = _slots(context, places.drivers, step)
    host, port = places.hub or (_own_host(context), 0)
    secret = secrets.token_hex(16)
    job: list[Future[object]] = []

    def check() -> None:
        if job and job[0].done() and (fault := job[0].exception()) is not None and len(hub.drivers) < count:
            raise _as_pipeline_error(fault)

    hub = Hub((host, port), secret, count, check=check)
    try:
        order = Order(scenario, bootstrap, (host, hub.port), secret, count, places.allowed)
        job.append(in_thread(partial(_submit, context, order)))
        hub.gather(lambda there: step(f"waiting for drivers: {there} of {count} are there"))
        own = _own(order, hub.drivers.values())
        return around(scenario, bootstrap, admin, own, lambda: _play(hub, order, watch, job[0]))
    finally:
        hub.close()
        if job:
            _await(job[0])


def _submit(context: SparkContext, order: Order) -> object:
    rows = context.parallelize(range(order.drivers), order.drivers)
    return rows.barrier().mapPartitions(partial(task.run, order)).collect()


def _play(hub: Hub, order: Order, watch: Callable[[Watch], None], job: Future[object]) -> Played:
    scenario, bootstrap = order.scenario, order.bootstrap
    began_s = hub.start()
    lookout = Lookout(scenario, bootstrap, began_s, watch)
    interrupted = False
    while True:
        try:
            hub.collect(lookout.look, not_before_s=began_s + (scenario.seconds or 0.0))
            break
        except KeyboardInterrupt:
            if interrupted:
                raise
            interrupted = True
            hub.end()
    seconds = time.monotonic() - began_s
    drivers = [hub.drivers[number] for number in sorted(hub.drivers)]
    groups = [Tally() for _ in scenario.groups]
    for driver in drivers:
        for total, part in zip(groups, driver.tallies(len(groups)), strict=True):
            total.add(part)
    why = _reason(job) if any(driver.lost_s is not None for driver in drivers) else None
    reports = tuple(_report(driver, len(groups), why) for driver in drivers)
    return Played(groups, seconds, interrupted, reports)


def _own(order: Order, drivers: Iterable[Driver]) -> OwnAddresses:
    """The drivers' addresses: those of their hosts, else the scenario's and those that the kernel chooses there; and the
    traffic's here."""
    sources = [group.sources for group in order.scenario.groups if group.sources is not None and order.allowed is None]
    addresses = {address for driver in drivers for address in driver.connects_from}
    return OwnAddresses(sources, resolve(order.bootstrap) if order.scenario.traffic else (), addresses)


def _report(driver: Driver, groups: int, why: str | None) -> DriverReport:
    total = Tally()
    for tally in driver.tallies(groups):
        total.add(tally)
    assert driver.number is not None and driver.join is not None  # the driver has joined
    clock, done = driver.clock, driver.done
    return DriverReport(
        number=driver.number,
        host=driver.join.host,
        counts=dict(zip(COUNTS, total.counts(), strict=True)),
        clock_ahead_ms=clock.ahead_s * 1000,
        clock_within_ms=clock.within_s * 1000,
        late_ms=done.late_s * 1000 if done is not None else 0.0,
        lost_s=driver.lost_s,
        lost_because=(why or driver.lost_because) if driver.lost_s is not None else "",
    )


def _reason(job: Future[object]) -> str | None:
    """The reason why Spark has given up the stage, if it says so soon."""
    try:
        fault = job.exception(REASON_WITHIN_S)
    except TimeoutError:
        return None
    said = sentence(fault) if fault is not None else None
    return said.rstrip(".") if said is not None else None


def _slots(context: SparkContext, asked: int | None, step: Callable[[str], None]) -> int:
    """The number of drivers that can run at a time. Raises PipelineError when there are fewer slots than are asked for, or none."""
    java = context._jsc.sc()
    profile = java.resourceProfileManager().defaultResourceProfile()
    began_s = changed_s = time.monotonic()
    slots = 0
    while True:
        now = int(java.maxNumConcurrentTasks(profile))
        if now != slots:
            slots, changed_s = now, time.monotonic()
        if asked is not None and slots >= asked:
            return asked
        if asked is None and slots and (is_local(context.master) or time.monotonic() - changed_s >= STEADY_S):
            return slots
        if time.monotonic() - began_s >= SLOTS_WITHIN_S:
            raise PipelineError(
                f"Spark has {slots} slots and {asked} drivers were asked for: --processes {slots}, or more workers."
                if slots
                else "Spark has no slot for a driver: are there workers, with a core that no other job has?"
            )
        step(f"waiting for slots: {slots}" + (f" of {asked}" if asked is not None else ""))
        time.sleep(POLL_S)


def _own_host(context: SparkContext) -> str:
    """The host at which workers reach this process, as they reach Spark's driver."""
    return LOCAL_HUB if is_local(context.master) else str(context.getConf().get("spark.driver.host"))


def _as_pipeline_error(fault: BaseException) -> BaseException:
    said = sentence(fault)
    return PipelineError(said) if said is not None else fault


def _await(job: Future[object]) -> None:
    """Slots are free again when its tasks have ended, which they do when their connections end."""
    with suppress(Exception):
        job.result(ENDS_WITHIN_S)
