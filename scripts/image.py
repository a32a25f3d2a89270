"""`make image`: builds the image with what this machine has, then tries it (tests/image) if it can run one.

BASE=NAME is the base instead of the Containerfile's; BASE=debian makes one from Debian's packages, where no registry of images
can be reached (root, debootstrap). VARIANT=spark adds an image with audit, report and plan on top, TAG-spark. TAG=NAME names
the result.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
DEBIAN = "localhost/turnstile-base:bookworm"
CERTIFICATE = "/etc/ssl/certs/of-the-builder.crt"
"""The path of the builder's certificates while packages are installed: behind a proxy, the base's are not enough."""


def main(environment: Mapping[str, str] = os.environ) -> int:
    builder = next((each for each in ("buildah", "docker", "podman") if shutil.which(each)), None)
    if builder is None:
        print("make image needs buildah, docker or podman: apt-get install buildah podman", file=sys.stderr)
        return 1
    _choose_storage()
    base = environment.get("BASE")
    if base == "debian":
        base = DEBIAN
        _make_base()
    tag = environment.get("TAG", "localhost/turnstile:latest")
    files = {tag: ("Containerfile", [] if base is None else ["--build-arg", f"BASE={base}"])}
    if environment.get("VARIANT") == "spark":
        files[f"{tag}-spark"] = ("container/Containerfile.spark", ["--build-arg", f"SLIM={tag}"])
    for name, (file, arguments) in files.items():
        began_s = time.monotonic()
        with tempfile.TemporaryDirectory(prefix="turnstile-image-") as folder:
            command = [*_build(builder), *_labels(), *_packages(Path(folder)), *arguments]
            built = subprocess.run([*command, "--tag", name, "--file", file, "."], cwd=ROOT, check=False)
        if built.returncode:
            return built.returncode
        print(f"{name}: built by {builder} in {time.monotonic() - began_s:.0f} s")
    tests = [sys.executable, "-m", "pytest", "-q", "-p", "no:randomly", "tests/image"]
    return subprocess.run(tests, cwd=ROOT, env={**environment, "TURNSTILE_IMAGE": tag}, check=False).returncode


def _choose_storage() -> None:
    """An overlay can't lie on another one, as in a container."""
    mounts = (line.split() for line in Path("/proc/mounts").read_text().splitlines())
    if any(words[1:3] == ["/", "overlay"] for words in mounts):
        os.environ.setdefault("STORAGE_DRIVER", "vfs")


def _build(builder: str) -> list[str]:
    """Docker's format, as OCI's has no HEALTHCHECK."""
    if builder == "docker":
        return ["docker", "build"]
    isolation = ["--isolation", "chroot"] if os.getuid() == 0 else []
    return [builder, "build", *isolation, "--format", "docker"]


def _labels() -> list[str]:
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    revision, created = (_git(each) for each in ("%H", "%cI"))
    values = {"VERSION": version, "REVISION": revision, "CREATED": created}
    return [word for name, value in values.items() if value for word in ("--build-arg", f"{name}={value}")]


def _git(form: str) -> str:
    """A fact of the last commit; "" where this is no checkout."""
    log = ["git", "log", "-1", f"--format={form}"]
    return subprocess.run(log, cwd=ROOT, capture_output=True, text=True, check=False).stdout.strip()


def _packages(folder: Path) -> list[str]:
    """The lines of pip.conf with which the build finds packages where this machine's pip does."""
    lines, words = ["[global]"], []
    if index := os.environ.get("PIP_INDEX_URL"):
        lines.append(f"index-url = {index}")
    if certificate := os.environ.get("PIP_CERT"):
        lines.append(f"cert = {CERTIFICATE}")
        words = ["--volume", f"{certificate}:{CERTIFICATE}:ro"]
    file = folder / "pip.conf"
    file.write_text("\n".join(lines) + "\n")
    return [*words, "--secret", f"id=pip,src={file}"]


def _make_base() -> None:
    """Debian with Python, from the packages of the mirror that apt uses."""
    engine = shutil.which("podman")
    if engine is None or shutil.which("debootstrap") is None:
        sys.exit("BASE=debian needs podman and debootstrap: apt-get install podman debootstrap")
    if subprocess.run([engine, "image", "exists", DEBIAN], check=False).returncode == 0:
        return
    with tempfile.TemporaryDirectory(prefix="turnstile-base-") as folder:
        wanted = ["--variant=minbase", "--include=python3,python3-venv"]
        subprocess.run(["debootstrap", *wanted, "bookworm", folder], check=True, stdout=subprocess.DEVNULL)
        with subprocess.Popen(["tar", "-C", folder, "-c", "."], stdout=subprocess.PIPE) as archive:
            subprocess.run([engine, "import", "--quiet", "-", DEBIAN], stdin=archive.stdout, check=True)


if __name__ == "__main__":
    sys.exit(main())
