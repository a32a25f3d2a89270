"""The wheel: everything that the checkout has, nothing else at the top, and it runs from its own files alone."""

import subprocess
import sys
import sysconfig
import venv
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from scripts.dist import PACKAGES, build, try_cluster, try_tests  # noqa: E402 - importable only from here on


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(tmp_path_factory.mktemp("dist"))[1]


def test_has_every_file_of_the_packages_and_no_other_name_at_the_top(wheel: Path) -> None:
    names = {name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name}
    tracked = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", *PACKAGES],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    ).stdout.split()
    assert names == {name for name in tracked if (ROOT / name).exists()}
    assert "turnstile/py.typed" in names, "type checkers of other projects read the annotations"


def test_runs_from_its_own_files(wheel: Path, tmp_path: Path) -> None:
    """With the libraries of this environment, but in an interpreter that has never heard of this checkout."""
    venv.create(tmp_path / "venv", with_pip=False)
    [site] = (tmp_path / "venv").glob("lib/python*/site-packages")
    zipfile.ZipFile(wheel).extractall(site)
    (site / "libraries.pth").write_text(sysconfig.get_path("purelib") + "\n")
    python = str(tmp_path / "venv" / "bin" / "python")
    environment = {"PATH": str(tmp_path / "venv" / "bin"), "HOME": str(tmp_path)}
    where = "import broker, shards, turnstile; print(broker.__file__, shards.__file__, turnstile.__file__)"
    found = subprocess.run([python, "-c", where], cwd=tmp_path, capture_output=True, text=True, check=True).stdout
    assert all(Path(each).is_relative_to(site) for each in found.split())
    main = "from importlib.metadata import entry_points as e; e(group='console_scripts', name='turnstile')['turnstile'].load()()"
    version = subprocess.run(
        [python, "-c", main, "--version"], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert version.stdout.startswith("turnstile, version ")
    try_cluster([python, "-c", main], tmp_path, environment)
    try_tests(python, tmp_path, environment)
