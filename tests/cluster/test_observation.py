"""While `turnstile.observe` is true, requests are journaled, and what arrives on a muted connection, which nobody reads."""

import pytest
from harness import until
from wired import wired

import turnstile
from broker.journal.reader import events
from turnstile.verdict.tail import Tail


@pytest.fixture(scope="module")
def cluster():
    with turnstile.Cluster(shards=1) as cluster:
        yield cluster


def test_a_request_that_is_sent_too_early_is_seen_and_served_when_it_is_time(cluster):
    tail = Tail(cluster.data_dir / "journal")
    tail.start()
    cluster.set({"turnstile.observe": True})
    cluster.fault("throttle", throttle_ms=300, once=True)
    with wired(cluster.bootstrap, "app") as client:
        client.send("api_versions", 1)
        client.answer("api_versions", 1)
        client.send("metadata", 9, topics=())
        client.send("api_versions", 1)
        client.answer("metadata", 9)
        client.answer("api_versions", 1)
    seen = until(lambda: tail.events if [e.api for e in tail.events if e.kind == "request"][2:] else None)
    tail.stop()
    requests = [event for event in seen if event.kind == "request"]
    early = [event for event in seen if event.kind == "early"]
    assert [(e.api, e.throttle_ms, e.client_id) for e in requests[:2]] == [
        ("ApiVersions", 300, "app"),
        ("Metadata", 0, "app"),
    ]
    assert early and early[0].conn == requests[0].conn and 0 < early[0].took_ms < 300
    assert sum(event.size for event in early) == requests[1].size + requests[2].size
    assert requests[1].at_ns - requests[0].at_ns >= 290_000_000, "it was not read before"
    cluster.set({"turnstile.observe": None})
    rows = [row for row in events(cluster.data_dir / "journal") if row["broker"] == 0]
    assert [row["seq"] for row in rows] == sorted(row["seq"] for row in rows), "or the audit takes it for tampered with"


def test_otherwise_no_request_is_journaled(cluster):
    tail = Tail(cluster.data_dir / "journal")
    tail.start()
    with wired(cluster.bootstrap, "app") as client:
        client.ask("api_versions", 1)
    until(lambda: any(event.kind == "closed" for event in tail.events))
    tail.stop()
    assert not any(event.kind == "request" for event in tail.events)
