"""A broker as small as can be, for the tests of the load driver; a process of its own, as the driver forks.

What it does with a connection is decided by the address it comes from: 127.1.0.x is admitted, 127.1.1.x refused,
127.1.2.x admitted and then cut off, 127.1.3.x never answered. It serves the counters over HTTP, and with "miscount" as
argument counts one admitted connection too many. Prints "PORT ADMIN_PORT"; ends with its standard input.
"""

from __future__ import annotations

import json
import selectors
import socket
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

COUNTS = {"admitted": 0, "refused": 0}
ANSWER = b"\0\0\0\4\0\0\0\1"


class Admin(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        text = json.dumps({"shards": [{"broker": 0, "shard": 0, "epoch": 1}]})
        if self.path == "/metrics":
            extra = int("miscount" in sys.argv and COUNTS["admitted"] > 0)
            text = f'turnstile_connections_admitted_total{{shard="0"}} {COUNTS["admitted"] + extra}\n'
            text += f'turnstile_connections_refused_total{{reason="ip_cap",shard="0"}} {COUNTS["refused"]}\n'
        self.send_response(200)
        self.send_header("x-turnstile", "admin")
        self.end_headers()
        self.wfile.write(text.encode())

    def log_message(self, *_: object) -> None:
        pass


def serve(listener: socket.socket) -> None:
    poller = selectors.DefaultSelector()
    poller.register(listener, selectors.EVENT_READ)
    while True:
        for key, _ in poller.select():
            sock = key.fileobj
            if sock is listener:
                accepted, (ip, _) = listener.accept()
                kind = ip.split(".")[2]
                if kind == "1":
                    COUNTS["refused"] += 1
                    accepted.close()
                else:
                    COUNTS["admitted"] += kind != "3"
                    poller.register(accepted, selectors.EVENT_READ, kind)
                continue
            try:
                asked = sock.recv(4096)
                if asked and key.data != "3":
                    sock.send(ANSWER)
            except ConnectionError:
                asked = b""
            if not asked or key.data == "2":
                poller.unregister(sock)
                sock.close()


def main() -> None:
    listener = socket.create_server(("127.0.0.1", 0), backlog=1000)
    admin = ThreadingHTTPServer(("127.0.0.1", 0), Admin)
    for work in (lambda: serve(listener), admin.serve_forever):
        threading.Thread(target=work, daemon=True).start()
    print(listener.getsockname()[1], admin.server_port, flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    main()
