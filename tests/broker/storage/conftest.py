"""Logs are quiet here: hundreds of damaged files are set aside."""

from collections.abc import Iterator

import pytest
import structlog


@pytest.fixture(autouse=True)
def quiet() -> Iterator[list[structlog.typing.EventDict]]:
    """The log lines of a test."""
    with structlog.testing.capture_logs() as lines:
        yield lines
