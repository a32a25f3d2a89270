"""A process that has imported what `turnstile up` imports, and forks a cluster for each test that starts one.

The imports are half of what the start of a cluster costs, 0.3 s of processor time, and tests start hundreds. All else is as if
the command had been started: arguments, environment, working directory, streams, signals, the end of the interpreter. Clusters
under another program (prlimit, unshare) or with another environment of Python are started as commands (harness.py).

fork_server_ends_with_its_test  The server reads a socket to the end; the other end is the test's process.
no_zombie_stays  The server waits for what it forks, and writes each wait status to the pipe that came with the request.
"""

from __future__ import annotations

import atexit
import gc
import json
import os
import select
import signal
import socket
import subprocess
import sys
from functools import cache
from threading import Lock
from typing import IO, Any

_MOST_BYTES = 1 << 20
_DESCRIPTORS = 3  # stdout, stderr, and where the wait status goes
_one_request = Lock()


class Forked:
    """What subprocess.Popen is of a command, of one that the server has forked."""

    def __init__(self, pid: int, status: int, stdout: IO[str]) -> None:
        """`status`: the end of a pipe from which the wait status is read."""
        self.pid = pid
        self.stdout = stdout
        self.returncode: int | None = None
        self._status = status

    def poll(self) -> int | None:
        """The exit code, negative where a signal ended the process; None while it runs."""
        return self._await(0)

    def wait(self, timeout: float | None = None) -> int:
        """The exit code, once there is one. Raises subprocess.TimeoutExpired."""
        code = self._await(None if timeout is None else int(timeout * 1000))
        if code is None:
            raise subprocess.TimeoutExpired("turnstile up", timeout or 0.0)
        return code

    def send_signal(self, number: int) -> None:
        """Does nothing once the process has ended."""
        if self.poll() is None:
            os.kill(self.pid, number)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    def _await(self, timeout_ms: int | None) -> int | None:
        if self.returncode is None:
            ended = select.poll()
            ended.register(self._status, select.POLLIN)
            if ended.poll(timeout_ms):
                self.returncode = os.waitstatus_to_exitcode(int(os.read(self._status, 16)))
                os.close(self._status)
        return self.returncode


def fork(arguments: list[str], errors: IO[bytes]) -> Forked:
    """`turnstile up` with these arguments (the program's name first) in a process of its own."""
    out, its_out = os.pipe()
    status, its_status = os.pipe()
    request = {"arguments": arguments, "environment": dict(os.environ), "folder": os.getcwd(), "umask": _umask()}
    try:
        with _one_request:
            server = _server()
            socket.send_fds(server, [json.dumps(request).encode()], [its_out, errors.fileno(), its_status])
            pid = int(server.recv(32))
    finally:
        os.close(its_out)
        os.close(its_status)
    return Forked(pid, status, os.fdopen(out))


@cache
def _server() -> socket.socket:
    """The connection to the server of this process, which is started by the first request."""
    ours, its = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    ours.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _MOST_BYTES)
    with its:
        command = [sys.executable, __file__, str(its.fileno())]
        server = subprocess.Popen(command, pass_fds=[its.fileno()], stdin=subprocess.DEVNULL)
    atexit.register(server.wait)
    atexit.register(ours.close)
    return ours


def _umask() -> int:
    umask = os.umask(0o077)
    os.umask(umask)
    return umask


def _serve(requests: socket.socket) -> None:
    """Forks for each request, until the test's process has ended. Returns in what it has forked, ready to run the command."""
    statuses: dict[int, int] = {}
    wakes, wake = os.pipe()
    os.set_blocking(wake, False)
    signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda number, frame: None)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a Ctrl-C of the tests is for them: they end their clusters
    waiting = select.poll()
    waiting.register(requests, select.POLLIN)
    waiting.register(wakes, select.POLLIN)
    while True:
        ready = {descriptor for descriptor, _ in waiting.poll()}
        if wakes in ready:
            os.read(wakes, 4096)
            _reap(statuses)
        if requests.fileno() in ready:
            message, descriptors, _, _ = socket.recv_fds(requests, _MOST_BYTES, _DESCRIPTORS)
            if not message:
                sys.exit()
            out, errors, status = descriptors
            pid = os.fork()
            if pid == 0:
                signal.set_wakeup_fd(-1)
                for each in (requests.detach(), wakes, wake, status, *statuses.values()):
                    os.close(each)
                _become(json.loads(message), out, errors)
                return
            os.close(out)
            os.close(errors)
            statuses[pid] = status
            requests.send(str(pid).encode())


def _reap(statuses: dict[int, int]) -> None:
    while statuses:
        pid, status = os.waitpid(-1, os.WNOHANG)
        if not pid:
            return
        pipe = statuses.pop(pid)
        os.write(pipe, str(status).encode())
        os.close(pipe)


def _become(request: dict[str, Any], out: int, errors: int) -> None:
    """Gives a forked process the streams, the environment, the folder, the arguments and the signals of its request."""
    for target, source in ((1, out), (2, errors)):
        os.dup2(source, target)
        os.close(source)
    os.environ.clear()
    os.environ.update(request["environment"])
    os.chdir(request["folder"])
    os.umask(request["umask"])
    sys.argv = request["arguments"]
    sys.orig_argv = [sys.executable, *sys.argv]
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)


def _import() -> None:
    """Everything that a cluster imports, in whichever process."""
    from broker.process import children, coordinator_process, launch, shard_process  # noqa: F401
    from turnstile.cli import main, up  # noqa: F401


if __name__ == "__main__":
    from turnstile.entry import main

    _import()
    gc.freeze()
    _serve(socket.socket(fileno=int(sys.argv[1])))
    main()
