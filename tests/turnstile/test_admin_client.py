"""The client of the admin API: what it returns, and the one sentence of each way to fail."""

import gc
import os
import select
import socket
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress

import pytest
import trio

from turnstile.admin_client import AdminClient, AdminRefused, AdminUnreachable


@contextmanager
def answering(response: bytes):
    """The URL of a server that gives every connection this response, and ends it."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve():
            connection, _ = server.accept()
            with connection:
                connection.recv(65536)
                connection.sendall(response)

        thread = threading.Thread(target=serve)
        thread.start()
        yield f"http://127.0.0.1:{server.getsockname()[1]}"
        thread.join()


async def test_values_go_out_and_come_back(api):
    client = AdminClient(api.url.removeprefix("http://"), who="a test")
    changed = {"upsert": {"kafka_connections_max": 5}, "remove": []}
    version = (await trio.to_thread.run_sync(client.put, "/v1/cluster_config", changed))["config_version"]
    history = (await trio.to_thread.run_sync(lambda: client.get("/v1/config/history", limit=1, before=None)))["history"]
    assert (history[0]["version"], history[0]["who"]) == (version, "a test from 127.0.0.1")
    assert "turnstile_connections_open" in await trio.to_thread.run_sync(client.text, "/metrics")


class Counting:
    """A server that counts its connections, and answers each up to `answers` times before it closes it."""

    def __init__(self, answers: int = 1_000) -> None:
        self.accepted = 0
        self.requests: list[bytes] = []
        self.answers = answers
        self._server = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._server.getsockname()[1]}"
        self._thread = threading.Thread(target=self._accept, daemon=True)
        self._thread.start()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                connection, _ = self._server.accept()
                self.accepted += 1
                threading.Thread(target=self._serve, args=(connection, self.answers), daemon=True).start()

    def _serve(self, connection: socket.socket, answers: int) -> None:
        with connection, suppress(OSError):
            while request := connection.recv(65536):
                self.requests.append(request.split(b"\r\n", 1)[0])
                if not answers:
                    return
                answers -= 1
                connection.sendall(b"HTTP/1.1 200 OK\r\nx-turnstile: admin\r\ncontent-length: 2\r\n\r\n{}")

    def close(self) -> None:
        self._server.shutdown(socket.SHUT_RDWR)
        self._server.close()
        self._thread.join()


@pytest.fixture
def counting():
    opened = []

    def start(answers: int = 1_000) -> Counting:
        opened.append(Counting(answers))
        return opened[-1]

    yield start
    for server in opened:
        server.close()


def test_calls_share_a_connection_and_its_end_is_closed(counting):
    server = counting()
    client = AdminClient(server.url)
    for _ in range(100):
        client.get("/v1/shards")
        client.post("/v1/reset")
    assert server.accepted == 1
    with client:
        client.get("/v1/shards")
    client.get("/v1/shards")
    assert server.accepted == 2
    client.close()


def test_a_connection_that_the_other_side_has_closed_is_not_used_for_a_change(counting):
    server = counting()
    client = AdminClient(server.url)
    client.get("/v1/shards")
    client._kept[0].connection.sock.shutdown(socket.SHUT_WR)  # the server closes its side, too
    assert select.select([client._kept[0].connection.sock], [], [], 10)[0]
    assert client.put("/v1/quotas", {"alter": []}) == {}
    assert server.accepted == 2
    client.close()


def test_a_question_is_asked_again_when_its_kept_connection_ends_and_a_change_is_not(counting):
    server = counting(answers=1)
    client = AdminClient(server.url)
    client.get("/v1/shards")
    assert client.get("/v1/shards") == {}
    server.requests.clear()
    with pytest.raises(AdminUnreachable, match="the change may be in force, or not"):
        client.post("/v1/reset")
    assert server.requests == [b"POST /v1/reset HTTP/1.1"]
    client.close()


def test_threads_share_a_client(counting):
    server = counting()
    client = AdminClient(server.url)
    with ThreadPoolExecutor(8) as threads:
        assert list(threads.map(client.get, ["/v1/shards"] * 400)) == [{}] * 400
    before = server.accepted
    for _ in range(10):
        client.get("/v1/shards")
    assert server.accepted == before, "one is kept"
    client.close()


def test_a_fork_connects_for_itself_and_the_program_keeps_its_connection(counting):
    server = counting()
    client = AdminClient(server.url)
    client.get("/v1/shards")
    pid = os.fork()
    if not pid:
        try:
            told = client.get("/v1/shards") == {} and len(client._kept) == 1
            os._exit(0 if told else 1)
        finally:
            os._exit(2)
    assert os.waitpid(pid, 0)[1] == 0
    client.get("/v1/shards")
    assert server.accepted == 2
    client.close()


def test_a_client_that_is_dropped_closes_its_connection(counting, recwarn):
    client = AdminClient(counting().url)
    client.get("/v1/shards")
    kept = client._kept[0].connection.sock
    del client
    gc.collect()
    assert kept.fileno() == -1
    assert not recwarn.list


async def test_a_refusal_has_the_status_and_the_apis_sentence(api):
    client = AdminClient(api.url)
    with pytest.raises(AdminRefused, match="did you mean kafka_connections_max") as caught:
        await trio.to_thread.run_sync(client.put, "/v1/cluster_config", {"upsert": {"kafka_conections_max": 5}})
    assert (caught.value.status, list(caught.value.told)) == (400, ["kafka_conections_max"])
    with pytest.raises(AdminRefused, match="by cannot be 'x'"):
        await trio.to_thread.run_sync(lambda: client.get("/v1/refusals", by="x"))


@pytest.mark.parametrize(
    ("response", "says"),
    [
        (b"", "no cluster answers at http://127.0.0.1"),
        (b"SSH-2.0-OpenSSH_9.9\r\n", "no cluster answers at http://127.0.0.1"),
        (b"HTTP/1.1 200 OK\r\n\r\nhello", "is not an admin API of Turnstile"),
        (b'HTTP/1.1 200 OK\r\ncontent-length: 13\r\n\r\n{"shards": 1}', "is not an admin API of Turnstile"),
        (b"HTTP/1.1 404 Not Found\r\ncontent-length: 2\r\n\r\n{}", "is not an admin API of Turnstile"),
    ],
)
def test_a_server_that_is_no_cluster_is_one_sentence(response, says):
    with answering(response) as url, pytest.raises(AdminUnreachable, match=says):
        AdminClient(url).get("/v1/shards")


@pytest.mark.parametrize("url", ["127.0.0.1:1", "http://127.0.0.1:many", "ftp://127.0.0.1", "http://"])
def test_an_address_where_no_cluster_can_be_is_one_sentence(url):
    with pytest.raises(AdminUnreachable):
        AdminClient(url).get("/v1/shards")


def test_an_error_that_is_not_json_is_told_by_its_status():
    with answering(b"HTTP/1.1 502 Bad Gateway\r\n\r\n<html>") as url:
        with pytest.raises(AdminRefused, match="answered with 502") as caught:
            AdminClient(url).get("/v1/shards")
        assert caught.value.told == "<html>"


def test_nothing_of_http_is_imported_before_a_call():
    program = "import sys, turnstile.admin_client; print({'http.client', 'ssl', 'email'} & set(sys.modules))"
    assert subprocess.run([sys.executable, "-c", program], capture_output=True, text=True).stdout == "set()\n"
