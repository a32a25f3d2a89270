"""Connections of clients that log in by SASL/PLAIN, from several addresses."""

from __future__ import annotations

import re

from harness import Cluster, connect, until
from users import is_served
from wired import Wired

from broker.wire import codes

TOO_MANY = r"\[[0-9a-f-]{36}\]: Too many connects"
ANY_IP = [f"127.1.0.{n}" for n in range(1, 9)]


def open_here(cluster: Cluster) -> int:
    """Connections that a cluster has open."""
    return sum(each["connections"] for each in cluster.get("/v1/shards")["shards"])


class Logins:
    """Connections that log in, and stay open if they may."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self.open: list[Wired] = []

    def more(self, count: int, user: str = "alice", listener: str = "SASL") -> int:
        """`count` connections of a user from several addresses, all of which log in at once; how many were let in."""
        fresh = []
        for n in range(count):
            sock = connect(self._cluster.listeners[listener][0], ANY_IP[n % len(ANY_IP)])
            fresh.append(Wired(sock, "app"))
            assert fresh[-1].ask("sasl_handshake", 1, mechanism="PLAIN").error_code == codes.NONE
        token = f"\0{user}\0{user}-secret".encode()
        for each in fresh:
            each.send("sasl_authenticate", 1, auth_bytes=token)
        let_in = 0
        for each in fresh:
            answer = each.answer("sasl_authenticate", 1)
            if answer.error_code == codes.NONE:
                self.open.append(each)
                let_in += 1
            else:
                assert answer.error_code == codes.SASL_AUTHENTICATION_FAILED
                assert re.fullmatch(TOO_MANY, answer.error_message)
                assert not is_served(each)
                each.sock.close()
        return let_in

    def fewer(self, count: int) -> None:
        for _ in range(count):
            self.open.pop().sock.close()
        until(lambda: open_here(self._cluster) == len(self.open), what=f"{count} fewer connections, and none refused")

    def close(self) -> None:
        for each in self.open:
            each.sock.close()
