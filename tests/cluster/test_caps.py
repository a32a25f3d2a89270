"""The caps of the Redpanda RFC on real processes: exact, every time, also while they change."""

import pytest
from harness import admitted, connect, running, until

IP = "127.1.0.1"


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    with running(tmp_path_factory.mktemp("caps") / "data", shards=4) as cluster:
        yield cluster


@pytest.fixture(autouse=True)
def no_limits(cluster):
    yield
    remove = ["kafka_connections_max", "kafka_connections_max_per_ip", "kafka_connections_max_overrides"]
    cluster.put("/v1/cluster_config", {"upsert": {}, "remove": remove})


class Held:
    """Connections held open, and how they fared."""

    def __init__(self, cluster):
        self._cluster = cluster
        self.open = []

    def more(self, count, ip=IP):
        """Opens `count` connections at once and returns how many got in; those stay open."""
        fresh = [connect(self._cluster.address, ip) for _ in range(count)]
        let_in = 0
        for sock in fresh:
            if admitted(sock):
                self.open.append(sock)
                let_in += 1
            else:
                sock.close()
        return let_in

    def fewer(self, count):
        """Closes `count` of them, and waits until the cluster has seen that."""
        for _ in range(count):
            self.open.pop().close()
        self.settle()

    def settle(self):
        until(lambda: self._cluster_open() == len(self.open), what=f"{len(self.open)} open connections")

    def _cluster_open(self):
        return sum(each["connections"] for each in self._cluster.get("/v1/shards")["shards"])

    def alive(self):
        return sum(admitted(sock) for sock in self.open)


@pytest.fixture
def held(cluster):
    held = Held(cluster)
    yield held
    held.fewer(len(held.open))


def test_exactly_the_cap_gets_in_twenty_times_in_a_row(cluster, held):
    cluster.set("kafka_connections_max_per_ip", 50)
    for _ in range(20):
        assert held.more(200) == 50
        held.fewer(50)


def test_one_address_at_its_cap_does_not_keep_out_another(cluster, held):
    cluster.set("kafka_connections_max_per_ip", 5)
    assert held.more(20, "127.1.0.1") == 5
    assert held.more(20, "127.1.0.2") == 5


def test_an_override_of_zero_lets_nobody_in(cluster, held):
    cluster.put(
        "/v1/cluster_config",
        {"upsert": {"kafka_connections_max_per_ip": 50, "kafka_connections_max_overrides": [f"{IP}:0"]}, "remove": []},
    )
    assert held.more(20) == 0
    assert held.more(20, "127.1.0.2") == 20


def test_a_cap_of_zero_with_an_override_is_an_allow_list(cluster, held):
    cluster.put(
        "/v1/cluster_config",
        {"upsert": {"kafka_connections_max_per_ip": 0, "kafka_connections_max_overrides": [f"{IP}:7"]}, "remove": []},
    )
    assert held.more(20) == 7
    assert held.more(20, "127.1.0.2") == 0


def test_an_override_may_be_a_network(cluster, held):
    cluster.put(
        "/v1/cluster_config",
        {"upsert": {"kafka_connections_max_overrides": ["127.1.0.0/24:3", f"{IP}:6"]}, "remove": []},
    )
    assert held.more(10, IP) == 6
    assert held.more(10, "127.1.0.9") == 3
    assert held.more(10, "127.1.1.9") == 10


def test_a_lower_cap_closes_nobody_and_lets_nobody_in_until_enough_have_left(cluster, held):
    cluster.set("kafka_connections_max_per_ip", 50)
    assert held.more(50) == 50
    cluster.set("kafka_connections_max_per_ip", 10)
    assert held.alive() == 50
    assert held.more(5) == 0
    held.fewer(40)
    assert held.more(5) == 0
    held.fewer(3)
    assert held.more(5) == 3


def test_connections_are_counted_while_no_limit_is_set(cluster, held):
    cluster.set("kafka_connections_max_per_ip", 30)
    assert held.more(20) == 20
    cluster.unset("kafka_connections_max_per_ip")
    assert held.more(20) == 20
    cluster.set("kafka_connections_max_per_ip", 45)
    assert held.more(20) == 5


def test_the_broker_cap_counts_all_addresses_together(cluster, held):
    cluster.set("kafka_connections_max", 40)
    got_in = sum(held.more(10, f"127.1.2.{n}") for n in range(1, 9))
    assert got_in == 40

    def refused() -> int:
        by_reason = {each["reason"]: each["count"] for each in cluster.get("/v1/refusals?by=reason")["refusals"]}
        return by_reason.get("broker_cap", 0)

    until(lambda: refused() >= 40, what="40 refusals")  # each is counted just after its socket is closed


def test_refused_before_anything_is_read_or_written(cluster, held):
    cluster.put("/v1/cluster_config", {"upsert": {"kafka_connections_max_overrides": [f"{IP}:0"]}, "remove": []})
    with connect(cluster.address, IP) as silent:
        assert silent.recv(1) == b""
