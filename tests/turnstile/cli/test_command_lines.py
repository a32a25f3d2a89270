"""Every command line that a document or a help text shows is one that a shell leaves whole and the command takes."""

import itertools
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from turnstile.cli.main import turnstile

ROOT = Path(__file__).resolve().parents[3]
DOCUMENTS = [
    *ROOT.glob("*.md"),
    *(ROOT / "docs").rglob("*.md"),
    *(ROOT / "examples").rglob("*.md"),
    *(ROOT / "modules").glob("*.md"),
]
SHOWN = re.compile(r"^\s*(?:\$ )?(turnstile [a-z-].*)$", re.MULTILINE)
PROSE = re.compile(r"\s{3,}[^-].*")
"""What stands behind a command and tells of it."""


def shown(text: str) -> list[str]:
    lines = SHOWN.findall(text.replace("\\\n", " "))
    return [line if "#" in line else PROSE.sub("", line) for line in lines]


def in_documents() -> Iterator[str]:
    for path in DOCUMENTS:
        for block in re.findall(r"^```\w*\n(.*?)^```$", path.read_text(), re.MULTILINE | re.DOTALL):
            yield from shown(block)


def in_helps(command: click.Command, context: click.Context) -> Iterator[str]:
    yield from shown(command.help or "")
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            each = command.get_command(context, name)
            assert each is not None
            yield from in_helps(each, context)


LINES = sorted({*in_documents(), *in_helps(turnstile, click.Context(turnstile))})


@pytest.mark.parametrize("line", LINES)
def test_it_can_be_typed_as_it_stands(line: str) -> None:
    bare = re.sub(r"'[^']*'|#.*", "", line)
    assert not re.search(r"\S[<>|&;]|[<>|&;]\S", bare), "a shell takes a part of a word for its own"
    _, *words = itertools.takewhile(lambda word: word not in ("<", ">", "&"), shlex.split(line, comments=True))
    command: click.Command = turnstile
    context = click.Context(turnstile)
    while isinstance(command, click.Group) and words:
        _, found, words = command.resolve_command(context, words)
        assert found is not None
        command, context = found, click.Context(found, **found.context_settings)
    command.make_parser(context).parse_args(args=words)


def test_there_are_such_lines() -> None:
    assert "turnstile quota set 'ip=<default>' connection_creation_rate=100" in LINES
    assert len(LINES) > 80
