"""`turnstile replay`: a scenario of connects, closes, records and live changes, run under virtual time.

One JSON object per line (DESIGN section 9; `scenario.py` says what holds where the format is silent).
"""

import json
import sys
from collections.abc import Callable, Iterable, Iterator
from typing import TextIO

from limits.scenario import ChangeRefused, Scenario


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
    scenario = Scenario()
    ready = scenario.answers
    parse = json.JSONDecoder(parse_constant=_no_constant).raw_decode
    number = 0
    for number, line in enumerate(lines, 1):
        try:
            text = line if isinstance(line, str) else line.decode()
            if text[:1] != "{":
                text = text.strip()
                if not text:
                    continue
            event, end = parse(text)
            if end != len(text) and text[end:].strip():
                raise ValueError("there is more than one JSON object on it")
            scenario.take(event)
        except ChangeRefused as change:
            rejected(number, str(change))
        except UnicodeDecodeError:
            raise ReplayError(number, "it is not UTF-8") from None
        except json.JSONDecodeError as error:
            raise ReplayError(number, f"it is not JSON: {error.msg} at column {error.colno}") from None
        except (ValueError, RecursionError) as error:
            raise ReplayError(number, str(error)) from None
        while ready:
            answer = ready[0]
            if not isinstance(answer, str):
                decided = answer.text()
                if decided is None:
                    break
                answer = decided
            ready.popleft()
            yield answer
    scenario.finish()
    for answer in ready:
        yield answer if isinstance(answer, str) else answer.text() or ""


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
        with open(source, "rb") as lines:
            return _run(lines, source, out, err)
    except OSError as error:
        err.write(f"turnstile replay: {source}: {error.strerror}\n")
        return 2


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
