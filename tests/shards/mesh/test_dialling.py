"""Links are made when there are descriptors again."""

import errno
import os
import socket

from shards.mesh import dialling


async def test_a_shortage_is_waited_for(tmp_path, monkeypatch, autojump_clock):
    faults = [OSError(number, os.strerror(number)) for number in (errno.EMFILE, errno.ENFILE, errno.ENOMEM)]

    class Failing(socket.socket):
        def __init__(self, *args, **named):
            if faults:
                raise faults.pop()
            super().__init__(*args, **named)

    path = str(tmp_path / "s.sock")
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listening:
        listening.bind(path)
        listening.listen()
        monkeypatch.setattr(dialling.socket, "socket", Failing)
        with await dialling.connected(path) as sock:
            assert sock.getpeername() == path and not faults
