"""What `make lint` can't say of the tree: which libraries the innermost packages need, and that the documents name it."""

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGES = ("turnstile", "broker", "shards")
FOLDERS = sorted(
    str(path.parent.relative_to(ROOT)) for package in PACKAGES for path in (ROOT / package).rglob("__init__.py")
)
DOCUMENTS = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])


def imported(folder: str) -> Iterator[str]:
    """Every module that a file, or the files of a folder, import, by its whole name."""
    there = ROOT / folder
    for path in [there] if there.is_file() else there.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Import):
                yield from (alias.name for alias in node.names)
            elif isinstance(node, ast.ImportFrom):
                assert node.module is not None and node.level == 0, f"{path}: imports are absolute"
                yield node.module


@pytest.mark.parametrize(
    ("folder", "beside"),
    [
        ("shards/settings", ["shards.settings", "re2"]),
        ("shards/limits", ["shards.settings", "shards.limits"]),
        ("shards/ownership.py", []),
        ("shards/tokens", ["shards.settings", "shards.limits", "shards.ownership", "shards.tokens"]),
    ],
)
def test_imports_the_standard_library_and_little_beside(folder: str, beside: list[str]) -> None:
    others = {name for name in imported(folder) if name.split(".")[0] not in sys.stdlib_module_names}
    assert {name for name in others if not name.startswith(tuple(beside))} == set()


@pytest.mark.parametrize("folder", FOLDERS)
def test_the_architecture_has_a_line_for_each_folder(folder: str) -> None:
    architecture = (ROOT / "docs" / "internals" / "architecture.md").read_text()
    assert re.search(rf"^\| `{folder}/` \| .+ \|$", architecture, re.MULTILINE), f"no row for {folder}/"


MADE = {"build", "dist", "out", "site"}
"""Folders that make targets make, and that are in no checkout; others of the same names may be spoken of."""


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_a_path_that_a_document_names_is_there(document: Path) -> None:
    named = re.findall(r"`((?:\w+/)+\w*(?:\.\w+)?)`", document.read_text())
    tops = {path.name for path in ROOT.iterdir() if path.is_dir()} - MADE
    assert [name for name in named if name.split("/")[0] in tops and not (ROOT / name).exists()] == []


@pytest.mark.parametrize("package", PACKAGES)
def test_the_folders_of_tests_mirror_the_tree(package: str) -> None:
    tested = {path.parent.relative_to(ROOT / "tests") for path in (ROOT / "tests" / package).rglob("test_*.py")}
    assert [str(folder) for folder in tested if not (ROOT / folder).is_dir()] == []


SOURCES = sorted(path for package in PACKAGES for path in (ROOT / package).rglob("*.py"))
INVARIANT = re.compile(r"^([a-z]+(?:_[a-z0-9]+)+) {2,}\S", re.MULTILINE)
LABELLED = ("turnstile/pipeline",)
"""Files and folders whose invariants may still have numbers."""


def test_an_invariant_has_a_name_of_its_own() -> None:
    named = [
        name for path in SOURCES for name in INVARIANT.findall(ast.get_docstring(ast.parse(path.read_text())) or "")
    ]
    assert len(named) > 300
    assert sorted({name for name in named if named.count(name) > 1}) == []


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(ROOT)))
def test_no_invariant_is_a_number(path: Path) -> None:
    if not str(path.relative_to(ROOT)).startswith(LABELLED):
        assert re.findall(r"^ *(?:\"\"\")?([A-Z]\d{1,2})  \S", path.read_text(), re.MULTILINE) == []


WALKS = ROOT / "docs" / "internals" / "walks.md"
STEPS = re.findall(r"`((?:\w+/)+\w+\.py)`\s+`(\w+)(?:\.(\w+))?`", WALKS.read_text())


def test_the_walks_have_steps() -> None:
    assert len(STEPS) > 30


@pytest.mark.parametrize(("file", "name", "method"), STEPS, ids=lambda part: part)
def test_a_step_of_a_walk_is_in_the_code(file: str, name: str, method: str) -> None:
    named = [node for node in ast.parse((ROOT / file).read_text()).body if getattr(node, "name", None) == name]
    assert len(named) == 1, f"{file} has no {name}"
    if method:
        assert method in {getattr(node, "name", None) for node in getattr(named[0], "body", [])}


QUESTION = re.compile(
    r'^\s*"""(?:(?:How|What|When|Whether|Which|Who|Why)\b.*|(?:Are|Can|Did|Do|Does|Has|Have|Is|Was|Were)\b.*\?)',
    re.MULTILINE,
)


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_docstring_begins_with_its_subject(path: Path) -> None:
    """A noun with its unit, a verb, or "True if": a question as the first word has to be read twice."""
    assert QUESTION.findall(path.read_text()) == []
