"""Logs to stderr: lines for people on a terminal, JSON otherwise; and never more than a line per kind and second."""

from __future__ import annotations

import contextlib
import sys
import time
from typing import Any

_EVERY_S = 1.0


def configure() -> None:
    """Sets structlog up for this process."""
    import structlog

    renderer: Any = structlog.dev.ConsoleRenderer() if sys.stderr.isatty() else structlog.processors.JSONRenderer()
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.format_exc_info,
            renderer,
        ],
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
        cache_logger_on_first_use=True,
    )


class RateLimitedLogger:
    """A log in which a storm is one line a second for each kind, with the count of what it stands for.

    structlog is imported with the first line: a shard that has nothing to say starts without it.
    """

    def __init__(self, **context: Any) -> None:
        self._context = context
        self._logger: Any = None
        self._kinds: dict[str, list[float]] = {}

    def info(self, event: str, **fields: Any) -> None:
        with contextlib.suppress(OSError):
            self._get().info(event, **fields)

    def warning(self, event: str, **fields: Any) -> None:
        """At most one line a second for each event text, with how many it stands for."""
        self._limited("warning", event, fields)

    def error(self, event: str, **fields: Any) -> None:
        """The same, for what is a mistake of ours."""
        self._limited("error", event, fields)

    def _limited(self, level: str, event: str, fields: dict[str, Any]) -> None:
        now = time.monotonic()
        state = self._kinds.setdefault(event, [-_EVERY_S, 0])
        state[1] += 1
        if now - state[0] >= _EVERY_S:
            with contextlib.suppress(OSError):  # stderr's reader may have gone; what is served goes on
                getattr(self._get(), level)(event, **fields, count=int(state[1]))
            state[0], state[1] = now, 0

    def _get(self) -> Any:
        if self._logger is None:
            configure()
            import structlog

            self._logger = structlog.get_logger().bind(**self._context)
        return self._logger
