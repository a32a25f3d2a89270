"""Logs to stderr: lines for people on a terminal, JSON otherwise.

storms_are_one_line_a_second  A storm is one line a second for each event text, with the count of the lines it stands for.
client_text_is_printable  What clients chose (user names, client ids) reaches a terminal only with its escape codes made
    visible.
lost_stderr_ends_nothing  A reader of stderr that has gone ends nothing: the line is lost, and the process goes on.
lower_levels_are_not_written  A line below the level of its process (`set_level`) is not written.

structlog is imported before the fork, so that the first line of a shard does not hold up its connections; but without two packages
which lines never need, and which take longer than structlog itself: rich, as a traceback is text before its line is rendered, and
asyncio, as no line is written by a coroutine of it.
"""

import sys
import time
from collections.abc import Iterator, MutableMapping
from contextlib import contextmanager, suppress
from types import ModuleType
from typing import Any, NamedTuple

from broker.runtime.printable import printable


@contextmanager
def _instead_of(package: str, stand_in: ModuleType | None) -> Iterator[None]:
    """Imports of `package` get `stand_in` meanwhile, or where that is None find it not installed; unless it is imported already."""
    absent = package not in sys.modules
    if absent:
        sys.modules[package] = stand_in  # type: ignore[assignment]
    try:
        yield
    finally:
        if absent:
            del sys.modules[package]


with _instead_of("rich", None), _instead_of("asyncio", ModuleType("asyncio")):
    import structlog

_EVERY_S = 1.0
_SILENT = {"FATAL": {"info", "warning", "error"}, "ERROR": {"info", "warning"}, "WARN": {"info"}}
"""The lines that are not written at a level. There are none of levels below info."""
_silent: set[str] = set()


def set_level(level: str) -> None:
    """Sets the level of this process's log: one of Kafka's names of levels (KIP-412)."""
    global _silent
    _silent = _SILENT.get(level, set())


def _get_logger() -> Any:
    """structlog's logger, set up for this process unless it is set up already."""
    if not structlog.is_configured():
        _configure()
    return structlog.get_logger()


def _configure() -> None:
    terminal = sys.stderr.isatty()
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.format_exc_info,
            *(
                [escape_controls, structlog.dev.ConsoleRenderer()]
                if terminal
                else [structlog.processors.JSONRenderer()]
            ),
        ],
        logger_factory=lambda *_: structlog.PrintLogger(sys.stderr),
    )


def escape_controls(
    logger: structlog.typing.WrappedLogger, level: str, fields: MutableMapping[str, object]
) -> MutableMapping[str, object]:
    """A processor of structlog for lines that a terminal shows (client_text_is_printable). JSON escapes control characters
    by itself."""
    return {
        name: printable(value, newlines=name == "exception") if isinstance(value, str) else value
        for name, value in fields.items()
    }


class _Said(NamedTuple):
    """The time at which an event text was last written, and its number of occurrences since."""

    at_s: float
    withheld: int


class Logger:
    """A log whose lines carry `context`."""

    def __init__(self, **context: object) -> None:
        self._context = context

    def info(self, event: str, **fields: object) -> None:
        """Writes a line."""
        self._write("info", event, fields)

    def warning(self, event: str, **fields: object) -> None:
        """Writes a line for what an operator should look at."""
        self._write("warning", event, fields)

    def error(self, event: str, **fields: object) -> None:
        """Writes a line for what did not work, or for a mistake in Turnstile."""
        self._write("error", event, fields)

    def _write(self, level: str, event: str, fields: dict[str, Any]) -> None:
        if level in _silent:
            return
        with suppress(OSError):
            getattr(_get_logger().bind(**self._context), level)(event, **fields)


class RateLimitedLogger(Logger):
    """A log in which a storm of warnings or errors is one line a second for each kind of event (storms_are_one_line_a_second).

    Such a line has `count`, how many it stands for.
    """

    def __init__(self, **context: object) -> None:
        super().__init__(**context)
        self._kinds: dict[str, _Said] = {}  # by event text, which is a constant of the code

    def warning(self, event: str, **fields: object) -> None:
        """Logs at most one line a second for each event text."""
        self._limited("warning", event, fields)

    def error(self, event: str, **fields: object) -> None:
        """Logs at most one line a second for each event text."""
        self._limited("error", event, fields)

    def call_mistaken(self, fault: Exception) -> None:
        """An error for a call of another process that failed by a mistake here (shards/mesh/calls.py, mistakes_fail_their_call)."""
        self.error("a mistake in serving a call", exc_info=fault)

    def quota_callback_mistaken(self, fault: BaseException) -> None:
        """An error of the class that client.quota.callback.class names; its client is without a quota."""
        self.error("client.quota.callback.class has failed, so a client may be without its quota", exc_info=fault)

    def _limited(self, level: str, event: str, fields: dict[str, object]) -> None:
        now_s = time.monotonic()
        said = self._kinds.get(event)
        if said is not None and now_s - said.at_s < _EVERY_S:
            self._kinds[event] = _Said(said.at_s, said.withheld + 1)
            return
        self._kinds[event] = _Said(now_s, 0)
        self._write(level, event, {**fields, "count": 1 + (said.withheld if said is not None else 0)})
