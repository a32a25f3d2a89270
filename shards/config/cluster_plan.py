"""The processes and listeners of a cluster, decided once by the supervisor and inherited by every process it forks."""

import socket
import uuid
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, NamedTuple, NotRequired, TypedDict


class ListenerSpec(NamedTuple):
    """A listener as asked for: `name`, and where broker 0 binds it. Broker b binds `port + b`, or any port when it is 0."""

    name: str
    host: str
    port: int
    options: tuple[str, ...] = ()


class ListenerEndpoint(NamedTuple):
    """The address at which one broker's listener is bound. `port`: the bound port, never 0."""

    broker: int
    listener: str
    host: str
    port: int
    options: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"{f'[{self.host}]' if ':' in self.host else self.host}:{self.port}"


DEFAULT_ADMIN = ("127.0.0.1", 9644)
"""The address of the admin API that commands ask unless they are told another."""


class ListenerRow(TypedDict):
    """A listener of one broker."""

    broker: int
    name: str
    address: Annotated[str, "host:port that it is bound to."]
    options: list[str]


class ClusterAbout(TypedDict):
    """The facts that the admin API tells of the cluster as a whole."""

    cluster_id: NotRequired[str]
    data_dir: NotRequired[str]
    brokers: NotRequired[int]
    shards: NotRequired[Annotated[int, "Of each broker."]]
    listeners: NotRequired[list[ListenerRow]]


@dataclass(eq=False, repr=False)
class ClusterPlan:
    """The cluster: its size, its data directory, and the sockets that outlive every process but the supervisor.

    `static` are the settings of the command line, keyed as setting_changes.static_settings makes them.
    """

    brokers: int
    shards: int
    data_dir: Path
    cluster_id: str
    scram_secret: bytes  # the key that makes the salts of unknown users; the same on every shard
    token_secret: bytes  # the key of the HMACs of delegation tokens (KIP-48); empty: delegation tokens are off
    endpoints: list[ListenerEndpoint]
    admin: tuple[str, int]
    admin_token: str | None = None
    name: str | None = None  # commands find the cluster by it
    run: str = field(default_factory=lambda: uuid.uuid4().hex)  # an id of this `turnstile up`
    static: dict[str, str] = field(default_factory=dict)
    topics: list[tuple[str, int]] = field(default_factory=list)
    quotas: list[tuple[dict[str, str | None], dict[str, float]]] = field(default_factory=list)
    users: dict[str, str] = field(default_factory=dict)
    observed: list[tuple[str, str]] = field(default_factory=list)  # limits that are observed, not enforced
    override_stored: bool = False  # the command line overrules live changes of earlier runs
    journal_parts: bool = True  # Parquet parts are made of the journal's spool
    # Open in the supervisor, and in each child until the child closes those of the others.
    client_sockets: dict[tuple[int, int], list[tuple[ListenerEndpoint, socket.socket]]] = field(default_factory=dict)
    mesh_sockets: dict[tuple[int, int], socket.socket] = field(default_factory=dict)
    admin_socket: socket.socket | None = None

    @property
    def run_dir(self) -> Path:
        return self.data_dir / "run"

    @property
    def journal_dir(self) -> Path:
        return self.data_dir / "journal"

    @property
    def admin_url(self) -> str:
        host, port = self.admin
        return f"http://{f'[{host}]' if ':' in host else host}:{port}"

    @property
    def at_admin(self) -> str:
        """The option by which a command finds this cluster, after a space; empty where a command needs none."""
        if self.name is not None:
            return f" --name {self.name}"
        return "" if self.admin == DEFAULT_ADMIN else f" --admin {self.admin_url}"

    def about(self) -> ClusterAbout:
        """The facts that the admin API tells of the cluster as a whole."""
        return {
            "cluster_id": self.cluster_id,
            "data_dir": str(self.data_dir),
            "brokers": self.brokers,
            "shards": self.shards,
            "listeners": [
                {"broker": each.broker, "name": each.listener, "address": str(each), "options": list(each.options)}
                for each in self.endpoints
            ],
        }

    def members(self) -> list[tuple[int, int]]:
        """(broker, shard) of every shard process."""
        return [(broker, shard) for broker in range(self.brokers) for shard in range(self.shards)]


COORDINATOR_MEMBER = (-1, -1)
