"""The wheel: everything that the checkout has, nothing else at the top, the same bytes each time, and it runs from its own
files alone."""

import json
import os
import re
import runpy
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import venv
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from scripts.dist import PACKAGES, build, try_cluster, try_tests  # noqa: E402 - importable only from here on
from scripts.sbom import write_sbom  # noqa: E402
from turnstile.pipeline.jvm import class_archive  # noqa: E402

SETUP = runpy.run_path(str(ROOT / "setup.py"))
MAIN = "from importlib.metadata import entry_points as e; e(group='console_scripts', name='turnstile')['turnstile'].load()()"
KERNELS = """
import turnstile.pipeline.plan.what_if as kernel, turnstile.shards.limits.rate, sys
assert kernel.__file__.startswith(sys.argv[1]), kernel.__file__
assert not [name for name in sys.modules if name.split(".")[0] in ("broker", "shards")]
"""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(tmp_path_factory.mktemp("dist"))[1]


@pytest.fixture(scope="module")
def python(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> str:
    """An interpreter that has the wheel, this environment's libraries and its class archive, but has never heard of this
    checkout."""
    folder = tmp_path_factory.mktemp("installed") / "venv"
    venv.create(folder, with_pip=False)
    [site] = folder.glob("lib/python*/site-packages")
    zipfile.ZipFile(wheel).extractall(site)
    (site / "libraries.pth").write_text(sysconfig.get_path("purelib") + "\n")
    archive = folder / class_archive().relative_to(sys.prefix)
    archive.parent.mkdir(parents=True)
    archive.symlink_to(class_archive())
    return str(folder / "bin" / "python")


def run(python: str, folder: Path, *arguments: str, **variables: str) -> str:
    """What it prints, run in `folder` with little in its environment."""
    environment = {"PATH": f"{Path(python).parent}:/usr/bin:/bin", "HOME": str(folder), **variables}
    done = subprocess.run(
        [python, *arguments], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def placed(name: str) -> str:
    """Where a file of the tree lies in a wheel."""
    return name if name.startswith("turnstile/") else f"turnstile/{name}"


def test_has_every_file_of_the_packages_and_one_name_at_the_top(wheel: Path) -> None:
    names = {name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name}
    tracked = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", *PACKAGES],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    ).stdout.split()
    assert names - {"turnstile/commit.txt"} == {placed(name) for name in tracked if (ROOT / name).exists()}
    assert "turnstile/py.typed" in names, "type checkers of other projects read the annotations"


def test_its_description_links_to_no_file_of_the_tree(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as opened:
        [metadata] = (opened.read(name).decode() for name in opened.namelist() if name.endswith(".dist-info/METADATA"))
    into_the_tree = re.compile(r"\]\((?!https?:|#)")
    assert into_the_tree.search((ROOT / "README.md").read_text("utf-8")), "the checkout's README has such links"
    assert not into_the_tree.search(metadata)


def test_is_the_same_to_the_byte_when_it_is_made_again(wheel: Path, tmp_path: Path) -> None:
    before = os.umask(0o077)
    try:
        sdist, again = build(tmp_path / "again")
    finally:
        os.umask(before)
    assert again.read_bytes() == wheel.read_bytes()
    assert sdist.read_bytes() == wheel.with_name(sdist.name).read_bytes()
    assert write_sbom(again).read_bytes() == write_sbom(wheel).read_bytes()


def test_the_sdist_makes_the_same_wheel_without_git(wheel: Path, tmp_path: Path) -> None:
    """As who has the sdist alone does; its record says the commit and when that was."""
    [sdist] = wheel.parent.glob("*.tar.gz")
    with tarfile.open(sdist) as archive:
        archive.extractall(tmp_path, filter="data")
    [source] = tmp_path.iterdir()
    call = f"from setuptools import build_meta; build_meta.build_wheel({str(tmp_path)!r})"
    plain = {name: value for name, value in os.environ.items() if name not in ("SOURCE_DATE_EPOCH", "TURNSTILE_COMMIT")}
    subprocess.run([sys.executable, "-c", call], cwd=source, env=plain, capture_output=True, check=True)
    assert (tmp_path / wheel.name).read_bytes() == wheel.read_bytes()


def test_the_sbom_has_each_library_once_and_what_needs_it(wheel: Path) -> None:
    told = json.loads(write_sbom(wheel).read_text())
    by_ref = {each["bom-ref"]: each for each in told["components"]}
    assert len(by_ref) == len(told["components"])
    own, *others = told["dependencies"]
    assert [each["ref"] for each in others] == list(by_ref)
    assert {each for row in told["dependencies"] for each in row["dependsOn"]} == set(by_ref), (
        "nothing is there for nothing"
    )
    assert {by_ref[each]["name"] for each in own["dependsOn"]} >= {"trio", "click", "pyspark"}
    scopes = {each["name"]: each["scope"] for each in told["components"]}
    assert (scopes["trio"], scopes["idna"], scopes["pyspark"]) == ("required", "required", "optional")
    assert "pytest" not in scopes and "colorama" not in scopes


@pytest.mark.parametrize(
    ("source", "written"),
    [
        ("from broker.wire import (\n    codes,\n)\n", "from turnstile.broker.wire import (\n    codes,\n)\n"),
        ("def f():\n    import shards\n", "def f():\n    from turnstile import shards\n"),
        ("import shards.limits.rate as r\n", "import turnstile.shards.limits.rate as r\n"),
        ("from brokers import x\nfrom .broker import y\nimport turnstile\n", None),
        ("text = 'ä'; from shards.limits import rate\n", "text = 'ä'; from turnstile.shards.limits import rate\n"),
        ("from turnstile.broker import wire\n", None),
    ],
)
def test_an_import_is_written_for_its_place_in_the_wheel(source: str, written: str | None) -> None:
    assert SETUP["moved"](source.encode(), "x.py").decode() == (written or source)


def test_an_import_that_has_no_such_form_ends_the_build() -> None:
    with pytest.raises(ValueError, match=r"x\.py:1: one module"):
        SETUP["moved"](b"import broker.wire\n", "x.py")


def test_wheel_says_its_commit(python: str, tmp_path: Path) -> None:
    head = subprocess.run(["git", "rev-parse", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert run(python, tmp_path, "-m", "turnstile", "--version").startswith("turnstile, version 0.")
    assert f" (commit {head[:12]}" in run(python, tmp_path, "-m", "turnstile", "--version")


def test_runs_from_its_own_files(python: str, tmp_path: Path) -> None:
    """Started as an entry point and with -m; other people's modules of our names are beside it, and stay theirs."""
    for name in ("broker", "shards"):
        (tmp_path / f"{name}.py").write_text("raise ImportError('of others')\n")
    where = "import turnstile.broker, turnstile.shards; print(turnstile.broker.__file__, turnstile.shards.__file__)"
    found = run(python, tmp_path, "-c", where)
    assert all(Path(each).is_relative_to(Path(python).parents[1]) for each in found.split())
    environment = {"PATH": str(Path(python).parent), "HOME": str(tmp_path)}
    for command in ([python, "-c", MAIN], [python, "-m", "turnstile"], [python, "-m", "turnstile.image"]):
        folder = tmp_path / str(len(list(tmp_path.iterdir())))
        folder.mkdir()
        try_cluster(command, folder, environment)
    try_tests(python, tmp_path, environment)


def test_what_it_ships_to_workers_runs_there_by_itself(python: str, tmp_path: Path) -> None:
    make = "import sys; from pathlib import Path; from turnstile.pipeline.session import package; print(package(Path('.')))"
    shipped = tmp_path / run(python, tmp_path, "-c", make).strip()
    kernels = subprocess.run(
        [sys.executable, "-I", "-c", f"import sys; sys.path[:0] = [{str(shipped)!r}]\n{KERNELS}", str(shipped)],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert kernels.returncode == 0, kernels.stderr


@pytest.mark.skipif(shutil.which("java") is None, reason="no JDK")
def test_a_plan_on_spark(python: str, tmp_path: Path) -> None:
    """The workers' daemon and the kernels of the plan are the wheel's own; so is the program of the class archive, which
    `make setup` runs from the checkout."""
    run(python, tmp_path, "-c", "import turnstile.pipeline.class_archive")
    plan = ("plan", "--input", str(ROOT / "examples" / "conn.log"), "--format", "zeek", "--per-ip-cap", "5,10")
    told = json.loads(run(python, tmp_path, "-m", "turnstile", *plan, "--json", "--master", "local[2]"))
    assert told["recommended"]


def test_changes_are_told_by_version() -> None:
    """The release has the part of the changelog that has its version."""
    import tomllib

    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    headings = [line for line in (ROOT / "CHANGELOG.md").read_text().splitlines() if line.startswith("## ")]
    assert headings[0].split()[1] == version
