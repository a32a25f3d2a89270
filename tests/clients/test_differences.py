"""Every API in every version, right and wrong: answers are Apache Kafka 4.3.1's, field by field, but for docs/differences.md.

What Kafka answered is in differences.json; `make differences` asks it again.
"""

from __future__ import annotations

from pathlib import Path

from differential import brokers, conversations  # noqa: F401 - its import fills the table
from differential.compare import differences
from differential.known import rows, unexplained
from differential.recording import load, recording
from differential.table import converse

RECORDED = Path(__file__).with_name("differences.json")


def test_answers_are_kafkas_but_for_the_differences_that_are_listed(tmp_path):
    theirs = load(RECORDED)
    with brokers.turnstile(tmp_path / "data") as addresses:
        ours = recording(converse(*addresses))
    assert len(ours) >= 300
    assert list(unexplained(differences(theirs, ours), rows())) == []
