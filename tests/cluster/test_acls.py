"""ACLs belong to the configuration: they are in force on every shard when the change is answered, and after any death."""

import os
import signal

from harness import Cluster, admitted, connect, running, until
from wired import Wired, wired

from broker.kafka.security.acl import Operation, PatternType, Permission, ResourceType
from broker.wire import codes

AUTHORIZER = "authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer"
OPTIONS = (
    "--set",
    AUTHORIZER,
    "--topic",
    "open:1",
    "--topic",
    "closed:1",
    "--set",
    "allow.everyone.if.no.acl.found=true",
)


def forbid(connection: Wired, topic: str) -> None:
    types = connection.types("create_acls", 3)
    acl = types.AclCreation(
        resource_type=ResourceType.TOPIC, resource_name=topic, resource_pattern_type=PatternType.LITERAL,
        principal="User:ANONYMOUS", host="*", operation=Operation.ALL, permission_type=Permission.DENY,
    )  # fmt: skip
    (answered,) = connection.ask("create_acls", 3, creations=(acl,)).results
    assert answered.error_code == codes.NONE


def visible(connection: Wired) -> set[str]:
    return {topic.name for topic in connection.ask("metadata", 9, topics=None).topics}


def on_every_shard(cluster: Cluster, connections: int = 20) -> list[set[str]]:
    """What new connections see; the kernel spreads them over the shards."""
    seen = []
    for _ in range(connections):
        with wired(cluster.bootstrap) as connection:
            seen.append(visible(connection))
    return seen


def test_an_acl_holds_on_every_shard_when_it_is_answered_and_after_every_death(tmp_path):
    with running(tmp_path / "d", *OPTIONS, shards=2) as cluster:
        with wired(cluster.bootstrap) as connection:
            assert visible(connection) == {"open", "closed"}
            forbid(connection, "closed")
            assert visible(connection) == {"open"}, "also for a connection that was open before"
        assert on_every_shard(cluster) == [{"open"}] * 20
        pid = cluster.shard_pid(0)
        os.kill(pid, signal.SIGKILL)
        until(lambda: cluster.shard_pid(0) != pid, what="the shard was started again")
        assert on_every_shard(cluster) == [{"open"}] * 20
        os.kill(cluster.get("/v1/cluster")["coordinator_pid"], signal.SIGKILL)
        until(lambda: "acl" in cluster.turnstile("config", "history"), what="the coordinator is back")
        assert on_every_shard(cluster, 5) == [{"open"}] * 5
    with running(tmp_path / "d", *OPTIONS, shards=1) as cluster, connect(cluster.address) as sock:
        assert admitted(sock)
        assert on_every_shard(cluster, 1) == [{"open"}]
