"""Every page is pasted, block after block, into a shell: a first reader's way through the documents.

A block that can't run here says so in its first line, where its reader sees it too; it is a skipped test by that reason.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from pages import LANGUAGES, PAGES, PASTED, ROOT, Block, blocks

from turnstile.cli import config_file
from turnstile.load import scenario_file

sys.path.insert(0, str(ROOT))

import pasting  # importable only from here on

RUN = [page for page in PAGES if any(block.language in (*PASTED, "python") for block in blocks(page))]
CONDITIONED = [block for page in PAGES for block in blocks(page) if block.has_condition]


@pytest.fixture(scope="session")
def tools(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with Kafka's tools, empty where Maven can't fetch them."""
    folder = tmp_path_factory.mktemp("kafka") / "bin"
    pasting.kafka_tools(folder)
    return folder


@pytest.mark.parametrize("page", RUN, ids=lambda page: str(page.relative_to(ROOT)))
def test_a_page_can_be_pasted(page: Path, tools: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if not pasting.allowed():
        pytest.skip("this user may not make a network namespace, in which ports 9092 and 9644 are free")
    monkeypatch.setenv("PATH", str(tools), prepend=":")
    with pasting.Shell(pasting.clone(tmp_path / "turnstile"), [tools]) as shell:
        for block in blocks(page):
            if block.why_not is None:
                shell.paste(block)
        assert shell.listening() == [], "the page leaves something running: it ends with `turnstile down`"


@pytest.mark.parametrize("block", CONDITIONED, ids=str)
def test_a_block_that_is_not_run_says_why(block: Block, tools: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tools), prepend=":")
    if block.why_not is not None:
        pytest.skip(block.why_not)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_block_has_a_language_and_can_be_read(page: Path, tmp_path: Path) -> None:
    for block in blocks(page):
        assert block.language in LANGUAGES, f"{block}: {block.language or 'no language'}; docs/README.md has them"
        if block.language == "toml":
            read_toml(block, tmp_path)
        elif block.language == "json":
            json.loads(block.text)
        elif block.language == "python":
            compile(block.text, str(block), "exec")


def read_toml(block: Block, folder: Path) -> None:
    """By what reads it: a scenario has groups or traffic, the other files are those of `turnstile up --config`."""
    path = folder / "block.toml"
    path.write_text(block.text)
    (scenario_file if any(line.startswith("[[group]]") for line in block.lines) else config_file).read(path)
