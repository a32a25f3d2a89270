"""`turnstile up`: arguments in, a running cluster out (broker.process.launch)."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING, TextIO, TypeVar

import click

from shards.settings.releases import AS_VERSION, RELEASES
from turnstile.cli import completion
from turnstile.cli.cluster_command import token_in
from turnstile.cli.output import CommandFailed
from turnstile.cli.param_type import ParamType
from turnstile.cli.up_params import ClusterName, DataDir, Listener, NameAndValue, SizedTopic
from turnstile.interrupted import imports_are_done

if TYPE_CHECKING:
    from shards.config.cluster_plan import ListenerSpec
    from turnstile.cli.config_file import ConfigFile

T = TypeVar("T")


TERMINATED = 128 + signal.SIGTERM
"""Exit code of a cluster that was ended by SIGTERM before it was up; 0 once it is."""


def _read_config(ctx: click.Context, param: click.Parameter, path: Path | None) -> ConfigFile:
    """The file's options become the defaults of the command line's."""
    from turnstile.cli.config_file import ConfigFile, ConfigFileInvalid, read

    if path is None:
        return ConfigFile()
    try:
        found = read(path)
    except ConfigFileInvalid as fault:
        raise click.UsageError(str(fault)) from None
    ctx.default_map = {**(ctx.default_map or {}), **found.cluster}
    for name in found.ignored:
        click.echo(f"{path}: {name} is not a setting: left out", err=True)
    return found


@click.command()
@click.option(
    "--config",
    "file",
    type=click.Path(dir_okay=False, path_type=Path),
    callback=_read_config,
    is_eager=True,
    help="A TOML file, or a Kafka server.properties. The command line overrides it.",
)
@click.option(
    "--name",
    type=ClusterName(),
    envvar=["TURNSTILE_UP_NAME", "TURNSTILE_NAME"],
    help="A name by which other commands find the cluster. With it, --port and --admin-port are free ports unless given.",
)
@click.option("--brokers", type=click.IntRange(1, 64), default=1, show_default=True, help="The number of brokers.")
@click.option("--shards", type=click.IntRange(1, 64), help="Shard processes of each broker.  [default: one per core]")
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=9092,
    show_default=True,
    help="The port of broker 0; broker b gets port + b. 0: any free port.",
)
@click.option(
    "--host",
    default="127.0.0.1",
    show_default=True,
    help="The address of --port, and of listeners without a host in a server.properties.",
)
@click.option(
    "--admin-port", type=click.IntRange(0, 65535), default=9644, show_default=True, help="The port of the admin API."
)
@click.option(
    "--admin-host",
    default="127.0.0.1",
    show_default=True,
    help="The address of the admin API. Any address but loopback needs a token.",
)
@click.option(
    "--admin-token-file",
    type=click.File(),
    envvar=["TURNSTILE_UP_ADMIN_TOKEN_FILE", "TURNSTILE_ADMIN_TOKEN_FILE"],
    help="A file with the token that admin requests must carry; or set TURNSTILE_ADMIN_TOKEN.",
)
@click.option(
    "--data-dir",
    type=DataDir(),
    help="The folder of logs, offsets, settings and the journal.  [default: a temporary folder]",
)
@click.option(
    "--set",
    "settings",
    type=NameAndValue(),
    multiple=True,
    shell_complete=completion.settings,
    help="A setting, such as kafka_connections_max=1000.",
)
@click.option(
    "--observe",
    "observed",
    type=NameAndValue(),
    multiple=True,
    help="A limit on connections to observe instead of enforce (shadow mode, dry run), such as kafka_connections_max_per_ip=50.",
)
@click.option(
    "--like",
    "preset",
    metavar="NAME",
    shell_complete=completion.presets,
    help="Set the limits that a managed cluster publishes and Turnstile emulates: see `turnstile presets`. Other settings "
    "override them.",
)
@click.option(
    "--as-version",
    type=click.Choice(list(RELEASES)),
    help="The Kafka release that the cluster poses as: it offers clients that release's API versions and features, as far as "
    "Turnstile has them.",
)
@click.option(
    "--override-stored",
    is_flag=True,
    help="Let this command line override the live changes that an earlier run has stored in --data-dir: they are unset, and "
    "topics get the partitions that they lack.  [default: keep live changes, and name those that differ]",
)
@click.option(
    "--listener",
    "listeners",
    type=Listener(),
    multiple=True,
    help="A listener, such as EXTERNAL=127.0.0.1:9092. May be given several times. Replaces --port.",
)
@click.option(
    "--journal",
    type=click.Choice(["parquet", "spool"]),
    help="The format of the journal: Parquet files, or the spool as it is written, with which the cluster ends sooner. Audit, "
    "report and plan read both.  [default: parquet; spool in a temporary folder]",
)
@click.option("--topic", "topics", type=SizedTopic(), multiple=True, help="A topic to create, such as orders:6.")
@click.option("--detach", is_flag=True, help="Return once the cluster answers, and leave it running.")
@click.option("--json", "as_json", is_flag=True, help="Print what was started, or why it was not, as JSON.")
@click.option(
    "--end-with-stdin",
    "ends_with_stdin",
    is_flag=True,
    help="End when standard input ends, so with the program that started the cluster.",
)
@click.option(
    "--say-ready",
    metavar="LINE",
    help="Print this line on standard output once the cluster answers, after all other output.",
)
@click.option(
    "--end-with-pid",
    "ends_with_pid",
    type=click.IntRange(1, 2**31 - 1),
    metavar="PID",
    help="End when this process ends, such as $$, the present shell.",
)
def up(file: ConfigFile, name: str | None, brokers: int, shards: int | None, port: int, host: str,
       admin_port: int, admin_host: str, admin_token_file: TextIO | None,
       data_dir: Path | None, settings: tuple[tuple[str, str], ...], observed: tuple[tuple[str, str], ...],
       listeners: tuple[ListenerSpec, ...],
       topics: tuple[tuple[str, int], ...], preset: str | None, as_version: str | None, override_stored: bool, journal: str | None,
       detach: bool, as_json: bool, ends_with_stdin: bool, ends_with_pid: int | None, say_ready: str | None) -> None:  # fmt: skip
    """Launch a cluster: brokers, each with one shard process per core, and a coordinator.

    \b
    turnstile up
    turnstile up --brokers 3 --shards 2 --topic orders:6
    turnstile up --set kafka_connections_max_per_ip=50 --set 'kafka_connections_max_overrides=["127.1.0.9:500"]'
    turnstile up --listener EXTERNAL=127.0.0.1:9092 --listener INTERNAL=127.0.0.1:9192 --detach
    turnstile up --like msk-serverless --brokers 3
    turnstile up --config turnstile.toml
    turnstile up --listener SASL=127.0.0.1:9092,sasl --listener TLS=127.0.0.1:9093,tls,cert=server.pem,key=server.key
    """
    from broker.runtime.collector import paused

    with paused():
        from broker.process import launch, launch_options
        from shards.config.cluster_plan import ListenerSpec
        from shards.errors import StoppedAtStart
        from shards.settings.errors import TurnstileError

    admin_token = _token(admin_token_file)
    listeners = _on_host(host, listeners or _converted(file.listeners, Listener()))
    release = {} if as_version is None else {AS_VERSION: as_version}
    settings = tuple({**_like(preset, brokers), **dict(file.settings), **dict(settings), **release}.items())
    observed = tuple({**dict(file.observed), **dict(observed)}.items())
    topics = tuple({**dict(_converted(file.topics, SizedTopic())), **dict(topics)}.items())
    if detach and ends_with_stdin:
        raise click.UsageError("--end-with-stdin does not go with --detach: a detached cluster has no standard input")
    if name is not None:
        port, admin_port = _any_if_default("port", port), _any_if_default("admin_port", admin_port)
    if admin_host not in ("127.0.0.1", "::1", "localhost") and not admin_token:
        raise click.UsageError(
            "an admin API on another address than loopback needs --admin-token-file or TURNSTILE_ADMIN_TOKEN"
        )
    _check(brokers, settings, observed, file)
    asked = launch_options.LaunchOptions(
        brokers=brokers,
        shards=shards or len(os.sched_getaffinity(0)),
        listeners=list(listeners) or [ListenerSpec("PLAINTEXT", host, port)],
        admin=("127.0.0.1" if admin_host == "localhost" else admin_host, admin_port),
        admin_token=admin_token,
        data_dir=data_dir,
        settings=list(settings),
        topics=list(topics),
        quotas=file.quotas,
        users=file.users,
        observed=list(observed),
        override_stored=override_stored,
        json_lines=as_json,
        ends_with_stdin=ends_with_stdin,
        ends_with_pid=ends_with_pid,
        ready_line=say_ready,
        name=name,
        journal_parts=None if journal is None else journal == "parquet",
        notes=_notes_of(preset, brokers),
    )
    imports_are_done()
    try:
        sys.exit(launch.up(asked, detach=detach))
    except StoppedAtStart as fault:
        click.echo(f"turnstile: {fault}", err=True)
        sys.exit(TERMINATED)
    except TurnstileError as fault:
        raise CommandFailed(str(fault)) from None


def _check(
    brokers: int, settings: tuple[tuple[str, str], ...], observed: tuple[tuple[str, str], ...], file: ConfigFile
) -> None:
    """Checks the options before the cluster starts. Raises UsageError for what the cluster would refuse."""
    from shards.config.config_state import ConfigState
    from shards.config.quota_changes import quotas_delta, users_delta
    from shards.config.setting_changes import observed_delta, static_settings
    from shards.config.stored_records import CredentialRecord
    from shards.limits.quota_callback import check_callback
    from shards.settings.errors import ConfigInvalid

    no_credential = CredentialRecord(salt="", iterations=0, stored_key="", server_key="")
    try:
        static = static_settings(settings)
        check_callback(static)
        observed_delta(ConfigState(brokers, static), [("", name, text) for name, text in observed])
        quotas_delta(ConfigState(brokers, static), file.quotas)
        users_delta(ConfigState(brokers, {}), [(name, "", no_credential) for name in file.users])
    except ConfigInvalid as fault:
        raise click.UsageError(str(fault)) from None


def _on_host(host: str, listeners: tuple[ListenerSpec, ...]) -> tuple[ListenerSpec, ...]:
    """These listeners, those without a host on `host`. Raises UsageError if two have the same name."""
    from turnstile.cli.config_file import ANY_HOST

    if len({listener.name for listener in listeners}) < len(listeners):
        raise click.UsageError("two listeners have the same name")
    return tuple(each._replace(host=host) if each.host == ANY_HOST else each for each in listeners)


def _like(preset: str | None, brokers: int) -> dict[str, str]:
    if preset is None:
        return {}
    from turnstile.cli.presets import Preset
    from turnstile.presets import settings_like

    return settings_like(Preset().convert(preset, None, None), brokers)


def _notes_of(preset: str | None, brokers: int) -> list[str]:
    if preset is None:
        return []
    from turnstile.presets import note_of

    return [note_of(preset, brokers)]


def _converted(texts: list[str], kind: ParamType[T]) -> tuple[T, ...]:
    """Texts of the file as the command line would take them."""
    return tuple(kind.convert(text, None, None) for text in texts)


def _any_if_default(option: str, port: int) -> int:
    """0 instead of the default port, which other programs use, too."""
    source = click.get_current_context().get_parameter_source(option)
    return 0 if source is click.core.ParameterSource.DEFAULT else port


def _token(file: TextIO | None) -> str | None:
    """The admin API's token: never an argument, which every user of the machine could read in the list of processes."""
    if file is None:
        return os.environ.get("TURNSTILE_ADMIN_TOKEN") or None
    return token_in(file)
