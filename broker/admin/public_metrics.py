"""`/public_metrics`: Redpanda's metrics of connections, the disk and the uptime, under Redpanda's names, summed over shards.

A Redpanda process serves this page for one broker; here one page has all brokers, and each sample but the uptime has the label
`broker`. The other metrics of Redpanda's page are not emulated.

Source: server_probe::setup_public_metrics (src/v/net/probes.cc), node_probe::setup_node_metrics (src/v/storage/probe.cc).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from broker.admin.sampler import Sampler
from broker.admin.text_format import Kind, Page

_RPC = (
    (Kind.GAUGE, "active_connections", "Connections open now.", "open"),
    (Kind.COUNTER, "received_bytes", "Bytes of requests.", "bytes_in"),
    (Kind.COUNTER, "sent_bytes", "Bytes of responses.", "bytes_out"),
)


def public_metrics(sampler: Sampler, disk: Mapping[str, object] | None, uptime_s: float) -> bytes:
    """The page with the values of now. `disk`: the answer of describe_disk; None: without its metrics."""
    now, page = sampler.now(), Page()
    page.add(Kind.GAUGE, "redpanda_application_uptime_seconds_total", "Seconds since the start.", {}, uptime_s)
    for broker in sorted({broker for broker, _ in now.slots}):
        members = [member for member in now.slots if member[0] == broker]
        labels = {"broker": str(broker), "redpanda_server": "kafka"}
        for kind, name, help, counter in _RPC:
            page.add(kind, f"redpanda_rpc_{name}", help, labels, sampler.total(now, counter, None, members))
    if disk is not None:
        _add_disk(page, disk)
    return page.render()


def _add_disk(page: Page, disk: Mapping[str, Any]) -> None:
    for broker in disk["brokers"]:
        for name, help, value in (
            ("total_bytes", "Size of the volume of the data.", disk["total_bytes"]),
            ("free_bytes", "Free space on the volume of the data.", disk["free_bytes"]),
            (
                "free_space_alert",
                "Free space: 0 is enough, 2 too little: Produce is refused.",
                2 if broker["full"] else 0,
            ),
        ):
            page.add(Kind.GAUGE, f"redpanda_storage_disk_{name}", help, {"broker": str(broker["broker"])}, value)
