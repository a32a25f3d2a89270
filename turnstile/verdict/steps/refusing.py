"""Refusals of several kinds, a rate of new connections, and a shard that dies; and after each, what the client does then.

variants_follow_the_seed  The order of the variants follows from the seed. An error for an answer and a failed login come last of
    all, as clients may take them for final.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager

from turnstile.options import FaultOptions
from turnstile.verdict.checks.herd import ALONE
from turnstile.verdict.checks.recovery import ANSWERED_WITH_AN_ERROR, FAILED_LOGIN
from turnstile.verdict.stage import BUT_API_VERSIONS, Stage
from turnstile.verdict.timeline import SECOND

_Refused = Callable[[], AbstractContextManager[None]]


def refusing(stage: Stage) -> None:
    variants: list[tuple[str, _Refused]] = [
        (ALONE, stage.closed_at_accept),
        ("closed after ApiVersions", lambda: stage.cut("disconnect", api=BUT_API_VERSIONS)),
        ("silence", lambda: _silence(stage)),
        ("reset", lambda: stage.fault("disconnect", reset=True)),
    ]
    stage.random.shuffle(variants)
    for name, refused in variants:
        if stage.has_ended():
            stage.skipped[name] = "the program had ended"
            continue
        _refuse(stage, name, refused)


def erring(stage: Stage) -> None:
    """The first request behind ApiVersions is answered with an error, and its connection ends (turnstile.refuse.mode=api-error)."""
    _refuse(stage, ANSWERED_WITH_AN_ERROR, stage.refused_with_an_error)


def failing_login(stage: Stage) -> None:
    if any(event.api == "SaslAuthenticate" for event in stage.baseline.events):
        error: FaultOptions = {"api": "SaslAuthenticate", "error": "SASL_AUTHENTICATION_FAILED"}
        _refuse(stage, FAILED_LOGIN, lambda: stage.cut("error", **error))


def _refuse(stage: Stage, name: str, refused: _Refused) -> None:
    with stage.step("refuse", name) as detail:
        with refused():
            stage.pause(stage.times.alone_s if name == ALONE else stage.times.refuse_s)
        stage.await_recovery(detail, whole=True)


@contextmanager
def _silence(stage: Stage) -> Iterator[None]:
    """Nothing is answered. Requests that were swallowed stay unanswered, so their connections end with it."""
    with stage.cut("blackhole"):
        yield
    stage.end_connections()


def rating(stage: Stage) -> None:
    if "client_id" in stage.target:
        stage.skipped["rate"] = "others of its address would be held, too"
        return
    with stage.step("rate", "one new connection a second") as detail:
        with stage.quota(f"ip={stage.address}", connection_creation_rate=1):
            stage.end_connections()
            stage.pause(stage.times.refuse_s / 2)
        stage.await_recovery(detail)


def killing(stage: Stage) -> None:
    if stage.start_client is None:
        stage.skipped["kill"] = "a cluster that others use loses no shard"
        return
    last = stage.requests_since(time.monotonic_ns() - 3 * SECOND)
    if not last:
        stage.skipped["kill"] = "the client asked nothing"
        return
    place = last[0].conn[:3]
    with stage.step("kill", "a shard killed") as detail:
        detail["place"] = place
        stage.cluster.kill_shard(place[1], place[0])
        stage.await_recovery(detail)
