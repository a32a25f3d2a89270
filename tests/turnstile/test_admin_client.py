"""The client of the admin API: what it returns, and the one sentence of each way to fail."""

import socket
import subprocess
import sys
import threading
from contextlib import contextmanager

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


async def test_within_with_all_calls_share_a_connection(api):
    def peers():
        with AdminClient(api.url) as client:
            client.get("/v1/shards")
            first = client._kept.sock.getsockname()
            client.get("/v1/shards")
            return first, client._kept.sock.getsockname()

    first, second = await trio.to_thread.run_sync(peers)
    assert first == second


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
        (b"HTTP/1.1 200 OK\r\n\r\nhello", "is no admin API of Turnstile"),
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
