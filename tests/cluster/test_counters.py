"""What a cluster says of its own traffic, beside what its clients saw."""

from contextlib import ExitStack

from batches import batch
from harness import Cluster, admitted, connect, running, until
from request_bytes import answer, produce, produced


def counted(cluster: Cluster) -> list[float]:
    """Requests, their bytes and those of answers: counted at the end of a pass, when clients have their answers."""
    bytes_total = [cluster.metric("turnstile_bytes_total", direction=way) for way in ("in", "out")]
    return [cluster.metric("turnstile_requests_total"), *bytes_total]


def test_requests_and_their_bytes_are_counted_exactly(tmp_path):
    with running(tmp_path / "d", "--topic", "t:4") as cluster, ExitStack() as stack:
        socks = [stack.enter_context(connect(cluster.address)) for _ in range(8)]
        sent = received = 0
        for partition in range(4):
            frame = produce("counted", "t", partition, batch(b"x" * 1000))
            for sock in socks:
                sock.sendall(frame)
                sent += len(frame)
            for sock in socks:
                response = answer(sock)
                received += 4 + len(response)
                assert produced(response).error == 0
        unanswered = produce("counted", "t", 0, batch(b"y"), acks=0)
        socks[0].sendall(unanswered)
        sent += len(unanswered)
        until(lambda: counted(cluster) == [33, sent, received], what="counted, also the request without an answer")
        live = cluster.get("/v1/live")["totals"]
        assert (live["requests"], live["bytes_in"], live["bytes_out"]) == (33, sent, received)
        drawn = cluster.told("top", "--once")
        assert drawn["totals"]["requests"] == 33
        assert "requests" in cluster.turnstile("top", "--once")


def test_grants_and_journal_events_are_counted(tmp_path):
    with running(tmp_path / "d", "--set", "kafka_connections_max=1000") as cluster, ExitStack() as stack:
        # 40 ports: some of these connections are not at their pool's home
        assert all(admitted(stack.enter_context(connect(cluster.address))) for _ in range(40))
        until(lambda: cluster.metric("turnstile_grants_total") > 0, what="granted")
        until(lambda: cluster.metric("turnstile_events_total") >= 40, what="an admission each")


def test_every_metric_says_what_it_is(tmp_path):
    """Also the gauges of a client and an address under quotas, which only shards report."""
    client = {"producer_byte_rate": 1e9, "consumer_byte_rate": 1e9, "request_percentage": 1e4}
    quotas = [
        {"entity": {"client-id": "c"}, "set": {**client, "controller_mutation_rate": 1e6}},
        {"entity": {"ip": "127.0.0.1"}, "set": {"connection_creation_rate": 1000}},
    ]
    with running(tmp_path / "d", "--topic", "t:1", shards=1) as cluster, ExitStack() as stack:
        cluster.put("/v1/quotas", {"alter": quotas})
        sock = stack.enter_context(connect(cluster.address))
        sock.sendall(produce("c", "t", 0, batch(b"x")))
        assert produced(answer(sock)).error == 0
        helps = {family.name: family.documentation for family in cluster.metrics()}
    assert {"kafka_server_quota_byte_rate", "kafka_server_request_exempt_request_time"} <= helps.keys()
    nothing_more = [name for name, told in helps.items() if told.strip(".").lower() == name.replace("_", " ")]
    assert nothing_more == [] and not any("reported by" in told.lower() for told in helps.values())
