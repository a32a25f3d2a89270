"""docs/limits.md has every limit, is as its definitions say, and names tests that are there."""

import ast
import sys
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

from scripts.docs.limits_table import PAGE, definition_of, page, rows  # noqa: E402 - importable only from here on
from shards.limits.quota_entities import CLIENT_KEYS, IP_KEYS  # noqa: E402
from shards.settings.config_key import TURNSTILE  # noqa: E402
from shards.settings.limiting_settings import LIMITING, THROUGHPUT  # noqa: E402

ROWS = rows()
NO_LIMITS = {
    "turnstile.core.rate.exact",
    "turnstile.ip.rate.recheck",
    "turnstile.ipv6.prefix.length",
    "turnstile.request.cost",
}
"""Of the settings of LIMITING: how others work."""


@cache
def functions(path: str) -> set[str]:
    tree = ast.parse((ROOT / "tests" / path).read_text())
    return {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)}


def test_the_page_is_what_is_written_of_the_rows():
    assert PAGE.read_text() == page(), "python scripts/docs/limits_table.py"


def test_every_limit_and_quota_has_one_row():
    names = [row.name for row in ROWS]
    assert len(set(names)) == len(names)
    limits = {row.name for row in (*LIMITING, *THROUGHPUT)} - NO_LIMITS
    assert limits | {*CLIENT_KEYS, *IP_KEYS} <= set(names)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_a_row_is_proven_by_a_test_or_says_why_it_is_not_emulated(row):
    assert bool(row.proof) != bool(row.why_not)
    setting = definition_of(row.name)
    if setting is not None:
        assert setting.emulated == bool(row.proof), "the definition says so"
        assert row.default == "", "the definition has the default"
        assert (row.vocabulary == "Turnstile") == (setting.vocabulary == TURNSTILE)
    else:
        assert row.default
    if row.proof:
        path, _, name = row.proof.partition("::")
        assert name in functions(path)
