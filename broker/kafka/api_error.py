"""The error of a response, or of one part of it: a Kafka code and one sentence. Source: ApiError and ApiException of Kafka."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from broker.wire import codes


class ApiError(NamedTuple):
    """`code` NONE: nothing is refused."""

    code: int = codes.NONE
    message: str | None = None

    @classmethod
    def of(cls, problem: Sequence[str] | None) -> ApiError:
        """The problem that the coordinator's own checks have found, [error name or "", message]; None is nothing."""
        return cls(code_named(problem[0]), problem[1] or None) if problem and problem[0] else cls()


NO_ERROR = ApiError()


class ApiException(Exception):
    """An ApiError on its way to the response that carries it."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message

    @property
    def error(self) -> ApiError:
        return ApiError(self.code, self.message)


def code_named(name: str) -> int:
    """The code of a Kafka error name, 0 for ""."""
    return int(getattr(codes, name)) if name else codes.NONE
