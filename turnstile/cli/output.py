"""The output of commands: tables for people, one JSON document for programs, and errors of one sentence.

terminals_get_printable_text  Text that clients chose (user names, client ids, topics, listeners) reaches a terminal only
    through `printable`.
json_also_on_failure  With --json, stdout is one JSON document also when the command fails: {"error": sentence}.
"""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import IO, Any

import click

from broker.runtime.printable import printable

STDOUT, STDERR = 1, 2
UNWRITTEN = 2
"""Exit code of a command whose output can't be written: no 1, which of `audit`, `verdict` and `load` is a judgement."""
_UNWRITTEN = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO}


class CommandFailed(click.ClickException):
    """The command could not be done: exit code 1."""

    exit_code = 1

    def __init__(self, message: str) -> None:
        super().__init__(message)
        context = click.get_current_context(silent=True)
        self._as_json = context is not None and bool(context.params.get("as_json"))

    def show(self, file: IO[Any] | None = None) -> None:
        """The sentence on stderr, or, of a command that was given --json, as JSON on stdout."""
        if self._as_json:
            show_error(self.message)
        else:
            click.echo(printable(self.message, newlines=True), err=True)


class InputMissing(CommandFailed):
    """The command's input is not there: exit code 2, as for wrong usage."""

    exit_code = 2


class VerdictUnknown(CommandFailed):
    """A command whose exit code is a verdict could not be done: exit code 2, which says neither held nor exceeded."""

    exit_code = 2


def show_error(sentence: str) -> None:
    """One line of JSON on stdout: a program that reads line by line has it whole."""
    click.echo(json.dumps({"error": sentence}))


def show_json(value: object) -> None:
    """One JSON document on stdout."""
    click.echo(json.dumps(value, indent=2))


def show_table(rows: Sequence[tuple[str, ...]], *, indent: str = "") -> None:
    """Rows in aligned columns, made printable; the last column may be of any length."""
    if not rows:
        return
    shown = [[printable(cell) for cell in row] for row in rows]
    widths = [max(len(row[n]) for row in shown) for n in range(len(shown[0]) - 1)]
    for row in shown:
        cells = [cell.ljust(width) for cell, width in zip(row, widths, strict=False)]
        click.echo((indent + "  ".join([*cells, row[-1]])).rstrip())


def show_change(answer: Mapping[str, Any], lines: Sequence[str], *, as_json: bool, dry_run: bool = False) -> None:
    """The outcome of a change: the answer for programs; for people `lines`, and where they are in force."""
    if as_json:
        show_json(answer)
        return
    for line in lines:
        click.echo(printable(line))
    where = "could be done; nothing was changed" if dry_run else "in force on every shard"
    click.echo(f"{where}, version {answer['config_version']}", err=True)
    for note in answer.get("notes", ()):
        click.echo(printable(f"note: {note}"), err=True)


class OutputClosed(Exception):
    """The process that reads our output has closed it. No OSError: click ends the process by itself at EPIPE, with 1."""


@contextmanager
def naming_closed_output() -> Iterator[None]:
    """A BrokenPipeError inside is an OutputClosed outside."""
    try:
        yield
    except BrokenPipeError:
        raise OutputClosed from None


def is_of_output(fault: OSError) -> bool:
    """True if standard output can't be written: a fault of a file would name it."""
    return fault.filename is None and fault.errno in _UNWRITTEN


def discard(*descriptors: int) -> None:
    """Drops what a standard stream still has in its buffer, and what is written from now on: it can't be written."""
    for descriptor in descriptors:
        os.dup2(os.open(os.devnull, os.O_WRONLY), descriptor)
