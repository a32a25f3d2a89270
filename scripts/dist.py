"""`make dist`: the sdist, a wheel made from it, their SBOM, and the wheel tried in environments that have nothing of this checkout.

Where podman or docker runs, also in a container of BASE (localhost/turnstile-base:bookworm, as `make image BASE=debian` makes it).

same_commit_same_files  The files of one commit are the same to the byte, wherever and whenever they are made with the same
    setuptools (setup.py; here for the sdist, which setuptools writes with the times of the files).

One environment has pytest and nothing else, and no JDK is on its PATH. The other has flask-limiter, too, whose library
`limits` has the name of a folder of ours: neither may notice the other.
"""

from __future__ import annotations

import gzip
import io
import json
import os
import runpy
import shutil
import signal
import subprocess
import sys
import tarfile
import tempfile
import time
import urllib.request
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))
from scripts.sbom import write_sbom  # noqa: E402 - importable once the line above has run

BASE = "localhost/turnstile-base:bookworm"
PACKAGES = ("turnstile", "broker", "shards")
EARLIEST_S = 315532800
"""1980, before which no zip can say when."""
BESIDE_OTHERS = """
import limits, limits.strategies, limits.storage, flask_limiter
import turnstile
from importlib.util import find_spec
assert not find_spec("broker") and not find_spec("shards"), "site-packages have only `turnstile` of us"
assert limits.strategies.FixedWindowRateLimiter(limits.storage.MemoryStorage()).hit(limits.parse("1/minute"))
"""
SPARED = """
from importlib.util import find_spec
import turnstile
installed = [name for name in ("pyspark", "pandas", "pyarrow", "numpy") if find_spec(name)]
assert not installed, f"the core depends on {installed}"
"""
API_AND_PLUGIN = """
import shutil

import pytest
import turnstile as package


@pytest.mark.limits(per_ip=2)
def test_plugin(turnstile):
    assert turnstile.explain(ip="127.0.0.1")["brokers"][0]["connections"][1]["value"] == 2
    turnstile.reset()
    assert turnstile.refusals().total == 0


def test_api():
    assert shutil.which("java") is None
    with package.Cluster(shards=1, topics=["orders"]) as cluster:
        cluster.set(per_ip=1)
        assert cluster.connections() == 0 and cluster.throttled() == {}
"""


def main() -> int:
    dist = ROOT / "dist"
    shutil.rmtree(dist, ignore_errors=True)
    sdist, wheel = build(dist)
    made = (sdist, wheel, write_sbom(wheel))
    print("\n".join(str(path.relative_to(ROOT)) for path in made))
    for others, program in ((("pytest",), SPARED), (("flask-limiter", "pytest"), BESIDE_OTHERS)):
        with tempfile.TemporaryDirectory(prefix="turnstile-dist-") as folder:
            venv.create(folder, with_pip=True)
            python = Path(folder) / "bin" / "python"
            environment = {"PATH": str(python.parent), "HOME": folder}
            began_s = time.monotonic()
            pip(python, folder, str(wheel))
            seen_s = try_demo([str(python.parent / "turnstile-kafka")], Path(folder), environment) - began_s
            print(f"first refusal seen {seen_s:.0f} s after an empty environment: pip install, turnstile demo")
            pip(python, folder, *others)
            subprocess.run([python, "-c", program], check=True, cwd=folder, env=environment)
            subprocess.run([python.parent / "turnstile", "--version"], check=True, cwd=folder, env=environment)
            try_cluster([str(python.parent / "turnstile")], Path(folder), environment)
            try_tests(str(python), Path(folder), environment)
            shutil.copy(ROOT / "tests" / "turnstile" / "test_pytest_plugin.py", folder)
            run_tests(str(python), Path(folder), environment, "test_pytest_plugin.py")
        print(f"works in an environment with {', '.join(others)}")
    print(in_a_container(wheel))
    return 0


def in_a_container(wheel: Path) -> str:
    """The wheel in a fresh container: how soon a first refusal is seen there, by which two commands; or why it was not tried."""
    engine = next((each for each in ("podman", "docker") if shutil.which(each)), None)
    if engine is None:
        return "not tried in a container: needs podman or docker"
    base = os.environ.get("BASE", BASE)
    commands = f"python3 -m venv /e && /e/bin/pip install -q /dist/{wheel.name} && /e/bin/turnstile-kafka demo"
    options = ["--rm", "--network", "host", "--env", "PYTHONUNBUFFERED=1", "--volume", f"{wheel.parent}:/dist:ro"]
    for name in ("PIP_INDEX_URL", "PIP_DEFAULT_TIMEOUT"):
        options += ["--env", name] if name in os.environ else []
    if certificate := os.environ.get("PIP_CERT"):
        options += ["--volume", f"{certificate}:/certificates.crt:ro", "--env", "PIP_CERT=/certificates.crt"]
    for runs in ([], ["--runtime", "runc"]):
        run = [engine, *runs, "run", "--ulimit", "nofile=1024:1024", "--ulimit", "nproc=4096:4096", *options, base]
        if subprocess.run([*run, "true"], capture_output=True, check=False).returncode == 0:
            break
    else:
        return f"not tried in a container: {engine} runs no {base}; `make image BASE=debian` makes it"
    began_s = time.monotonic()
    seen_s = await_refusal([*run, "sh", "-c", commands], Path.cwd(), dict(os.environ))
    return f"first refusal seen {seen_s - began_s:.0f} s after a fresh container of {base}: pip install, turnstile demo"


