"""What a broker said in all conversations, as one compact file: each answer once, one a line, conversations refer to them."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

Recording = dict[str, dict[str, Any]]
"""Conversation -> label -> plain answer, in the order in which they were said."""


def recording(conversations: Iterable[tuple[str, list[list[Any]]]]) -> Recording:
    return {name: dict(said) for name, said in conversations}


def save(path: Path, said: Recording) -> None:
    numbers: dict[str, int] = {}
    rows = [
        json.dumps([name, *([label, numbers.setdefault(_text(plain), len(numbers))] for label, plain in told.items())])
        for name, told in said.items()
    ]
    path.write_text(
        f'{{"answers": [\n{_lines(numbers)}\n],\n"conversations": [\n{_lines(rows)}\n]}}\n', encoding="utf-8"
    )


def load(path: Path) -> Recording:
    stored = json.loads(path.read_text(encoding="utf-8"))
    answers = stored["answers"]
    return {name: {label: answers[number] for label, number in told} for name, *told in stored["conversations"]}


def _text(plain: Any) -> str:
    return json.dumps(plain, separators=(",", ":"))


def _lines(rows: Iterable[str]) -> str:
    return ",\n".join(rows)
