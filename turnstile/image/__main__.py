"""The image's entry point: `up`, or nothing, launches a cluster as the environment says; any other words are of `turnstile`.

    docker run -p 9092:9092 turnstile
    docker run turnstile up --brokers 3
    docker run turnstile load --list

As process 1 it has the duties of an init, which the supervisor takes over (supervisor.py, zombies_are_reaped).
"""

from __future__ import annotations

import os
import signal
import sys
from contextlib import suppress
from pathlib import Path
from typing import NoReturn

import click

DATA = Path("/var/lib/turnstile")
FILES = (
    Path("/etc/turnstile/turnstile.toml"),
    Path("/etc/turnstile/server.properties"),
    Path("/mnt/shared/config/server.properties"),
)
"""The files in which a configuration may be; the last is the one of Kafka's image."""
TEMPORARY = ("/tmp", "/var/tmp", "/dev/shm")
READY = "Turnstile is ready."
_TERMINATED = 128 + signal.SIGTERM


def main() -> None:
    """Ends the process as the command does."""
    if os.getpid() == 1:  # the kernel drops signals to process 1 that have no handler
        signal.signal(signal.SIGTERM, lambda number, frame: os._exit(_TERMINATED))
    words = sys.argv[1:]
    if not words or words[0] == "up" or (words[0].startswith("-") and words[0] not in ("--version", "--help", "-h")):
        sys.argv[1:] = _command(words[1:] if words[:1] == ["up"] else words)
    else:
        sys.argv[1:] = words
    from turnstile.entry import main as run

    run()


def _command(arguments: list[str]) -> list[str]:
    """The words of `turnstile up`. Ends the process with 2 when a file, a variable or the command line is wrong."""
    from turnstile.cli.config_file import ConfigFile, ConfigFileInvalid, read
    from turnstile.cli.main import COMMANDS
    from turnstile.image.environment import given_value, options_of

    if {"--help", "-h"} & set(arguments):
        return ["up", *arguments]
    if "--detach" in arguments or os.environ.get("TURNSTILE_UP_DETACH"):
        _refuse("a container ends with its first process: detach it with `docker run --detach`, and leave --detach out")
    options = [option.lstrip("-") for each in _up().params for option in each.opts]
    named = given_value(os.environ, arguments, "config")
    mounted = None if named else next((path for path in FILES if path.exists()), None)
    if mounted is not None and mounted.is_dir():
        _refuse(f"{mounted} is a folder: Docker makes one where the file to be mounted is not there on the host")
    configured = Path(named) if named else mounted
    try:
        file = ConfigFile() if configured is None else read(configured)
        found = options_of(os.environ, arguments, file, options=options, commands=COMMANDS)
    except ConfigFileInvalid as fault:
        _refuse(str(fault))
    for sentence in found.said:
        print(f"turnstile: {sentence}", file=sys.stderr)
    sys.stderr.flush()
    own = found.options
    if mounted is not None:
        own = ["--config", str(mounted), *own]
    if not given_value(os.environ, arguments, "data-dir") and "data_dir" not in file.cluster:
        if DATA.is_mount():
            own += ["--data-dir", str(DATA)]
        else:
            _choose_temporary()
    words = ["--say-ready", READY, *own, *arguments]
    _note_admin(words)
    return ["up", *words]


def _refuse(sentence: str) -> NoReturn:
    print(f"turnstile: {sentence}", file=sys.stderr)
    sys.exit(2)


def _up() -> click.Command:
    """`turnstile up` with the variable of each option, TURNSTILE_UP_..., as the command line has it."""
    from turnstile.cli.main import turnstile

    command = turnstile.get_command(click.Context(turnstile), "up")
    assert command is not None
    return command


def _note_admin(words: list[str]) -> None:
    """Notes the address of the admin API for the health check, a process that knows no command line and no mounted file."""
    from turnstile.health import NOTED

    with suppress(click.ClickException):  # `up` will say what is wrong
        context = _up().make_context("up", list(words))
        host, port = context.params["admin_host"], context.params["admin_port"]
        with suppress(OSError):
            Path(NOTED).write_text(f"{host} {port} {os.getpid()}")


def _choose_temporary() -> None:
    """Sets TMPDIR to a folder that can be written. With a read-only root that is /dev/shm, which every container has."""
    if "TMPDIR" not in os.environ:
        usable = (each for each in TEMPORARY if os.access(each, os.W_OK))
        if (chosen := next(usable, None)) is not None:
            os.environ["TMPDIR"] = chosen


if __name__ == "__main__":
    main()
