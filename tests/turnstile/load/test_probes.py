"""What answers say of a refusal, byte by byte."""

import struct

import pytest

from turnstile.load.probes import API_ERROR, LOGIN, NO_PROBE, SASL_ERROR, Login, probe_requests


def answered(error: int, rest: bytes = b"") -> bytes:
    return struct.pack(">ih", 2, error) + rest


@pytest.mark.parametrize(
    ("error", "refused_as"), [(0, ""), (33, ""), (34, ""), (44, API_ERROR), (89, API_ERROR)],
)  # fmt: skip
def test_a_handshake_is_refused_by_the_errors_of_the_mode_alone(error, refused_as):
    _, handshake = probe_requests(LOGIN)
    assert handshake.refused(answered(error)) == refused_as


@pytest.mark.parametrize(
    ("error", "text", "refused_as"),
    [
        (58, b"[f8a1]: Too many connects", SASL_ERROR),
        (58, b"Authentication failed: Invalid username or password", ""),
        (0, b"", ""),
    ],
)
def test_a_login_that_fails_for_another_reason_is_no_refusal(error, text, refused_as):
    *_, authenticate = probe_requests(LOGIN, Login("alice", "secret"))
    assert authenticate.frame.endswith(b"\0alice\0secret")
    assert authenticate.refused(answered(error, text)) == refused_as


def test_nothing_is_asked_without_a_probe():
    assert probe_requests(NO_PROBE) == ()
