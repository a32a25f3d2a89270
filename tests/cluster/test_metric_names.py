"""Each name that a cluster exports is in metric_names.tsv, with its type and where the name comes from, and the other way round."""

import csv
import re
from contextlib import ExitStack
from pathlib import Path

import pytest
from batches import batch
from harness import connect, running
from request_bytes import answer, produce, produced
from users import add_users
from wired import Wired

from broker.wire import codes

_TYPE = re.compile(r"^# TYPE (\S+) (\S+)$", re.MULTILINE)
_SAMPLE = re.compile(r"^([a-z_]+)(?:\{| )", re.MULTILINE)
_LISTED = list(csv.DictReader(Path(__file__).with_name("metric_names.tsv").read_text().splitlines(), delimiter="\t"))
_QUOTAS = [
    {
        "entity": {"client-id": "c"},
        "set": {
            "producer_byte_rate": 1000.0,
            "consumer_byte_rate": 1e9,
            "request_percentage": 1e4,
            "controller_mutation_rate": 1e6,
        },
    },
    {"entity": {"ip": "127.0.0.1"}, "set": {"connection_creation_rate": 1000}},
]


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    """Both pages of a cluster in which a client comes under every kind of quota and is throttled, and a user has a rate."""
    from confluent_kafka.admin import AdminClient, NewTopic

    options = ["--topic", "t:1", "--listener", "PLAINTEXT=127.0.0.1:0", "--listener", "SASL=127.0.0.1:0,sasl"]
    options += [
        "--set",
        "turnstile.max.connection.creation.rate.per.user=1000",
        "--set",
        "turnstile.request.queue=true",
    ]
    with running(tmp_path_factory.mktemp("names") / "d", *options, shards=1) as cluster, ExitStack() as stack:
        add_users(cluster, ["alice"])
        user = Wired(stack.enter_context(connect(cluster.listeners["SASL"][0])), "u")
        assert user.ask("sasl_handshake", 1, mechanism="PLAIN").error_code == codes.NONE
        assert user.ask("sasl_authenticate", 1, auth_bytes=b"\0alice\0alice-secret").error_code == codes.NONE
        cluster.put("/v1/quotas", {"alter": _QUOTAS})
        sock = stack.enter_context(connect(cluster.address))
        sock.sendall(produce("c", "t", 0, batch(b"x" * 20_000)))
        assert produced(answer(sock)).error == 0
        admin = AdminClient({"bootstrap.servers": cluster.bootstrap, "client.id": "c"})
        admin.create_topics([NewTopic("made", 1)])["made"].result(20)
        yield {page: cluster.client.text(page) for page in ("/metrics", "/public_metrics")}


@pytest.mark.parametrize("page", ["/metrics", "/public_metrics"])
def test_names_and_types_are_those_of_the_list(pages, page):
    listed = {row["name"]: row["type"] for row in _LISTED if row["page"] == page}
    assert dict(_TYPE.findall(pages[page])) == listed


@pytest.mark.parametrize("page", ["/metrics", "/public_metrics"])
def test_samples_have_the_names_of_their_families(pages, page):
    sampled = {
        re.sub("^(turnstile_rpc_seconds)_(bucket|count|sum)$", r"\1", name) for name in _SAMPLE.findall(pages[page])
    }
    assert sampled == {row["name"] for row in _LISTED if row["page"] == page}


def test_the_page_about_watching_names_metrics_that_there_are():
    page = (Path(__file__).parents[2] / "docs" / "watching.md").read_text()
    named = set(re.findall(r"\b((?:kafka|turnstile)_[a-z_]+)", page.partition("## Metrics")[2]))
    assert len(named) > 8 and named <= {row["name"] for row in _LISTED}


def test_the_products_own_names_follow_openmetrics():
    for row in _LISTED:
        if row["name"].startswith("turnstile_"):
            assert row["name"].endswith("_total") == (row["type"] == "counter"), row["name"]


def test_redpandas_metrics_page_has_the_name_of_the_rfc(pages):
    assert re.search(
        r'^vectorized_kafka_rpc_connections_rejected\{broker="0",shard="0"\} 0\.0$', pages["/metrics"], re.M
    )
