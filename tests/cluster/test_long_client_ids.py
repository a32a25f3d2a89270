"""Client ids of 32 KB under a default quota: what each leaves behind is a few hundred bytes, in /metrics, too."""

from batches import batch
from harness import connect, running, until
from request_bytes import answer, produce, produced

CLIENTS = 60
ID_BYTES = 32_000
LONGEST_LABEL = 200
"""Of a client id, in characters: docs/quotas.md."""


def test_long_client_ids_are_told_by_digests_and_metered_apart(tmp_path):
    names = [f"{number}-".ljust(ID_BYTES, "x") for number in range(CLIENTS)]
    with running(tmp_path / "d", "--topic", "t:2") as cluster, connect(cluster.address) as sock:
        cluster.put("/v1/quotas", {"alter": [{"entity": {"client-id": None}, "set": {"producer_byte_rate": 5000}}]})
        for name in names:
            sock.sendall(produce(name, "t", 0, batch(b"x" * 100)))
            assert produced(answer(sock)) == (0, 0), "each has a meter of its own"
        sock.sendall(produce(names[0], "t", 0, batch(b"x" * 100)))
        assert produced(answer(sock)).throttle_ms > 0, "a name that comes again meets what it recorded"

        def labels():
            samples = (sample for family in cluster.metrics() for sample in family.samples)
            told = {value for each in samples for value in each.labels.values() if "-xxx" in value}
            return told if len(told) >= CLIENTS else None

        told = until(labels, what="a row of /metrics for each client")
        assert len(told) == CLIENTS
        assert max(map(len, told)) <= LONGEST_LABEL
        assert len(cluster.client.text("/metrics")) < 1_000_000
