"""TLS: which file of a listener is missing or wrong, and what a read takes."""

import contextlib
import socket
import ssl
from _socket import socket as RawSocket
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.serve.tls import TlsSocket, context_of, server_context
from shards.config.cluster_plan import ListenerEndpoint
from shards.errors import CannotStart
from tests.support.certificates import make_certificate
from tests.support.key_updates import key_updates


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


@pytest.mark.parametrize(("size", "is_flood"), [(1000, False), (100_000, True)])
def test_a_flood_of_key_updates_is_no_reason_to_go_on_reading(tmp_path: Path, size: int, is_flood: bool) -> None:
    near, server = _socket_pair(tmp_path)
    near.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 20)
    client, _, outgoing = _connected(near, server)
    buffer = memoryview(bytearray(1000))
    flood = key_updates(client, outgoing, size)
    if flood is None:
        pytest.skip("no libssl that makes KeyUpdates")
    client.write(b"data")
    near.sendall(flood + outgoing.read())
    if is_flood:
        with pytest.raises(ConnectionResetError, match="TLS without data"):
            server.recv_into(buffer)
    else:
        assert bytes(buffer[: server.recv_into(buffer)]) == b"data"
    server.close()
    near.close()


def test_a_socket_is_empty_once_a_read_has_taken_all_that_had_come(tmp_path: Path) -> None:
    near, server = _socket_pair(tmp_path)
    client, incoming, outgoing = _connected(near, server)
    buffer = memoryview(bytearray(1000))
    client.write(b"one")
    client.write(b"two")
    near.sendall(outgoing.read())
    assert bytes(buffer[: server.recv_into(buffer)]) == b"one"
    assert not server.is_empty  # it holds another record
    client.write(b"three")
    near.sendall(outgoing.read())
    assert bytes(buffer[: server.recv_into(buffer)]) == b"two"
    assert not server.is_empty  # it has not looked at the socket
    assert bytes(buffer[: server.recv_into(buffer)]) == b"three"
    assert server.is_empty
    with pytest.raises(BlockingIOError):
        server.recv_into(buffer)
    server.send(b"answer")
    incoming.write(near.recv(1 << 16))
    assert client.read() == b"answer"
    server.close()
    near.close()


@pytest.mark.parametrize("after_the_end", [0, 20_000])
def test_one_read_takes_many_records_and_the_end_of_tls_is_for_the_next(tmp_path: Path, after_the_end: int) -> None:
    near, server = _socket_pair(tmp_path)
    client, _, outgoing = _connected(near, server)
    data = bytes(range(256)) * 400
    client.write(data)
    with contextlib.suppress(ssl.SSLWantReadError):
        client.unwrap()
    near.sendall(outgoing.read() + bytes(after_the_end))
    buffer, got, reads = memoryview(bytearray(256 << 10)), b"", 0
    while size := server.recv_into(buffer):
        got, reads = got + bytes(buffer[:size]), reads + 1
    assert got == data and reads < 4, "seven records"
    server.close()
    near.close()


def test_a_broken_record_behind_others_is_told_after_their_data(tmp_path: Path) -> None:
    near, server = _socket_pair(tmp_path)
    client, _, outgoing = _connected(near, server)
    client.write(bytes(40_000))
    near.sendall(outgoing.read() + bytes(30_000))
    got = _read_until(server, ConnectionResetError)
    assert got == 40_000 and not server.is_empty
    assert _read_until(server, ConnectionResetError) == 0
    server.close()
    near.close()


def test_the_end_of_the_stream_behind_data_is_told_by_the_next_read(tmp_path: Path) -> None:
    near, server = _socket_pair(tmp_path)
    client, _, outgoing = _connected(near, server)
    client.write(bytes(33_000))
    near.sendall(outgoing.read())
    near.close()
    got = _read_until(server, ConnectionError)
    assert got == 33_000
    server.close()


def test_no_tickets_are_handed_out(tmp_path: Path) -> None:
    near, server = _socket_pair(tmp_path)
    client, incoming, outgoing = _connected(near, server)
    client.write(b"request")
    near.sendall(outgoing.read())
    server.recv_into(memoryview(bytearray(1000)))
    server.send(b"answer")
    incoming.write(near.recv(1 << 16))
    assert client.read() == b"answer"
    assert client.session is not None
    assert not client.session.has_ticket
    server.close()
    near.close()


