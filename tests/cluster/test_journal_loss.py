"""Journal events that can't be written are told in every place where people look, and are a gap for the audit."""

import json
import shutil
from contextlib import ExitStack

from harness import admitted, connect, running, until


def connections(cluster, count):
    with ExitStack() as stack:
        assert all(admitted(stack.enter_context(connect(cluster.address))) for _ in range(count))


def lines(cluster, event):
    return [
        line for line in map(json.loads, cluster.errors.read_text().splitlines()) if line["event"].startswith(event)
    ]


def test_dropped_events_are_told_from_beginning_to_end(tmp_path):
    data = tmp_path / "d"
    with running(data, shards=1) as cluster:
        assert "events dropped" not in cluster.turnstile("status")
        connections(cluster, 5)
        spool = data / "journal" / "spool"
        shutil.rmtree(spool)
        spool.touch()  # no folder can be made there

        def losing():
            connections(cluster, 3)
            return cluster.metric("turnstile_events_dropped_total", broker="0") > 20

        until(losing, what="events dropped")
        told = until(lambda: lines(cluster, "journal events are dropped"), what="a line in the log")
        assert len([line for line in told if "shard" in line]) == 1
        assert "was removed" in told[0]["why"] or "directory" in told[0]["why"] or "exists" in told[0]["why"]
        assert "more are being dropped now: audit and report lack them" in cluster.turnstile("status")
        assert cluster.get("/v1/live")["journal"]["is_losing"]
        spool.unlink()

        def is_over():
            connections(cluster, 1)
            return [line for line in lines(cluster, "no more journal events are dropped") if "shard" in line]

        (line,) = until(is_over, what="a line at the end")[:1]
        assert line["dropped"] > 20
        until(lambda: not cluster.get("/v1/live")["journal"]["is_losing"], what="the coordinator's journal, too")
        assert cluster.told("status")["journal"]["events_dropped"] > 20
        assert "events dropped since the start: audit" in cluster.turnstile("status")
        said = cluster.turnstile("audit", str(data), expect=2)
        assert "events are missing" in said, said
