"""`turnstile health`: by the exit code, without importing anything that costs."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from threading import Event, Thread

import pytest
from harness import TURNSTILE, running, until

from turnstile.health import address, unhealthy


def health(**environment: str) -> tuple[int, str]:
    """The exit code of the command without options, and what it says."""
    done = subprocess.run([TURNSTILE, "health"], env={**os.environ, **environment}, capture_output=True, text=True)
    assert done.stderr == ""
    return done.returncode, done.stdout


def test_a_cluster_is_healthy_while_all_of_its_processes_answer(tmp_path: Path) -> None:
    with running(tmp_path / "d", "--set", "turnstile.shard.timeout.ms=60000") as cluster:
        url = cluster.admin
        assert health(TURNSTILE_ADMIN=url) == (0, "healthy\n")
        assert cluster.turnstile("health", "--wait", "5") == "healthy\n"
        pid = cluster.shard_pid(1)
        os.kill(pid, signal.SIGSTOP)
        code, said = until(lambda: (found := health(TURNSTILE_ADMIN=url))[0] and found, what="seen")
        assert code == 1 and "broker 0 shard 1" in said
        assert "shard 1" in cluster.turnstile("health", expect=1)
        os.kill(pid, signal.SIGCONT)
        until(lambda: unhealthy(*address(url)) is None, within_s=20, what="it is healthy again")
        os.kill(cluster.process.pid, signal.SIGSTOP)
        try:
            code, said = health(TURNSTILE_ADMIN=url)
            assert code == 1 and "the supervisor" in said
        finally:
            os.kill(cluster.process.pid, signal.SIGCONT)
    code, said = health(TURNSTILE_ADMIN=url)
    assert code == 1 and said.startswith(f"no cluster answers at {url} (")


def test_it_imports_next_to_nothing() -> None:
    heavy = ("click", "http.client", "json", "asyncio", "trio", "ssl", "subprocess", "broker", "shards")
    program = (
        "import sys; sys.argv[1:] = ['health']\nfrom turnstile.entry import main\n"
        f"try: main()\nexcept SystemExit: print([name for name in {heavy!r} if name in sys.modules])"
    )
    environment = {**os.environ, "TURNSTILE_ADMIN": "127.0.0.1:1"}
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[1:] == ["[]"]


@pytest.mark.parametrize(
    ("url", "variables", "found"),
    [
        (None, {}, ("127.0.0.1", 9644)),
        ("http://[::1]:9000/", {}, ("::1", 9000)),
        ("localhost:9000", {}, ("localhost", 9000)),
        (None, {"TURNSTILE_ADMIN": "http://a:1"}, ("a", 1)),
        (None, {"TURNSTILE_UP_ADMIN_HOST": "0.0.0.0", "TURNSTILE_UP_ADMIN_PORT": "7"}, ("127.0.0.1", 7)),
        (None, {"TURNSTILE_UP_ADMIN_HOST": "10.0.0.1"}, ("10.0.0.1", 9644)),
    ],
)
def test_the_cluster_is_found_where_up_was_told_to_have_it(
    monkeypatch: pytest.MonkeyPatch, url: str | None, variables: dict[str, str], found: tuple[str, int]
) -> None:
    for name in ("TURNSTILE_ADMIN", "TURNSTILE_UP_ADMIN_HOST", "TURNSTILE_UP_ADMIN_PORT"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("turnstile.health.NOTED", "/nowhere")  # an entry point may run beside this test
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert address(url) == found


@pytest.mark.parametrize("url", ["localhost", "http://a", "http://a:b", "a:99999", "foo", "a:²", ":9644", "http://"])
def test_what_is_no_address_is_said(url: str) -> None:
    with pytest.raises(ValueError, match="is not the URL of an admin API"):
        address(url)
    code, said = health(TURNSTILE_ADMIN=url)
    assert code == 1 and said == f"{url} is not the URL of an admin API, such as http://127.0.0.1:9644\n"


def test_a_container_says_where_its_admin_api_is(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("TURNSTILE_ADMIN", "TURNSTILE_UP_ADMIN_HOST", "TURNSTILE_UP_ADMIN_PORT"):
        monkeypatch.delenv(name, raising=False)
    noted = tmp_path / "admin"
    monkeypatch.setattr("turnstile.health.NOTED", str(noted))
    noted.write_text(f"0.0.0.0 9700 {os.getpid()}")
    assert address() == ("127.0.0.1", 9700)
    ended = subprocess.Popen(["true"])
    ended.wait()
    for text in (f"0.0.0.0 9700 {ended.pid}", "nonsense", "a b c"):
        noted.write_text(text)
        assert address() == ("127.0.0.1", 9644), text


def test_an_answer_that_does_not_end_is_given_up_in_time() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def drip() -> None:
            near, _ = listening.accept()
            with near, suppress(OSError):
                while True:
                    near.sendall(b"x")
                    ended.wait(0.05)

        ended = Event()
        thread = Thread(target=drip)
        thread.start()
        said = unhealthy(*listening.getsockname(), within_s=0.3)
        ended.set()
        thread.join()
    assert said is not None and "timed out" in said


def test_another_program_is_not_healthy() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def greet() -> None:
            near, _ = listening.accept()
            with near:
                near.recv(1 << 16)  # or closing would reset the connection
                near.sendall(b"SSH-2.0-any\r\n")

        thread = Thread(target=greet)
        thread.start()
        said = unhealthy(*listening.getsockname())
        thread.join()
    assert said is not None and "SSH-2.0" in said
