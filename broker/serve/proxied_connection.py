"""A connection whose client was announced by a proxy: its address is the client's, its other end the proxy."""

import json
from functools import lru_cache
from typing import NamedTuple

from broker.serve.channel import ChannelServer
from broker.serve.connection import Connection
from shards.config.advertised import Address
from shards.settings.addresses import normalise_ip


class Via(NamedTuple):
    """The way of a client to its listener: the address of the `proxy`, the `endpoint` of a cloud (accept/endpoint_ids.py), the
    address that the client `reached`, and its own (`client`), as the header has it."""

    proxy: str
    endpoint: str | None
    reached: Address
    client: str

    @property
    def detail(self) -> str:
        """The proxy and endpoint, for the journal. The proxy's port is left out: it would make one text for each connection."""
        return _detail(self.proxy, self.endpoint)


@lru_cache(maxsize=256)
def _detail(proxy: str, endpoint: str | None) -> str:
    return json.dumps({"proxy": proxy} if endpoint is None else {"proxy": proxy, "endpoint": endpoint})


class ProxiedConnection(Connection):
    """A connection that came `via` a proxy."""

    __slots__ = ("via",)

    def __init__(
        self,
        serving: ChannelServer,
        fd: int,
        family: int,
        number: int,
        ip: str,
        port: int,
        *,
        pools: tuple[str, ...],
        via: Via,
    ) -> None:
        self.via = via
        super().__init__(serving, fd, family, number, ip, port, pools=pools)

    @property
    def peer(self) -> str:
        return normalise_ip(self.via.client)

    @property
    def reached(self) -> str:
        """The address at which the client reached the proxy."""
        return self.via.reached.host

    @property
    def reached_port(self) -> int | None:
        return self.via.reached.port
