"""The few errors of Turnstile, each named by its cause, with what is done about it. Every other exception is a bug.

ClientFault       what a client sent is wrong: answer with its Kafka error, or close.
ConfigInvalid     a change of the configuration is wrong: refuse it whole, keep what is in force.
CannotStore       the disk won't take a change: refuse it whole; nothing of it is in force.
ControllerThrottled  the controller takes no more operations for now: refuse the change; the client tries again.
CannotStart       the cluster can't start as asked: say so in one sentence and exit with 1.
PeerLost          a link ended before the peer answered: the caller decides.
DeadlineExceeded  a call took longer than it may: the caller decides; the coordinator restarts such a shard.
RemoteError       the other side of a call raised: `code` is its error's class name, `message` its sentence.
"""

from shards.settings.errors import TurnstileError


class ClientFault(TurnstileError):
    """The client's mistake. `error` is a Kafka error name (`INVALID_REQUEST`), `message` says what was wrong."""

    def __init__(self, error: str, message: str = "") -> None:
        super().__init__(message or error)
        self.error = error
        self.message = message


class CannotStore(TurnstileError):
    """A change can't be stored, so it is not made; `str()` says why."""


class ControllerThrottled(TurnstileError):
    """A change is refused because too many were asked for (`rps_limit_*`); `str()` says which limit."""


class PeerLost(TurnstileError):
    """The link to a peer ended before it answered."""


class DeadlineExceeded(TurnstileError):
    """The peer did not answer in time; whether it did what was asked is unknown."""


class CannotStart(TurnstileError):
    """The cluster can't be started as asked; `str()` is the sentence that says why and what to do."""


class StoppedAtStart(CannotStart):
    """The cluster was told to end before it was up."""


class RemoteError(TurnstileError):
    """The peer's function raised; nothing was done unless the method says otherwise."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
