"""The golden answers: scenarios with what Kafka's classes answered, kept so that no Maven is needed to check them."""

import gzip
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

PATH = Path(__file__).parent / "golden.jsonl.gz"


class Golden(NamedTuple):
    name: str
    lines: list[str]
    answers: list[dict[str, Any]]


def read() -> list[Golden]:
    with gzip.open(PATH, "rt", encoding="utf-8") as file:
        return [Golden(**json.loads(line)) for line in file]


def write(scenarios: Iterable[Golden]) -> None:
    """Reproducible: the same scenarios give the same bytes."""
    text = "".join(
        json.dumps(golden._asdict(), ensure_ascii=False, separators=(",", ":")) + "\n" for golden in scenarios
    )
    PATH.write_bytes(gzip.compress(text.encode(), 9, mtime=0))
