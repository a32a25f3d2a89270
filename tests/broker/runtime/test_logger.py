"""A storm of events is one line a second for each kind, and no field can steer a terminal."""

import json
import subprocess
import sys

import pytest
import structlog

from broker.runtime import logger as logging
from broker.runtime.logger import RateLimitedLogger, escape_controls


@pytest.fixture
def lines(monkeypatch, capsys):
    """A logger under a clock that the test moves, and a reader of what it wrote."""
    now = [100.0]
    monkeypatch.setattr(logging.time, "monotonic", lambda: now[0])
    structlog.reset_defaults()
    yield RateLimitedLogger(shard=3), now, lambda: [json.loads(line) for line in capsys.readouterr().err.splitlines()]
    structlog.reset_defaults()


def test_a_storm_is_one_line_a_second_with_its_count(lines):
    logger, now, written = lines
    for _ in range(5):
        logger.warning("no descriptors", ip="10.0.0.1")
    now[0] += 1.0
    logger.warning("no descriptors", ip="10.0.0.2")
    first, second = written()
    assert (first["event"], first["ip"], first["shard"], first["count"]) == ("no descriptors", "10.0.0.1", 3, 1)
    assert (second["ip"], second["count"]) == ("10.0.0.2", 5)


def test_kinds_do_not_hide_each_other(lines):
    logger, _, written = lines
    logger.error("one")
    logger.error("another")
    assert [line["event"] for line in written()] == ["one", "another"]


def test_info_is_written_every_time(lines):
    logger, _, written = lines
    logger.info("ready")
    logger.info("ready")
    assert len(written()) == 2


@pytest.mark.parametrize(
    ("level", "kept"),
    [
        ("TRACE", "info warning error"),
        ("INFO", "info warning error"),
        ("WARN", "warning error"),
        ("ERROR", "error"),
        ("FATAL", ""),
    ],
)
def test_what_is_below_the_level_is_not_written(lines, level, kept):
    logger, _, written = lines
    logging.set_level(level)
    try:
        for kind in ("info", "warning", "error"):
            getattr(logger, kind)(kind)
    finally:
        logging.set_level("INFO")
    assert [line["event"] for line in written()] == kept.split()


def test_what_a_terminal_would_obey_is_shown_instead():
    said = escape_controls(None, "warning", {"event": "login failed", "user": "\x1b[2Jeve\x9b31m", "count": 2})
    assert said == {"event": "login failed", "user": "\\x1b[2Jeve\\x9b31m", "count": 2}


def test_a_terminal_is_shown_a_mistake_as_python_shows_it(lines, monkeypatch, capsys):
    logger, _, _ = lines
    monkeypatch.setattr(logging.sys.stderr, "isatty", lambda: True)
    logger.error("a mistake", exc_info=KeyError("missing"))
    assert "KeyError: 'missing'" in capsys.readouterr().err


def test_what_is_forked_has_not_imported_what_no_shard_needs():
    program = "import sys, broker.process.children, broker.process.shard_process; print(*sys.modules)"
    imported = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    ).stdout.split()
    assert "broker.runtime.logger" in imported
    assert not {"rich", "asyncio", "h11", "starlette", "sqlite3"} & set(imported)


def test_a_reader_that_has_gone_ends_nothing(lines, monkeypatch):
    logger, _, _ = lines

    def broken(*_):
        raise BrokenPipeError

    monkeypatch.setattr(logging.sys.stderr, "write", broken)
    logger.warning("nobody reads this")
    logger.info("nor this")