def build(dist: Path) -> tuple[Path, Path]:
    """Makes the sdist of this checkout, and the wheel from what is in the sdist; returns both paths."""
    dist.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="turnstile-dist-") as folder:
        source = Path(folder) / "source"
        for package in PACKAGES:
            shutil.copytree(ROOT / package, source / package, ignore=shutil.ignore_patterns("__pycache__"))
        for name in ("pyproject.toml", "README.md", "setup.py"):
            shutil.copy(ROOT / name, source / name)
        commit = runpy.run_path(str(ROOT / "setup.py"))["commit"]()
        environment = {
            **os.environ,
            "TURNSTILE_COMMIT": commit.name,
            "SOURCE_DATE_EPOCH": str(commit.time_s or EARLIEST_S),
        }
        sdist = dist / _backend("build_sdist", source, dist, environment)
        _date(sdist, commit.time_s)
        with tarfile.open(sdist) as archive:
            archive.extractall(folder, filter="data")
        unpacked = Path(folder) / sdist.name.removesuffix(".tar.gz")
        return sdist, dist / _backend("build_wheel", unpacked, dist, environment)


def _date(sdist: Path, time_s: int) -> None:
    """Writes the archive again with this time, its files in order, and nothing of who made it."""
    packed = io.BytesIO()
    with tarfile.open(sdist) as old, tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as new:
        for member in sorted(old.getmembers(), key=lambda each: each.name):
            plain = tarfile.TarInfo(member.name)
            plain.type, plain.size, plain.mtime = member.type, member.size, time_s
            plain.mode = 0o755 if member.isdir() else 0o644
            new.addfile(plain, old.extractfile(member) if member.isreg() else None)
    sdist.write_bytes(gzip.compress(packed.getvalue(), mtime=time_s))


def _backend(hook: str, source: Path, dist: Path, environment: dict[str, str]) -> str:
    """Calls a hook of PEP 517 in `source`, without build isolation; returns the name of the file it made."""
    call = f"from setuptools import build_meta; print(); print(build_meta.{hook}({str(dist)!r}))"
    done = subprocess.run(
        [sys.executable, "-c", call], cwd=source, env=environment, capture_output=True, text=True, check=False
    )
    if done.returncode:
        sys.exit(done.stdout + done.stderr)
    return done.stdout.split()[-1]


def pip(python: Path, folder: str, *packages: str) -> None:
    """Installs them, with what this machine's pip knows of indexes."""
    command = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *packages]
    subprocess.run(command, check=True, cwd=folder)


def try_demo(command: list[str], folder: Path, environment: dict[str, str]) -> float:
    """Runs the demo to its end; returns when it showed a first refusal and why, by time.monotonic."""
    environment = {**environment, "TMPDIR": str(folder), "PYTHONUNBUFFERED": "1"}
    before = set(folder.iterdir())
    seen_s = await_refusal([*command, "demo"], folder, environment)
    assert set(folder.iterdir()) == before, "the demo leaves nothing"
    return seen_s


def await_refusal(command: list[str], folder: Path, environment: dict[str, str]) -> float:
    """Runs what ends with the demo to its end; returns when that showed a first refusal and why, by time.monotonic."""
    seen_s: float | None = None
    said = []
    with subprocess.Popen(command, cwd=folder, env=environment, stdout=-1, stderr=subprocess.STDOUT, text=True) as it:
        assert it.stdout is not None
        for line in it.stdout:
            said.append(line)
            if seen_s is None and "refused: ip_cap" in line:
                seen_s = time.monotonic()
    assert it.returncode == 0 and seen_s is not None, "".join(said)
    assert "pip install 'turnstile-kafka[pipeline]'" in said[-1], said[-1]
    return seen_s


def try_cluster(command: list[str], folder: Path, environment: dict[str, str]) -> None:
    """Starts a cluster in `folder`, asks it over its admin API, gets its live page, and ends it."""
    up = [*command, "up", "--json", "--port", "0", "--admin-port", "0", "--data-dir", str(folder / "data")]
    cluster = subprocess.Popen(up, cwd=folder, env=environment, stdout=subprocess.PIPE, text=True)
    assert cluster.stdout is not None
    try:
        line = cluster.stdout.readline()
        assert line.startswith("{"), f"turnstile up said {line!r}"
        started = json.loads(line)
        for path in ("/v1/shards", "/"):
            with urllib.request.urlopen(started["admin"] + path, timeout=10) as answer:
                assert answer.status == 200, path
        load = ["load", "--bootstrap", started["listeners"][0]["address"], "--json"]
        load += ["--sources", "127.1.0.0/28", "--connections", "50", "--hold", "0"]
        load_environment = {**environment, "TURNSTILE_ADMIN": started["admin"]}
        load_of = subprocess.run([*command, *load], cwd=folder, env=load_environment, capture_output=True, text=True)
        assert load_of.returncode == 0 and json.loads(load_of.stdout)["reconciled"], load_of.stderr
    finally:
        cluster.send_signal(signal.SIGINT)
        code = cluster.wait(timeout=20)
        cluster.stdout.close()
    assert code == 0, f"turnstile up ended with {code}"


def try_tests(python: str, folder: Path, environment: dict[str, str]) -> None:
    """Runs tests that use the plugin and the API, with what the interpreter has installed."""
    (folder / "test_installed.py").write_text(API_AND_PLUGIN)
    run_tests(python, folder, environment, "test_installed.py")


def run_tests(python: str, folder: Path, environment: dict[str, str], file: str) -> None:
    plain = ("-q", "-c", os.devnull, "--rootdir", str(folder), "-p", "no:cacheprovider")
    done = subprocess.run(
        [python, "-m", "pytest", *plain, file], cwd=folder, env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr


if __name__ == "__main__":
    os.chdir(ROOT)
    sys.exit(main())
