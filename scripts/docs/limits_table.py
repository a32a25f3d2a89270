"""Writes docs/limits.md: every limit of Kafka 4.3 and Redpanda 26.2, what happens beyond it, and whether it is emulated.

    python scripts/docs/limits_table.py

Names, consequences and proofs are in limits.tsv; defaults, and whether anything obeys a setting, are in the definitions that the
broker reads. A limit without a definition is a quota, or no setting of this product.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from scripts.docs.markdown import table  # noqa: E402 - importable only from here on
from scripts.docs.settings_page import default_of  # noqa: E402
from shards.settings.config_def import BROKER, TOPIC  # noqa: E402
from shards.settings.config_key import ConfigKey  # noqa: E402

ROWS = Path(__file__).with_name("limits.tsv")
PAGE = ROOT / "docs" / "limits.md"
_HEAD = """# Every limit of both vocabularies

Look up a limit of Apache Kafka 4.3 or Redpanda 26.2: what its broker does beyond it, and whether Turnstile does the same. The
proof is the test that goes beyond the limit. What is not emulated says why, and what comes nearest; of Kafka's settings
these are still checked, stored and shown, and nothing acts on them, while Redpanda's are refused as unknown.

[Limits and settings](configuration.md) says how limits are set and which one goes first, [Semantics](semantics.md) what they do
exactly. Of limits that managed clusters publish, `turnstile presets` has a table of its own. This page is written by
`scripts/docs/limits_table.py`.
"""


class LimitRow(NamedTuple):
    """`default`: where no definition has one. `proof`: a test, as path::function below tests/. `why_not`: it is not emulated."""

    section: str
    vocabulary: str
    name: str
    default: str
    beyond: str
    proof: str
    why_not: str


def rows() -> list[LimitRow]:
    """The rows in the order of the page."""
    lines = ROWS.read_text().splitlines()
    return [LimitRow(*line.split("\t")) for line in lines if line and not line.startswith("#")]


def definition_of(name: str) -> ConfigKey | None:
    """The setting of a broker or a topic, if this is one."""
    return BROKER.get(name) or TOPIC.get(name)


def page() -> str:
    """All of it, as Markdown."""
    found, parts = rows(), [_HEAD]
    for section in dict.fromkeys(row.section for row in found):
        cells = [_cells(row) for row in found if row.section == section]
        parts += [f"## {section}\n", table(["limit", "of", "default", "beyond it", "emulated, and its proof"], cells)]
    return "\n".join(parts).rstrip() + "\n"


def _cells(row: LimitRow) -> Sequence[str]:
    setting = definition_of(row.name)
    default = row.default if setting is None else default_of(setting)
    name = f"`{row.name}`" if " " not in row.name else row.name
    path, _, test = row.proof.partition("::")
    proof = f"yes: `{test}` in `tests/{path}`" if row.proof else f"no: {row.why_not}"
    return name, row.vocabulary, default, row.beyond, proof


if __name__ == "__main__":
    PAGE.write_text(page())
