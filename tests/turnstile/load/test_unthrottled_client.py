"""The driver's own small client, against answers as a broker gives them."""

import socket
import struct
import threading
import time

import pytest

from broker.storage.log_config import LogConfig
from broker.storage.validation import validate
from turnstile.load import unthrottled_client
from turnstile.load.unthrottled_client import UnthrottledClient


def test_a_batch_of_one_record_is_one_that_a_broker_takes():
    for size in (0, 1, 63, 64, 2000):
        batch = unthrottled_client.one_record(size)
        assert validate(batch, LogConfig(), time.time_ns() // 1_000_000)[0].size == len(batch)


@pytest.fixture
def peer():
    """(bootstrap, requests seen, answers to give behind the correlation id)."""
    seen, answers = [], []
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve():
            while True:
                try:
                    sock, _ = server.accept()
                except OSError:
                    return
                with sock:
                    while length := sock.recv(4, socket.MSG_WAITALL):
                        seen.append(sock.recv(int.from_bytes(length, "big"), socket.MSG_WAITALL))
                        answer = answers.pop(0)
                        if answer is None:
                            break
                        sock.sendall(struct.pack(">i", 4 + len(answer)) + b"\0\0\0\1" + answer)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield f"127.0.0.1:{server.getsockname()[1]}", seen, answers
        server.shutdown(socket.SHUT_RDWR)
    thread.join(5)


def test_produce_tells_the_error_and_the_throttle(peer):
    bootstrap, seen, answers = peer
    answers.append(struct.pack(">ih", 1, 1) + b"t" + struct.pack(">iihqqqi", 1, 0, 3, 0, -1, 0, 1234))
    client = UnthrottledClient(bootstrap, "app")
    assert unthrottled_client.produce(client, "t", 0, unthrottled_client.one_record(10)) == (3, 1234)
    assert seen[0][:4] == struct.pack(">hh", 0, 7)
    client.close()


def test_a_topic_that_was_refused(peer):
    bootstrap, _, answers = peer
    answers.append(b"\0" + struct.pack(">i", 500) + b"\2\2t" + struct.pack(">h", 89) + b"\0" * 9)
    client = UnthrottledClient(bootstrap, "app")
    assert unthrottled_client.create_topic(client, "t", 3) == (89, 500)
    client.close()


def test_it_connects_anew_after_the_broker_has_closed(peer):
    bootstrap, _, answers = peer
    client = UnthrottledClient(bootstrap, "app")
    answers.append(None)
    with pytest.raises(OSError, match="closed"):
        client.ask(0, 7, b"")
    answers.append(b"again")
    assert client.ask(0, 7, b"") == b"again"
    assert client.made == 2
    client.close()
