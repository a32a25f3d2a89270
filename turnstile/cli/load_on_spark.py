"""`turnstile load --master`: its options, and the session that its drivers run in."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple

import click

from turnstile.admin_client import AdminClient
from turnstile.cli.param_type import ParamType
from turnstile.cli.spark_job import SparkOptions, SparkSetting, failing_in_one_sentence
from turnstile.pipeline import jvm

if TYPE_CHECKING:
    from turnstile.load.driver import LoadResult
    from turnstile.load.spec import LoadScenario

MOST_PROCESSES = 64
"""The most processes of this machine."""
_MASTER = """Spark master, such as spark://host:7077, whose workers drive the load, one driver in each slot.
[default: none; the drivers are processes of this machine]"""
_CONF = "With --master: a setting of Spark's. May be given again."
_WORKER_SOURCES = """With --master: addresses of the workers' hosts, which stand for the scenario's; each host uses those that it
has.  [default: the scenario's own, which each host then needs: all have those of 127.0.0.0/8]"""
_HUB = "With --master: where workers reach this command.  [default: the host of Spark's driver, any port]"


class HubAddress(NamedTuple):
    """The address at which workers reach this command."""

    host: str
    port: int


class _Address(ParamType[HubAddress]):
    name = "HOST:PORT"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> HubAddress:
        if isinstance(value, HubAddress):
            return value
        host, _, port = str(value).rpartition(":")
        if not host or not port.isdigit() or int(port) > 65535:
            self.fail(f"{value!r} is not HOST:PORT", param, ctx)
        return HubAddress(host.strip("[]"), int(port))


class _Addresses(ParamType[str]):
    name = "CIDR,..."

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> str:
        from turnstile.load.sources import Sources

        try:
            return Sources(str(value)).text
        except ValueError as wrong:
            self.fail(str(wrong).removeprefix("sources: ").removesuffix("."), param, ctx)


class OnSpark(NamedTuple):
    """The place where drivers run, the addresses of their hosts that they use, and the one at which they reach this command."""

    spark: SparkOptions
    worker_sources: str | None
    hub: HubAddress | None


def spark_options(command: Callable[..., None]) -> Callable[..., None]:
    """Gives `load` its options of Spark's, as its argument `on`: None where the drivers are this machine's processes."""

    @click.option("--master", help=_MASTER)
    @click.option("--conf", type=SparkSetting(), multiple=True, help=_CONF)
    @click.option("--worker-sources", type=_Addresses(), help=_WORKER_SOURCES)
    @click.option("--hub", type=_Address(), help=_HUB)
    @functools.wraps(command)
    def with_options(
        *arguments: object,
        master: str | None,
        conf: Sequence[tuple[str, str]],
        worker_sources: str | None,
        hub: HubAddress | None,
        processes: int | None,
        **options: object,
    ) -> None:
        spark = SparkOptions(master, dict(conf))
        if not spark.is_asked_for and (worker_sources or hub):
            raise click.UsageError(f"{'--worker-sources' if worker_sources else '--hub'} needs --master.")
        if not spark.is_asked_for and (processes or 0) > MOST_PROCESSES:
            raise click.UsageError(f"--processes can't be more than {MOST_PROCESSES} without --master.")
        on = OnSpark(spark, worker_sources, hub) if spark.is_asked_for else None
        command(*arguments, on=on, processes=processes, **options)

    return with_options


@contextmanager
def runs_on_spark(
    on: OnSpark, scenario: LoadScenario, bootstrap: str, cluster: AdminClient, processes: int | None
) -> Iterator[Callable[[], LoadResult]]:
    """A session, and what runs the scenario once on its workers; progress on stderr."""
    with failing_in_one_sentence():
        from turnstile.fleet import job
        from turnstile.load.watch import Watch
        from turnstile.pipeline.progress import SPARK_STARTS, shown
        from turnstile.pipeline.session import LITTLE, starting

        conf = {**(LITTLE if on.spark.is_local and not jvm.is_submitted() else {}), **job.SETTINGS, **on.spark.conf}
        with (
            shown("load") as line,
            starting(on.spark.master, app="turnstile load", conf=conf, shipped=job.SHIPPED) as begun,
        ):

            def step(name: str) -> None:
                line.step = name

            def watch(now: Watch) -> None:
                line.step = str(now)

            def run_once() -> LoadResult:
                step(SPARK_STARTS)
                places = job.Places(processes, on.worker_sources, on.hub)
                return job.run(begun.spark(), scenario, bootstrap, cluster, places, step=step, watch=watch)

            step(SPARK_STARTS)
            yield run_once
