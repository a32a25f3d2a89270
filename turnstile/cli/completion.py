"""`turnstile completion`, and the words that a shell completes.

They are names of settings, quotas, scenarios, faults, errors and APIs, and what a running cluster has; for click's
`shell_complete`. A cluster is asked for a moment only, and silence is no error: nothing is completed then.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from pathlib import PurePath
from typing import Any

import click

from turnstile.entities import DEFAULT, ENTITY_TYPES

_ASK_S = 1.0
Completer = Callable[[click.Context, click.Parameter, str], list[str]]


def _starting(words: Iterable[str], incomplete: str) -> list[str]:
    return [word for word in words if word.startswith(incomplete)]


def _after_comma(words: Iterable[str], incomplete: str) -> list[str]:
    """Completes the last of a list of names in one word."""
    before, comma, last = incomplete.rpartition(",")
    return [f"{before}{comma}{word}" for word in _starting(words, last)]


def settings(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    """Settings of a cluster, those that limit clients first."""
    from shards.settings.config_def import BROKER, LIMITS

    others = [name for name, row in BROKER.items() if not row.told and name not in LIMITS]
    return _starting([*LIMITS, *others], incomplete)


def live_settings(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    """Settings that change while a cluster runs; after `NAME` alone, the values that it can have, if they are few."""
    from shards.settings.config_def import BROKER

    given: tuple[str, ...] = ctx.params.get(param.name or "") or ()
    if len(given) == 1 and "=" not in given[0]:
        row = BROKER.get(given[0])
        return _starting(row.kind.choices or (), incomplete) if row else []
    return [name for name in settings(ctx, param, incomplete) if BROKER[name].dynamic]


def set_settings(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    """Settings that have a value in the running cluster."""
    return _starting(_asked(ctx, "/v1/cluster_config?include_defaults=false"), incomplete)


def presets(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    """Managed clusters that can be emulated."""
    from turnstile.presets import presets as known

    return _starting(known(), incomplete)


def scenarios(
    ctx: click.Context, param: click.Parameter, incomplete: str
) -> list[click.shell_completion.CompletionItem]:
    """Shipped scenarios, then files."""
    from click.shell_completion import CompletionItem

    from turnstile.load.scenario_file import names

    found = [CompletionItem(name) for name in _starting(names(), incomplete)]
    return found or [CompletionItem(incomplete, type="file")]


def errors(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    """Kafka's errors."""
    from broker.wire.codes import NAMES

    return _starting((name for name in sorted(NAMES.values()) if name != "NONE"), incomplete.upper())


def apis(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    """Kafka's APIs, several with commas."""
    from broker.wire import apis as known

    return _after_comma(sorted(known.api_name(key) for key in known.APIS), incomplete)


def faults(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    """Names of the faults that are set in the running cluster."""
    return _starting((row["name"] for row in _asked(ctx, "/v1/faults", "faults")), incomplete)


def users(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    """Users of the running cluster."""
    return _starting((row["name"] for row in _asked(ctx, "/v1/users", "users")), incomplete)


def listeners(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    """Listeners of the running cluster, then `auto`."""
    if ctx.params.get(param.name or ""):
        return _starting(["auto"], incomplete)
    found = dict.fromkeys(row["listener"] for row in _asked(ctx, "/v1/advertise", "advertised"))
    return _starting([*found, "auto"], incomplete)


def cluster_names(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    """Names of the clusters that run on this machine."""
    from broker.process.cluster_names import running

    return _starting((each.name for each in running()), incomplete)


def topics(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    """Topics of the running cluster."""
    return _starting(_asked(ctx, "/v1/cluster", "topics"), incomplete)


def entity_words(*, values: str = "", named: bool = False) -> Completer:
    """Words of a quota entity, then its quotas' keys, each followed by `values`; `named`: only entities that have a quota."""

    def complete(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
        from shards.limits.quota_entities import CLIENT_KEYS, IP_KEYS

        given = [word.partition("=")[0] for word in ctx.params.get(param.name or "") or ()]
        entities = [f"{kind}={name}" for kind in ENTITY_TYPES for name in ("", DEFAULT) if kind not in given]
        entities.remove(f"client-id-prefix={DEFAULT}") if "client-id-prefix" not in given else None
        if named:
            rows = _asked(ctx, "/v1/quotas", "quotas")
            entities = [f"{kind}={name or DEFAULT}" for row in rows for kind, name in row["entity"].items()]
        keys = IP_KEYS if "ip" in given else CLIENT_KEYS if given else ()
        if "ip" in given:
            entities = []
        return _starting(dict.fromkeys([*entities, *(f"{key}{values}" for key in keys)]), incomplete)

    return complete


def _asked(ctx: click.Context, path: str, table: str = "") -> Any:
    """The answer of the cluster that the command line or the environment names; nothing where none does."""
    from turnstile.admin_client import DEFAULT_ADMIN, AdminClient, AdminError

    client = AdminClient(ctx.params.get("admin") or DEFAULT_ADMIN, ctx.params.get("token"), timeout_s=_ASK_S)
    try:
        found = client.get(path)
    except AdminError:
        return []
    return found[table] if table else found


SHELLS = ("bash", "zsh", "fish")


@click.command()
@click.argument("shell", type=click.Choice(list(SHELLS)), required=False)
def completion(shell: str | None) -> None:
    """Print the script by which a shell completes commands, options, settings, scenarios and what a running cluster has.

    Without a name it is that of $SHELL. For this shell alone, or for good:

    \b
    source <(turnstile completion bash)
    turnstile completion bash > ~/.local/share/bash-completion/completions/turnstile
    turnstile completion fish > ~/.config/fish/completions/turnstile.fish

    In zsh `source <(turnstile completion zsh)` comes after compinit.
    """
    from click.shell_completion import get_completion_class

    from turnstile.cli.main import turnstile

    own = PurePath(os.environ.get("SHELL", "")).name
    if shell is None and own not in SHELLS:
        raise click.UsageError(f"which shell is it for? {', '.join(SHELLS)}")
    made = get_completion_class(shell or own)
    assert made is not None  # click has these three
    click.echo(made(turnstile, {}, "turnstile", "_TURNSTILE_COMPLETE").source())