STEPS = st.lists(
    st.one_of(
        st.tuples(
            st.just("write"), st.sampled_from([1, 900, 16_384, 16_385, 40_000, 300_000]) | st.integers(1, 70_000)
        ),
        st.tuples(st.just("updates"), st.integers(1, 3)),
        st.tuples(st.just("arrive"), st.sampled_from([1, 5, 32_768, 32_767, 400_000]) | st.integers(1, 70_000)),
    ),
    max_size=12,
)


@given(STEPS)
def test_after_each_arrival_all_whole_records_are_read_and_no_other_waits(context: ssl.SSLContext, steps: Any) -> None:
    """`Connection._read` in small: one edge for each arrival, then reads until one says that all is taken."""
    near, server = _pair(context)
    near.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 21)
    client, _, outgoing = _connected(near, server)
    buffer, got, written, on_the_way = memoryview(bytearray(256 << 10)), bytearray(), bytearray(), b""
    ends = [(0, 0)]  # of records: bytes on the way, and of data

    def arrive(size: int) -> None:
        nonlocal on_the_way
        near.sendall(on_the_way[:size])
        on_the_way = on_the_way[size:]
        with contextlib.suppress(BlockingIOError):
            while size := server.recv_into(buffer):
                got.extend(buffer[:size])
                if size < len(buffer) and server.is_empty:
                    break

    sent = arrived = 0
    for step, number in [*steps, ("arrive", 1 << 30)]:
        if step == "arrive":
            arrived += min(number, len(on_the_way))
            arrive(number)
            whole = max(data for wire, data in ends if wire <= arrived)
            assert bytes(got) == bytes(written[:whole])
            continue
        if step == "updates":
            made = key_updates(client, outgoing, number) or b""
            on_the_way, sent = on_the_way + made, sent + len(made)
            continue
        for start in range(0, number, 16 << 10):
            piece = (len(written) % 251).to_bytes(1) * min(number - start, 16 << 10)
            client.write(piece)
            record = outgoing.read()
            written, on_the_way, sent = written + piece, on_the_way + record, sent + len(record)
            ends.append((sent, len(written)))
    server.close()
    near.close()


@pytest.fixture(scope="module")
def context(tmp_path_factory: pytest.TempPathFactory) -> ssl.SSLContext:
    return _context(tmp_path_factory.mktemp("certificate"))


def _context(folder: Path) -> ssl.SSLContext:
    certificate = make_certificate(folder)
    if certificate is None:
        pytest.skip("openssl is not installed")
    return server_context(str(certificate.cert), str(certificate.key))


def _pair(context: ssl.SSLContext) -> tuple[socket.socket, TlsSocket]:
    near, far = socket.socketpair()
    return near, TlsSocket(RawSocket(socket.AF_UNIX, 1, 0, far.detach()), context)


def _socket_pair(tmp_path: Path) -> tuple[socket.socket, TlsSocket]:
    """The client's end of a connection, and the server's with TLS."""
    return _pair(_context(tmp_path))


def _read_until(server: TlsSocket, error: type[OSError]) -> int:
    """The number of bytes that are read before this error."""
    buffer, got = memoryview(bytearray(256 << 10)), 0
    with pytest.raises(error):
        while True:
            got += server.recv_into(buffer)
    return got


def _connected(near: socket.socket, server: TlsSocket) -> tuple[ssl.SSLObject, ssl.MemoryBIO, ssl.MemoryBIO]:
    """A client that has made its handshake, and what comes to it and leaves it; what ends the handshake is on the way."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    client = context.wrap_bio(incoming, outgoing)
    while True:
        try:
            client.do_handshake()
            break
        except ssl.SSLWantReadError:
            near.sendall(outgoing.read())
            with pytest.raises(BlockingIOError):
                server.recv_into(memoryview(bytearray(1000)))
            incoming.write(near.recv(1 << 16))
    near.sendall(outgoing.read())
    return client, incoming, outgoing
