"""Compiled modules are used only in place of the sources that they were made from."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import shards.tokens.tokens
from shards.compiled import (
    MANIFEST,
    SWITCH,
    CompiledModules,
    compiled_of,
    digest,
    file_of,
    home_of_compiled,
    use_compiled,
)

ROOT = Path(__file__).parents[2]
MODULE = "shards.tokens.holder_cache"
SOURCES = ("shards/tokens/holder_cache.py", "shards/limits/caps.py")


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """Two sources below `tree`, and below `home` a module that was compiled of them."""
    for path in SOURCES:
        (tmp_path / "tree" / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "tree" / path).write_text("A = 1\n")
    folder = tmp_path / "home" / "made"
    folder.mkdir(parents=True)
    (folder / file_of(MODULE)).touch()
    sources = {path: digest(b"A = 1\n") for path in SOURCES}
    (tmp_path / "home" / MANIFEST).write_text(json.dumps({"folder": "made", "modules": [MODULE], "sources": sources}))
    return tmp_path


def found_in(tree: Path) -> CompiledModules | None:
    return compiled_of(tree / "tree", tree / "home")


def test_a_compiled_module_is_found_for_its_sources(tree: Path) -> None:
    found = found_in(tree)
    assert found is not None
    spec = found.find_spec(MODULE)
    assert spec is not None and spec.origin == str(tree / "home" / "made" / file_of(MODULE))
    assert found.find_spec("shards.mesh.mesh") is None


@pytest.mark.parametrize("path", SOURCES)
def test_one_changed_source_has_all_sources_run(tree: Path, path: str) -> None:
    (tree / "tree" / path).write_text("A = 2\n")
    assert found_in(tree) is None
    (tree / "tree" / path).write_text("A = 1\n")  # as it was: what was compiled of it is right again
    assert found_in(tree) is not None


@pytest.mark.parametrize(
    "path", [f"home/made/{file_of(MODULE)}", f"home/{MANIFEST}", *(f"tree/{each}" for each in SOURCES)]
)
def test_a_missing_file_has_the_sources_run(tree: Path, path: str) -> None:
    (tree / path).unlink()
    assert found_in(tree) is None


@pytest.mark.parametrize("text", ["", "{", "{}", '{"folder": "made", "modules": []}'])
def test_a_damaged_manifest_has_the_sources_run(tree: Path, text: str) -> None:
    (tree / "home" / MANIFEST).write_text(text)
    assert found_in(tree) is None


def test_a_wheel_and_the_switch_have_the_sources_run(monkeypatch: pytest.MonkeyPatch) -> None:
    before = list(sys.meta_path)
    assert not use_compiled("turnstile.shards")
    monkeypatch.setenv(SWITCH, "0")
    assert not use_compiled("shards")
    assert sys.meta_path == before


def test_tests_run_the_sources_in_their_own_process() -> None:
    if os.environ.get(SWITCH) == "1":
        pytest.skip(f"{SWITCH}=1 asks for the others")
    assert Path(shards.tokens.tokens.__file__) == ROOT / "shards" / "tokens" / "tokens.py"


def run(*command: str, switch: str = "1") -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, SWITCH: switch, "PYTHONHASHSEED": "0"}
    return subprocess.run(
        [sys.executable, *command], cwd=ROOT, env=environment, capture_output=True, text=True, timeout=300
    )


def is_compiled_here() -> bool:
    return compiled_of(ROOT, home_of_compiled()) is not None


def test_every_module_of_the_list_is_compiled_or_none() -> None:
    ran = run("-c", "import shards.ownership as o, shards.tokens.tokens as t; print(o.__file__, t.__file__)")
    suffix = file_of("") if is_compiled_here() else ".py"
    assert ran.returncode == 0, ran.stderr
    assert all(file.endswith(suffix) for file in ran.stdout.split()), ran.stdout


compiled_only = pytest.mark.skipif(
    not is_compiled_here(), reason="nothing is compiled here (make compiled): no C compiler, or sources have changed"
)


@compiled_only
def test_the_tests_of_tokens_pass_on_the_compiled_modules() -> None:
    ran = run("-m", "pytest", "-q", "-n", "0", "-p", "no:randomly", "-p", "no:cacheprovider", "tests/shards/tokens")
    assert ran.returncode == 0, ran.stdout[-4000:]


@compiled_only
def test_schedules_take_the_same_steps_on_sources_and_compiled_modules() -> None:
    sources, compiled = (run("tests/support/simulation/trace.py", "0", "9", switch=switch) for switch in "01")
    assert sources.stdout.startswith("sources "), sources.stderr
    assert compiled.stdout.startswith("compiled "), compiled.stderr
    assert sources.stdout.split()[1:] == compiled.stdout.split()[1:]
