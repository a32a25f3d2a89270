"""The files of a TLS listener: which one of them is missing or wrong."""

from pathlib import Path

import pytest

from broker.serve.tls import context_of
from shards.config.cluster_plan import ListenerEndpoint
from shards.errors import CannotStart
from tests.support.certificates import make_certificate


def fault_of(certificate: Path, key: Path) -> str:
    endpoint = ListenerEndpoint(0, "SECURE", "127.0.0.1", 9093, ("tls", f"cert={certificate}", f"key={key}"))
    with pytest.raises(CannotStart) as fault:
        context_of(endpoint)
    return str(fault.value)


def test_the_file_that_is_wrong_is_named(tmp_path: Path) -> None:
    made = []
    for name in "ab":
        (tmp_path / name).mkdir()
        made.append(make_certificate(tmp_path / name))
    if None in made:
        pytest.skip("openssl is not installed")
    (certificate, key), (_, other) = made
    text = tmp_path / "text.pem"
    text.write_text("nothing")
    gone = tmp_path / "gone.pem"
    assert (
        fault_of(gone, key) == f"cannot read cert={gone}, the certificate of listener SECURE: No such file or directory"
    )
    assert (
        fault_of(certificate, gone) == f"cannot read key={gone}, the key of listener SECURE: No such file or directory"
    )
    assert fault_of(certificate, text) == f"cannot use {text} for listener SECURE: it is no private key in PEM"
    assert fault_of(text, key) == f"cannot use {text} for listener SECURE: it is no certificate in PEM"
    assert fault_of(certificate, other).endswith("the key is that of another certificate")
