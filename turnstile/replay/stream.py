"""`turnstile replay`: a scenario of connects, closes, records and live changes, run under virtual time.

One JSON object per line; scenario.py says what each event does.
"""

import json
import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from json.scanner import make_scanner
from typing import Any, TextIO

from turnstile.replay.scenario import ChangeRefused, Pending, ReplayScenario


class ReplayError(Exception):
    """A line that can't be read, or that makes no sense where it stands; `line` counts from 1."""

    def __init__(self, line: int, why: str) -> None:
        super().__init__(f"line {line}: {why}")
        self.line = line
        self.why = why


def replay(
    lines: Iterable[str | bytes], rejected: Callable[[int, str], None] = lambda line, why: None
) -> Iterator[str]:
    """The answers to a scenario's connects and records, in input order, each one line of JSON without a newline.

    Answers come as soon as all before them are decided. Raises ReplayError at the first bad line, after the answers
    that were decided until then. `rejected(line, why)` is told of each change that was refused (`ChangeRefused`).
    """
    scenario = ReplayScenario()
    take = scenario.take
    # The first is not decided; the answers after it wait, as the order is that of the input.
    undecided: deque[str | Pending] = deque()
    for number, line in enumerate(lines, 1):
        try:
            event = _parse(line)
            answer = None if event is None else take(event)
        except ChangeRefused as change:
            rejected(number, str(change))
            answer = None
        except (ValueError, RecursionError) as error:
            raise ReplayError(number, _sentence(error)) from None
        if undecided or (answer is not None and not isinstance(answer, str)):
            if answer is not None:
                undecided.append(answer)
            while undecided and (text := _text(undecided[0])) is not None:
                undecided.popleft()
                yield text
        elif answer is not None:
            yield answer
    scenario.finish()
    for answer in undecided:
        yield _text(answer) or ""


def run(source: str | Iterable[str | bytes], out: TextIO, err: TextIO | None = None) -> int:
    """`turnstile replay SOURCE`: answers to `out`, complaints to `err` (stderr). The exit code: 0, or 2 for a bad line.

    `source` is a path, "-" for standard input, or the lines themselves.
    """
    err = sys.stderr if err is None else err
    if not isinstance(source, str):
        return _run(source, "scenario", out, err)
    if source == "-":
        return _run(sys.stdin.buffer, "<stdin>", out, err)
    try:
        file = open(source, "rb")  # noqa: SIM115 - only opening it may fail as an unreadable file; it is closed below
    except OSError as error:
        err.write(f"turnstile replay: {source}: {error.strerror}\n")
        return 2
    with file as lines:
        return _run(lines, source, out, err)


def _run(lines: Iterable[str | bytes], name: str, out: TextIO, err: TextIO) -> int:
    def rejected(line: int, why: str) -> None:
        err.write(f"{name}:{line}: not changed: {why}\n")

    batch: list[str] = []
    try:
        for answer in replay(lines, rejected):
            batch.append(answer)
            if len(batch) >= 1000:
                out.write("\n".join(batch) + "\n")
                batch.clear()
    except ReplayError as error:
        err.write(f"{name}:{error.line}: {error.why}\n")
        return 2
    finally:
        if batch:
            out.write("\n".join(batch) + "\n")
    return 0


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is not JSON")


_DECODER = json.JSONDecoder(parse_constant=_no_constant)
# Half the time of `loads`; raises StopIteration where no value starts. Its stub asks for the wrong type.
_scan = make_scanner(_DECODER)  # type: ignore[arg-type]


def _parse(line: str | bytes) -> Any:
    """The value on a line, None for a blank one. ValueError if there is anything else."""
    text = line if isinstance(line, str) else line.decode()
    try:
        event, end = _scan(text, 0)
    except StopIteration:
        text = text.strip()
        if not text:
            return None
        event, end = _DECODER.raw_decode(text)
    if end != len(text) and text[end:] != "\n" and text[end:].strip():
        raise ValueError("there is more than one JSON object on it")
    if event is None:
        raise ValueError("it is not a JSON object")
    return event


def _text(answer: str | Pending) -> str | None:
    return answer if isinstance(answer, str) else answer.text()


def _sentence(error: Exception) -> str:
    if isinstance(error, UnicodeDecodeError):
        return "it is not UTF-8"
    if isinstance(error, json.JSONDecodeError):
        return f"it is not JSON: {error.msg} at column {error.colno}"
    return "it is nested too deeply" if isinstance(error, RecursionError) else str(error)
