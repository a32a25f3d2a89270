"""Containers of the image that `make image` has built: TURNSTILE_IMAGE names it."""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterator
from typing import Any

import pytest
from containers import WITHIN_LIMITS, Container, Engine, program_here


@pytest.fixture(scope="session")
def engine() -> Engine:
    """Skips where containers can't be run, as in most containers."""
    image, program = os.environ["TURNSTILE_IMAGE"], program_here()
    assert program is not None
    said = ""
    for words in ([program], [program, "--runtime", "runc"]):
        found = Engine(words, image)
        for found.limits in ((), WITHIN_LIMITS):
            done = found.once(command=("--version",))
            if done.returncode == 0:
                return found
            said = done.stderr
    pytest.skip(f"{program} runs nothing here: {said.strip().splitlines()[-1:]}")


@pytest.fixture
def started(engine: Engine) -> Iterator[Any]:
    """started(*options, command=()): a container, removed at the end."""
    names: list[str] = []

    def start(*options: str, command: tuple[str, ...] = ()) -> Container:
        name = f"turnstile-test-{uuid.uuid4().hex[:12]}"
        names.append(name)
        engine.run("run", "--detach", "--name", name, *engine.limits, *options, engine.image, *command)
        return Container(engine, name)

    yield start
    for name in names:
        engine.run("rm", "--force", "--time", "0", name, check=False)
