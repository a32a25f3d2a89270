"""`turnstile top` in a terminal: its keys, and a cluster that goes away and comes back."""

import json
import os
import pty
import select
import socket
import subprocess
import sys
import termios
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
import trio
from live_view import LIVE

PROGRAM = "from turnstile.cli.main import main; main()"


class Terminal:
    """`turnstile top` on a terminal of its own, which the test types on and reads."""

    def __init__(self, url: str) -> None:
        self.keyboard, self.screen = pty.openpty()
        screen = self.screen  # stays open here: a terminal without any other end can't be read to its last line
        self.before = termios.tcgetattr(self.keyboard)
        environment = {**os.environ, "TURNSTILE_ADMIN": url, "COLUMNS": "120", "LINES": "60", "TERM": "xterm"}
        command = [sys.executable, "-c", PROGRAM, "top", "--interval", "0.2"]
        # A session with this terminal: Ctrl-C on it is SIGINT for the command.
        self.process = subprocess.Popen(
            ["setsid", "--ctty", "--wait", *command], stdin=screen, stdout=screen, stderr=screen, env=environment
        )
        self.seen = b""
        self.readable = select.poll()
        self.readable.register(self.keyboard, select.POLLIN)

    def read_until(self, text: str) -> None:
        while text.encode() not in self.seen:
            assert self.readable.poll(15_000), f"{text!r} is not in {self.seen[-2000:]!r}"
            self.seen += os.read(self.keyboard, 65536)

    def type(self, keys: bytes) -> int:
        """Types, and returns the exit code of the command."""
        os.write(self.keyboard, keys)
        while self.process.poll() is None:  # a terminal that is not read fills up
            if self.readable.poll(50):
                self.seen += os.read(self.keyboard, 65536)
        while self.readable.poll(0):
            self.seen += os.read(self.keyboard, 65536)
        return self.process.returncode

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.terminate()
        self.process.wait()
        os.close(self.keyboard)
        os.close(self.screen)


@pytest.fixture
async def terminal(api):
    opened = Terminal(api.url)
    yield opened
    await trio.to_thread.run_sync(opened.close)


@pytest.mark.parametrize("key", [b"q", b"Q", b"\x03"])
async def test_q_and_ctrl_c_end_it_and_leave_the_terminal_as_it_was(terminal, key):
    await trio.to_thread.run_sync(terminal.read_until, "shards up")
    assert await trio.to_thread.run_sync(terminal.type, key) == 0
    assert b"Traceback" not in terminal.seen
    assert termios.tcgetattr(terminal.keyboard)[3] == terminal.before[3]


async def test_i_shows_how_shards_share_the_limits_and_i_again_does_not(terminal):
    await trio.to_thread.run_sync(terminal.read_until, "i: internals")
    assert b"tokens in use" not in terminal.seen
    os.write(terminal.keyboard, b"i")
    await trio.to_thread.run_sync(terminal.read_until, "tokens in use")
    os.write(terminal.keyboard, b"i")
    terminal.seen = b""
    await trio.to_thread.run_sync(terminal.read_until, "limits and their use")
    assert await trio.to_thread.run_sync(terminal.type, b"q") == 0


async def test_other_keys_do_not_end_it_and_are_not_left_for_the_shell(terminal):
    await trio.to_thread.run_sync(terminal.read_until, "shards up")
    os.write(terminal.keyboard, b"zzz\n")
    terminal.seen = b""
    await trio.to_thread.run_sync(terminal.read_until, "shards up")
    assert terminal.process.poll() is None
    await trio.to_thread.run_sync(terminal.type, b"q")
    assert b"zzz" not in terminal.seen


def test_a_cluster_that_restarts_is_waited_for():
    with answering() as server:
        port = server.server_port
        terminal = Terminal(f"http://127.0.0.1:{port}")
        try:
            terminal.read_until("shards up")
            server.shutdown()
            server.server_close()
            terminal.read_until("no answer, trying again")
            terminal.seen = b""
            with answering(port):
                terminal.read_until("shards up")
                assert terminal.type(b"q") == 0
        finally:
            terminal.close()


def test_no_cluster_at_all_is_one_sentence():
    with socket.create_server(("127.0.0.1", 0)) as gone:
        port = gone.getsockname()[1]
    terminal = Terminal(f"http://127.0.0.1:{port}")
    try:
        assert terminal.type(b"") == 1
        assert b"no cluster answers" in terminal.seen and b"Traceback" not in terminal.seen
    finally:
        terminal.close()


@contextmanager
def answering(port=0):
    """An admin API that knows /v1/live alone."""

    class Answer(BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(200)
            self.send_header("x-turnstile", "admin")
            self.end_headers()
            self.wfile.write(json.dumps(LIVE).encode())

        def log_message(self, *_):
            pass

    with ThreadingHTTPServer(("127.0.0.1", port), Answer) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()
