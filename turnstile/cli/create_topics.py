"""Topics created over a listener, as any client of Kafka does it: Metadata, and CreateTopics to a broker of that cluster.

not_as_told   Clients go where the listener's clients are told to connect, which may be reachable from elsewhere alone: a mapped
    port, another network. This asks where the listener is bound, and only then where clients are told to.
one_cluster   A listener may be bound in another container, and another cluster have its port here. So a broker is asked for the
    id of its cluster first.
"""

from __future__ import annotations

import socket
import struct
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from broker.serve.call import Call
from broker.wire import apis, wire
from broker.wire.codec import Message
from broker.wire.responses import CreateTopicsTypes, MetadataTypes
from turnstile.admin_client import AdminClient
from turnstile.cli.cluster_command import same_cluster
from turnstile.cli.output import CommandFailed

_CONNECT_WITHIN_S = 3.0
_WITHIN_S = 15.0
_METADATA_VERSION = 12
_CREATE_VERSION = 7
_CREATE_TOPICS = next(key for key, api in apis.APIS.items() if api.name == "create_topics")
_FOR_CLIENTS_WITH_MORE = ("sasl", "tls", "proxy=")
_NONE_IS_OPEN = (
    "every listener of this cluster asks for a login, TLS or a proxy's header: create the topic with a client that has them, "
    "such as kafka-topics.sh, or start the cluster with --topic"
)


def create_topics(cluster: AdminClient, topics: Mapping[str, int], configs: Mapping[str, str]) -> dict[str, str]:
    """The reason for each topic that was refused, by name. `topics`: partitions by name. Raises CommandFailed."""
    about = cluster.get("/v1/cluster")
    tried = []
    for address in _addresses(about["listeners"], cluster.get("/v1/advertise")["advertised"]):
        tried.append(address)
        try:
            with _connected(address) as sock:
                if _cluster_id(sock) == about["cluster_id"]:
                    return _create(sock, topics, configs)
        except (OSError, wire.BadFrame):
            continue
    raise CommandFailed(
        f"no broker of this cluster answered at {', '.join(tried)}: `{same_cluster('explain ip=127.0.0.1')}` shows which limits "
        f"hold for connections from here, `{same_cluster('advertise --list')}` where clients connect"
    )


def _addresses(listeners: Sequence[Mapping[str, Any]], advertised: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """The addresses of listeners without SASL, TLS and proxies, then those that are advertised for them; each once."""
    is_open = [
        each for each in listeners if not any(option.startswith(_FOR_CLIENTS_WITH_MORE) for option in each["options"])
    ]
    if not is_open:
        raise CommandFailed(_NONE_IS_OPEN)
    names = {each["name"] for each in is_open}
    of_clients = [each["address"] for each in advertised if each["listener"] in names and ":" in each["address"]]
    yield from dict.fromkeys([*(each["address"] for each in is_open), *of_clients])


def _connected(address: str) -> socket.socket:
    host, _, port = address.rpartition(":")
    sock = socket.create_connection((host.strip("[]"), int(port)), timeout=_CONNECT_WITHIN_S)
    sock.settimeout(_WITHIN_S)
    return sock


def _cluster_id(sock: socket.socket) -> str | None:
    request = wire.request_types(apis.METADATA, _METADATA_VERSION).top(
        topics=(),
        allow_auto_topic_creation=False,
        include_topic_authorized_operations=False,
    )
    response: MetadataTypes.MetadataResponse = _ask(sock, Call(apis.METADATA, _METADATA_VERSION), request)
    return response.cluster_id


def _create(sock: socket.socket, topics: Mapping[str, int], configs: Mapping[str, str]) -> dict[str, str]:
    types = wire.request_types(_CREATE_TOPICS, _CREATE_VERSION)
    wanted = [
        types.CreatableTopic(
            name=name,
            num_partitions=partitions,
            replication_factor=-1,
            assignments=(),
            configs=[types.CreatableTopicConfig(name=key, value=value) for key, value in configs.items()],
        )
        for name, partitions in topics.items()
    ]
    call = Call(_CREATE_TOPICS, _CREATE_VERSION)
    request = types.top(topics=wanted, timeout=int(_WITHIN_S * 1000), validate_only=False)
    response: CreateTopicsTypes.CreateTopicsResponse = _ask(sock, call, request)
    return {each.name: each.error_message or f"error {each.error_code}" for each in response.topics if each.error_code}


def _ask(sock: socket.socket, call: Call, request: Message) -> Any:
    """The response to one request. Raises OSError, BadFrame."""
    sock.sendall(wire.encode_request(call, request, "turnstile"))
    (length,) = struct.unpack(">i", _exactly(sock, 4))
    return wire.parse_response(_exactly(sock, length), call.api_key, call.api_version).body


def _exactly(sock: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size:
        more = sock.recv(size - len(data))
        if not more:
            raise ConnectionResetError("the broker closed the connection")
        data += more
    return data
