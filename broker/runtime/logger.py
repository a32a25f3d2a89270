"""Logs to stderr: lines for people on a terminal, JSON otherwise.

L1  A storm is one line a second for each event text, with the count of the lines it stands for.
L2  What clients chose (user names, client ids) reaches a terminal only with its escape codes made visible.
L3  A reader of stderr that has gone ends nothing: the line is lost, and the process goes on.
"""

from __future__ import annotations

import contextlib
import sys
import time
from typing import TYPE_CHECKING, Any, NamedTuple

from broker.runtime.printable import printable

if TYPE_CHECKING:
    from collections.abc import MutableMapping

    from structlog.typing import WrappedLogger

_EVERY_S = 1.0


def configure() -> None:
    """Sets structlog up for this process."""
    import structlog

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
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
        cache_logger_on_first_use=True,
    )


def escape_controls(logger: WrappedLogger, level: str, fields: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """A processor of structlog for lines that a terminal shows (L2). JSON escapes control characters by itself."""
    return {
        name: printable(value, newlines=name == "exception") if isinstance(value, str) else value
        for name, value in fields.items()
    }


class _Said(NamedTuple):
    """When an event text was last written, and how often it has occurred since."""

    at_s: float
    withheld: int


class RateLimitedLogger:
    """A log in which a storm is one line a second for each kind of event (L1).

    structlog is imported with the first line: a shard that has nothing to say starts without it.
    """

    def __init__(self, **context: Any) -> None:
        self._context = context
        self._logger: Any = None
        self._kinds: dict[str, _Said] = {}  # by event text, which is a constant of the code

    def info(self, event: str, **fields: Any) -> None:
        """Writes the line, however many there are."""
        with contextlib.suppress(OSError):
            self._get().info(event, **fields)

    def warning(self, event: str, **fields: Any) -> None:
        """At most one line a second for each event text, with `count`, how many it stands for."""
        self._limited("warning", event, fields)

    def error(self, event: str, **fields: Any) -> None:
        """The same as `warning`, for a mistake in Turnstile."""
        self._limited("error", event, fields)

    def _limited(self, level: str, event: str, fields: dict[str, Any]) -> None:
        now_s = time.monotonic()
        said = self._kinds.get(event)
        if said is not None and now_s - said.at_s < _EVERY_S:
            self._kinds[event] = _Said(said.at_s, said.withheld + 1)
            return
        self._kinds[event] = _Said(now_s, 0)
        with contextlib.suppress(OSError):
            getattr(self._get(), level)(event, **fields, count=1 + (said.withheld if said is not None else 0))

    def _get(self) -> Any:
        if self._logger is None:
            configure()
            import structlog

            self._logger = structlog.get_logger().bind(**self._context)
        return self._logger
