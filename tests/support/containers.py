"""Containers of the image, and what runs them."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from typing import Any

from harness import until

WITHIN_LIMITS = ("--ulimit", "nofile=1024:1024", "--ulimit", "nproc=4096:4096")
"""Where the machine is a container itself, what podman asks for beyond its limits is refused."""
READY = "\nTurnstile is ready.\n"


def program_here() -> str | None:
    """What runs containers on this machine."""
    return next((each for each in ("podman", "docker") if shutil.which(each)), None)


def why_not() -> str | None:
    """Why there is nothing to try; None: there is an image, and a program that may run it."""
    if program_here() is None:
        return "needs podman or docker"
    return None if "TURNSTILE_IMAGE" in os.environ else "no image was built: `make image` builds and tries it"


class Container:
    """A container that runs; `ports` are those of the host by the container's."""

    def __init__(self, engine: Engine, name: str) -> None:
        self._engine = engine
        self.name = name

    @property
    def ports(self) -> dict[int, int]:
        lines = self._engine.run("port", self.name).stdout.splitlines()
        return {int(line.partition("/")[0]): int(line.rpartition(":")[2]) for line in lines}

    @property
    def state(self) -> dict[str, Any]:
        state: dict[str, Any] = json.loads(self._engine.run("inspect", self.name).stdout)[0]["State"]
        return state

    def logs(self) -> str:
        done = self._engine.run("logs", self.name)
        return done.stdout + done.stderr

    def until_ready(self) -> Container:
        """Waits for the line that says so."""
        until(lambda: READY in self.logs(), within_s=60, what="the ready line")
        return self

    def execute(self, *words: str) -> subprocess.CompletedProcess[str]:
        """A command inside."""
        return self._engine.run("exec", self.name, *words, check=False)

    def signal(self, name: str) -> None:
        self._engine.run("kill", "--signal", name, self.name)


class Engine:
    """podman or docker, with the options that it needs on this machine."""

    def __init__(self, words: list[str], image: str) -> None:
        self._words = words
        self.image = image
        self.limits: tuple[str, ...] = ()

    def run(self, *words: str, check: bool = True) -> subprocess.CompletedProcess[str]:
        done = subprocess.run([*self._words, *words], capture_output=True, text=True, timeout=120, check=False)
        assert not check or done.returncode == 0, f"{words}: {done.stderr}"
        return done

    def once(self, *options: str, command: tuple[str, ...] = ()) -> subprocess.CompletedProcess[str]:
        """A container that ends by itself."""
        return self.run("run", "--rm", *self.limits, *options, self.image, *command, check=False)
