"""`make modules`: the three tests of each module of modules/, as a process, and as a container where one can be run; the files of
compose, GitHub, GitLab and Kubernetes against their schemas. Each line says which of the two it was.

The container is of TURNSTILE_IMAGE, or what `make image` builds. ONLY=go,java: these alone.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import sys
import tempfile
import time
import venv
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
MODULES = ROOT / "modules"
TOOLS = MODULES / ".venv"
IMAGE = "localhost/turnstile:latest"
WITHIN_LIMITS = '[containers]\ndefault_ulimits = ["nofile=1024:1024", "nproc=4096:4096"]\n'
"""For a machine that is a container itself: podman is refused what it asks for beyond its limits."""
_WITHIN_S = 900


@dataclass(frozen=True)
class Module:
    """A folder of modules/: what it needs on the PATH, what fetches its dependencies, and what runs its tests."""

    name: str
    needs: tuple[str, ...]
    fetch: tuple[str, ...]
    test: tuple[str, ...]


PYTHON = str(TOOLS / "bin" / "python")
PLAIN = ("-q", "-s", "-c", os.devnull, "--rootdir", ".", "-p", "no:cacheprovider")
IN_LANGUAGES = (
    Module("python", (), (), (PYTHON, "-m", "pytest", *PLAIN, "test_module.py")),
    Module("go", ("go",), ("go", "mod", "download"), ("go", "test", "-count=1", "-v", ".")),
    Module("java", ("mvn", "javac"), (), ("mvn", "-B", "test")),
    Module("node", ("node", "npm"), ("npm", "ci", "--no-audit", "--no-fund"), ("npm", "test")),
)
SCHEMAS = (
    ("compose/compose.yaml", ("check-jsonschema", "--builtin-schema", "vendor.compose-spec")),
    ("github/limits.yml", ("check-jsonschema", "--builtin-schema", "vendor.github-workflows")),
    ("gitlab/gitlab-ci.yml", ("check-jsonschema", "--builtin-schema", "vendor.gitlab-ci")),
    ("kubernetes/turnstile.yaml", ("kubernetes-validate", "--strict")),
)


def main() -> int:
    only = os.environ.get("ONLY", "").replace(",", " ").split()
    failed = False
    if not TOOLS.exists():
        venv.create(TOOLS, with_pip=True)
    install = [PYTHON, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "-r", "requirements.txt"]
    subprocess.run(install, cwd=MODULES, check=True)
    with docker() as (environment, why_not):
        for module in IN_LANGUAGES:
            if not only or module.name in only:
                for way in ("process", "container"):
                    reason = why_not if way == "container" else None
                    failed |= run(module, way, environment if way == "container" else {}, reason)
    for file, command in SCHEMAS:
        if not only or file.partition("/")[0] in only:
            failed |= check(file, command)
    tell("dotnet", "a file", "UNTRIED: never compiled" + ("" if shutil.which("dotnet") else ", as no dotnet is here"))
    return int(failed)


def run(module: Module, way: str, environment: dict[str, str], why_not: str | None) -> bool:
    """True if the tests of a module failed."""
    missing = [tool for tool in module.needs if shutil.which(tool, path=_path()) is None]
    if missing or why_not:
        tell(module.name, way, f"left out: {why_not or f'{missing[0]} is not installed'}")
        return False
    began_s = time.monotonic()
    for command in filter(None, (module.fetch, module.test)):
        done = subprocess.run(
            command,
            cwd=MODULES / module.name,
            env={**os.environ, "PATH": _path(), "TURNSTILE_RUN": way, **environment},
            capture_output=True,
            text=True,
            timeout=_WITHIN_S,
            check=False,
        )
        if done.returncode:
            print(done.stdout + done.stderr)
            tell(module.name, way, f"FAILED: {' '.join(command[:3])}")
            return True
    said = f"Turnstile runs as {way}"
    if said not in done.stdout:
        tell(module.name, way, f"FAILED: it did not say {said!r}")
        return True
    tell(module.name, way, f"three tests passed, {time.monotonic() - began_s:.0f} s")
    return False


def check(file: str, command: tuple[str, ...]) -> bool:
    """True if a file does not match its schema."""
    words = [str(TOOLS / "bin" / command[0]), *command[1:], str(MODULES / file)]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode:
        print(done.stdout + done.stderr)
    tell(file, "a file", "FAILED" if done.returncode else f"as its schema has it ({command[0]})")
    return bool(done.returncode)


def tell(what: str, way: str, how: str) -> None:
    print(f"{what:<26} {way:<10} {how}", flush=True)


def _path() -> str:
    """The PATH with the `turnstile` of this checkout."""
    return os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", ""), "/usr/local/go/bin"])


@contextlib.contextmanager
def docker() -> Iterator[tuple[dict[str, str], str | None]]:
    """Variables by which Testcontainers finds an API of Docker, and why there is none. Without Docker it is podman's."""
    image = os.environ.get("TURNSTILE_IMAGE", IMAGE)
    engine = next((each for each in ("podman", "docker") if shutil.which(each)), None)
    if engine is None:
        yield {}, "neither podman nor docker is installed"
        return
    with tempfile.TemporaryDirectory(prefix="turnstile-modules-") as folder:
        environment = _usable(engine, image, Path(folder))
        if environment is None:
            yield {}, f"{engine} runs no {image}: make image"
        elif engine == "docker" or "DOCKER_HOST" in os.environ:
            yield {"TURNSTILE_IMAGE": image}, None
        else:
            with _podman_service(Path(folder) / "podman.sock", environment) as found:
                yield {"TURNSTILE_IMAGE": image, **found}, None


def _usable(engine: str, image: str, folder: Path) -> dict[str, str] | None:
    """The variables with which the engine runs the image; None: it does not."""
    limits, with_runc = folder / "limits.conf", folder / "runc.conf"
    limits.write_text(WITHIN_LIMITS)
    with_runc.write_text(f'{WITHIN_LIMITS}\n[engine]\nruntime = "runc"\n')
    for more in ({}, {"CONTAINERS_CONF": str(limits)}, {"CONTAINERS_CONF": str(with_runc)}):
        command = [engine, "run", "--rm", image, "--version"]
        done = subprocess.run(command, env={**os.environ, **more}, capture_output=True, check=False)
        if done.returncode == 0:
            return more
    return None


@contextlib.contextmanager
def _podman_service(path: Path, environment: dict[str, str]) -> Iterator[dict[str, str]]:
    command = ["podman", "system", "service", "--time", "0", f"unix://{path}"]
    with subprocess.Popen(command, env={**os.environ, **environment}, stderr=subprocess.DEVNULL) as service:
        try:
            while not path.exists() and service.poll() is None:
                time.sleep(0.05)
            yield {
                "DOCKER_HOST": f"unix://{path}",
                "TESTCONTAINERS_HOST_OVERRIDE": "127.0.0.1",
                "TESTCONTAINERS_CONNECTION_MODE": "docker_host",
                "TESTCONTAINERS_RYUK_DISABLED": "true",  # its image is not here; the modules remove what they start
            }
        finally:
            service.terminate()


if __name__ == "__main__":
    sys.exit(main())
