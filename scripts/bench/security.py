"""The security protocols of the benchmarks, on Turnstile, Kafka and kfake alike: TLS 1.3 with one certificate, SASL PLAIN with one
user.

The certificate is made for the run: it signs itself, and its key is of P-256. All clients offer one cipher, so all servers use it.
"""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from broker.serve.call import Call
from broker.wire import wire
from scripts.bench import machine
from scripts.bench.machine import CannotMeasure, Server

PLAIN_LISTENER = "PLAINTEXT"
_USER, PASSWORD = "bench", "bench-secret"
_CIPHER = "TLS_AES_256_GCM_SHA384"
_HANDSHAKE, _AUTHENTICATE = (17, 1), (36, 2)
_CURVE = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1")
_NAMES = ("-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1")
_LOGIN = "org.apache.kafka.common.security.plain.PlainLoginModule required"


class Security(NamedTuple):
    """One protocol. `listener` is Turnstile's option, `kafka` are properties of a broker whose listener is PLAINTEXT, `kfake` its
    options; `client` are values of the C client; `properties` is the path of a file of properties for Kafka's clients, `floor` what
    machine.accept_loop takes as a certificate."""

    listener: str
    kafka: Mapping[str, str]
    kfake: Sequence[str]
    client: Mapping[str, object]
    properties: str
    user: str = ""
    floor: Sequence[str] = ()


@contextmanager
def tls() -> Iterator[Security]:
    """Raises CannotMeasure without the command openssl."""
    with TemporaryDirectory(prefix="turnstile-bench-") as home:
        certificate, key = _certificate(Path(home))
        store = Path(home, "keystore.pem")
        store.write_text(Path(key).read_text() + Path(certificate).read_text())
        trust = {"ssl.truststore.type": "PEM", "ssl.truststore.location": certificate}
        protocol = {"ssl.enabled.protocols": "TLSv1.3", "ssl.cipher.suites": _CIPHER}
        keys = {"ssl.keystore.type": "PEM", "ssl.keystore.location": str(store)}
        yield Security(
            listener=f"TLS=127.0.0.1:0,tls,cert={certificate},key={key}",
            kafka={"listener.security.protocol.map": "PLAINTEXT:SSL,CONTROLLER:PLAINTEXT", **trust, **protocol, **keys},
            kfake=("-cert", certificate, "-key", key),
            client={"tls": 1},
            properties=_written(Path(home), {"security.protocol": "SSL", **trust, **protocol}),
            floor=(certificate, key),
        )


@contextmanager
def sasl() -> Iterator[Security]:
    """SASL PLAIN over plaintext: SaslHandshake and SaslAuthenticate, each answered, before ApiVersions."""
    with TemporaryDirectory(prefix="turnstile-bench-") as home:
        requests = Path(home, "requests")
        requests.write_bytes(_login() + machine.API_VERSIONS)
        own = f'username="{_USER}" password="{PASSWORD}"'
        client = {
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "PLAIN",
            "sasl.jaas.config": f"{_LOGIN} {own};",
        }
        yield Security(
            listener="SASL=127.0.0.1:0,sasl",
            kafka={
                "listener.security.protocol.map": "PLAINTEXT:SASL_PLAINTEXT,CONTROLLER:PLAINTEXT",
                "sasl.enabled.mechanisms": "PLAIN",
                "sasl.mechanism.inter.broker.protocol": "PLAIN",
                "listener.name.plaintext.plain.sasl.jaas.config": f'{_LOGIN} {own} user_{_USER}="{PASSWORD}";',
            },
            kfake=("-user", f"{_USER}={PASSWORD}"),
            client={"frames": requests},
            properties=_written(Path(home), client),
            user=_USER,
        )


PROTOCOLS: Mapping[str, Callable[[], AbstractContextManager[Security]]] = {"TLS": tls, "SASL PLAIN": sasl}
"""Makes the Security of a protocol, for as long as it is measured; by the name that rows have for the protocol."""


@contextmanager
def turnstile(security: Security, *options: str, checkout: Path | None = None) -> Iterator[Server]:
    """See machine.turnstile. Its first listener has this security, the next, PLAIN_LISTENER, none."""
    listeners = ("--listener", security.listener, "--listener", f"{PLAIN_LISTENER}=127.0.0.1:0")
    with machine.turnstile(*listeners, *options, checkout=checkout) as server:
        if security.user:
            machine.admin_of(server).put("/v1/users", {"name": security.user, "password": PASSWORD})
        yield server


def _certificate(home: Path) -> tuple[str, str]:
    if shutil.which("openssl") is None:
        raise CannotMeasure("The certificate is made by the command openssl: apt-get install openssl")
    certificate, key = f"{home}/server.pem", f"{home}/server.key"
    made = ["openssl", "req", "-x509", *_CURVE, "-nodes", "-days", "2", *_NAMES, "-keyout", key, "-out", certificate]
    subprocess.run(made, check=True, capture_output=True)
    return certificate, key


def _written(home: Path, properties: Mapping[str, str]) -> str:
    path = home / "client.properties"
    path.write_text("".join(f"{name}={value}\n" for name, value in properties.items()))
    return str(path)


def _login() -> bytes:
    token = f"\0{_USER}\0{PASSWORD}".encode()
    shake = wire.request_types(*_HANDSHAKE).SaslHandshakeRequest(mechanism="PLAIN")
    prove = wire.request_types(*_AUTHENTICATE).SaslAuthenticateRequest(auth_bytes=token)
    return wire.encode_request(Call(*_HANDSHAKE), shake, "bench") + wire.encode_request(
        Call(*_AUTHENTICATE), prove, "bench"
    )
