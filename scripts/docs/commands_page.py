"""The page of the command line, from the commands themselves: what `--help` says, with the variable of each option."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator

import click

from scripts.docs.markdown import code, fence, plain, slug, table
from turnstile.cli.main import turnstile

PLACE = "reference/command-line.md"
OF_A_CLUSTER = ("admin", "cluster_name", "token", "token_file")
"""Options of every command that asks a cluster: they are told once."""
_CLUSTER = "The options of a cluster"
_HEAD = """# Every command

Look up what a command does, its options, their defaults, and the variable of the environment that stands for each. This page
is made from the commands; `turnstile COMMAND --help` says the same, and `-h` is short for `--help`.

The exit code is 0 when a command has done what it was asked, 1 when it could not or the cluster said no, 2 when the command
line was wrong, and 130 after Ctrl-C. A command whose exit code says more has that in its text.
"""
_IN_WORDS = (
    (r"env var: \w+(?:; )?", ""),
    (r"  ?\[\]$", ""),
    (r"(\d+)<=x<=(\d+)", r"\1 to \2"),
    (r"x>=(\d+)", r"from \1"),
    (r"x>0", "above 0"),
)
"""The additions of click to an option, in words; variables are described elsewhere, for all options."""
_KEPT = "\b\n"
"""The mark, in the text of a command, of a paragraph that stays as it is written."""


def commands_page() -> str:
    """The page: each command, and each of its subcommands."""
    context = click.Context(turnstile, info_name="turnstile")
    commands = _subcommands(turnstile, context)
    rows = [_row(command) for command in commands]
    about = "Every command that asks a running cluster takes these.\n"
    parts = [_HEAD, table(["command", ""], rows), f"## {_CLUSTER}\n", about, _options_of_a_cluster(context)]
    for command in commands:
        parts += _command(command, context, 2)
    return "\n".join(parts)


def _row(command: click.Command) -> tuple[str, str]:
    return f"[{code(command.name or '')}](#{slug(f'turnstile {command.name}')})", plain(
        command.get_short_help_str(limit=200)
    )


def _subcommands(group: click.Group, context: click.Context) -> list[click.Command]:
    found = [group.get_command(context, name) for name in group.list_commands(context)]
    return [command for command in found if command is not None and not command.hidden]


def _options_of_a_cluster(context: click.Context) -> str:
    status = turnstile.get_command(context, "status")
    assert status is not None
    told = table(["option", ""], [_option(each, context) for each in _options(status) if each.name in OF_A_CLUSTER])
    return told.replace("TURNSTILE_STATUS_", "TURNSTILE_<COMMAND>_")


def _command(command: click.Command, above: click.Context, level: int) -> Iterator[str]:
    context = click.Context(command, info_name=command.name, parent=above)
    usage = fence(f"{context.command_path} {' '.join(command.collect_usage_pieces(context))}", "text")
    first, *others = paragraphs(command.help or "")
    yield from (f"{'#' * level} {context.command_path}\n", first, usage, *others)
    options = _options(command)
    if {*OF_A_CLUSTER} <= {option.name for option in options}:
        options = [option for option in options if option.name not in OF_A_CLUSTER]
        yield f"It takes [the options of a cluster](#{slug(_CLUSTER)}){', and' if options else '.'}\n"
    if options:
        yield table(["option", ""], (_option(option, context) for option in options))
    if isinstance(command, click.Group):
        for inner in _subcommands(command, context):
            yield from _command(inner, context, level + 1)


def _options(command: click.Command) -> list[click.Option]:
    return [param for param in command.params if isinstance(param, click.Option) and not param.hidden]


def paragraphs(help_text: str) -> Iterator[str]:
    """A command's help as Markdown: paragraphs, and blocks of what is to stay as it was written."""
    for paragraph in re.split(r"\n\s*\n|\n(?=\x08\n)", inspect.cleandoc(help_text).partition("\f")[0]):
        if paragraph.startswith(_KEPT):
            yield fence(paragraph.removeprefix(_KEPT), "text")
        else:
            yield plain(paragraph) + "\n"


def _option(option: click.Option, context: click.Context) -> tuple[str, str]:
    record = option.get_help_record(context)
    assert record is not None
    spelled, told = record
    for pattern, words in _IN_WORDS:
        told = re.sub(pattern, words, told)
    spelled = re.sub(r"\b(INTEGER|FLOAT)( RANGE)?\b", "N", spelled)
    return code(spelled), f"{plain(told)} {code(str(option.envvar))}" if option.envvar else plain(told)
