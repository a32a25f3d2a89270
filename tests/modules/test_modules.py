"""The modules of other languages and systems, as far as no container is needed; `make modules` runs all of them, both ways."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from turnstile.cli.config_file import ConfigFile
from turnstile.cli.main import COMMANDS
from turnstile.cli.up import up
from turnstile.image.environment import options_of

MODULES = Path(__file__).parents[2] / "modules"
FILES = ("compose/compose.yaml", "github/limits.yml", "gitlab/gitlab-ci.yml", "kubernetes/turnstile.yaml")
VARIABLE = re.compile(
    r"^\s+(?:- name: )?((?:TURNSTILE|KAFKA)_[A-Z_]+)(?::[ ]|\n\s+value(?:From)?:[ ]?)\"?([^\"\n]*)", re.MULTILINE
)


def test_the_module_of_python_as_a_process() -> None:
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    words = ("-q", "-s", "-c", os.devnull, "--rootdir", ".", "-p", "no:cacheprovider", "-p", "no:randomly")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *words, "test_module.py"],
        cwd=MODULES / "python",
        env={**environment, "PATH": path, "TURNSTILE_RUN": "process"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0 and "3 passed" in done.stdout, done.stdout + done.stderr
    assert "Turnstile runs as process" in done.stdout


@pytest.mark.parametrize("file", FILES)
def test_the_image_knows_each_variable_of_a_file(file: str) -> None:
    # A value that is only referred to, as a secret's, stands on another line.
    variables = {name: value or "a value" for name, value in VARIABLE.findall((MODULES / file).read_text())}
    assert "TURNSTILE_KAFKA_CONNECTIONS_MAX_PER_IP" in variables and "TURNSTILE_ADMIN_TOKEN" in variables
    options = [option.lstrip("-") for each in up.params for option in each.opts]
    assert options_of(variables, [], ConfigFile(), options=options, commands=COMMANDS).said == []


@pytest.mark.parametrize("file", ["go/go.sum", "node/package-lock.json"])
def test_a_lock_has_a_hash_for_each_dependency_and_no_address(file: str) -> None:
    text = (MODULES / file).read_text()
    assert not re.search(r"https?:|(^|[\s\"'])/(home|root|tmp|work)/", text)
    assert len(re.findall(r"h1:|\"integrity\": \"sha512-", text)) > 100
