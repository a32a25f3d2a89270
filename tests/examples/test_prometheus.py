"""The example for Prometheus: it scrapes a cluster, its rules are rules, and every query of the dashboard has data."""

from __future__ import annotations

import contextlib
import json
import math
import re
import socket
import subprocess
import sys
import time
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer

import turnstile

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples" / "prometheus"
sys.path.insert(0, str(ROOT))

from scripts.peers import debian  # noqa: E402 - importable only from here on
from scripts.peers.fetching import Missing  # noqa: E402

WITHIN_S = 30.0
Ask = Callable[[str], Any]


def program(name: str) -> str:
    """A program of Debian's package; without it the test is skipped."""
    try:
        return debian.program(name, "prometheus")
    except Missing as missing:
        pytest.skip(str(missing))


def queries() -> list[str]:
    """Every query of the dashboard, with a range in place of Grafana's variable."""
    panels = json.loads((EXAMPLE / "dashboard.json").read_text())["panels"]
    return [target["expr"].replace("$__rate_interval", "1m") for panel in panels for target in panel["targets"]]


@pytest.fixture
def ask(tmp_path: Path) -> Iterator[Ask]:
    """Asks a Prometheus for an instant query. It scrapes a cluster in which something of everything happens."""
    command = program("prometheus")
    with turnstile.Cluster(limits={"per_ip": 3}, topics=["orders"]) as cluster:
        config = (EXAMPLE / "prometheus.yml").read_text()
        config = config.replace("127.0.0.1:9644", cluster.admin.url.removeprefix("http://"))
        (tmp_path / "prometheus.yml").write_text(re.sub(r"_interval: 5s", "_interval: 1s", config))
        (tmp_path / "alerts.yml").write_text((EXAMPLE / "alerts.yml").read_text())
        options = [f"--config.file={tmp_path}/prometheus.yml", f"--storage.tsdb.path={tmp_path}/tsdb"]
        process = subprocess.Popen(
            [command, *options, "--web.listen-address=127.0.0.1:0"], stderr=subprocess.PIPE, text=True
        )
        assert process.stderr is not None
        try:
            # Two threads of Prometheus write these lines, in either order.
            begun = "".join(up_to(process.stderr, "ready to receive web requests", 'msg="Listening on"'))
            address = re.findall(r'msg="Listening on" address=(\S+)', begun)[0]

            def answer(query: str) -> Any:
                url = f"http://{address}/api/v1/query?{urllib.parse.urlencode({'query': query})}"
                with urllib.request.urlopen(url, timeout=WITHIN_S) as response:
                    return json.load(response)["data"]["result"]

            until(lambda: answer("turnstile_uptime_seconds"), "a first scrape")
            use(cluster)
            yield answer
        finally:
            process.terminate()
            process.stderr.read()
            process.wait(WITHIN_S)
            process.stderr.close()


def up_to(lines: Iterable[str], *texts: str) -> Iterator[str]:
    """Lines up to the one with which each of `texts` has come."""
    missing = set(texts)
    for line in lines:
        yield line
        missing -= {text for text in missing if text in line}
        if not missing:
            return


def use(cluster: turnstile.Cluster) -> None:
    """Connections from several addresses, most of them refused, and a producer over its quota."""
    host, port = cluster.bootstrap.split(":")
    with contextlib.ExitStack() as stack:
        for number in range(30):  # so many that some are accepted by a shard that has to borrow
            source = (f"127.1.0.{number % 3 + 1}", 0)
            stack.enter_context(socket.create_connection((host, int(port)), source_address=source))
        until(lambda: cluster.refusals().total == 21, "refusals")
    cluster.quota("client-id=importer", producer_byte_rate=1000)
    producer = Producer({"bootstrap.servers": cluster.bootstrap, "client.id": "importer", "log_level": 0})
    producer.produce("orders", b"x" * 5000)
    assert producer.flush(WITHIN_S) == 0


def until(holds: Callable[[], Any], what: str) -> Any:
    """Asks until there is an answer."""
    deadline = time.monotonic() + WITHIN_S
    while not (found := holds()):
        assert time.monotonic() < deadline, f"no {what} within {WITHIN_S:.0f} s"
        time.sleep(0.05)
    return found


def test_every_query_of_the_dashboard_and_every_alert_has_data(ask: Ask) -> None:
    def has_data(query: str) -> bool:
        return any(not math.isnan(float(sample["value"][1])) for sample in ask(query))

    asked = queries()
    assert len(asked) > 15
    for query in asked:
        until(lambda query=query: has_data(query), query)
    refused = 'sum(increase(turnstile_connections_refused_total{reason="ip_cap"}[1m])) > 0'
    until(lambda: ask(refused), refused)
    for compared in re.findall(r"^ +expr: (.+?) (?:==|>) \S+$", (EXAMPLE / "alerts.yml").read_text(), re.MULTILINE):
        until(lambda compared=compared: has_data(compared), compared)


def test_promtool_finds_the_rules_right() -> None:
    for check in (("check", "config", "prometheus.yml"), ("test", "rules", "alerts_test.yml")):
        done = subprocess.run([program("promtool"), *check], cwd=EXAMPLE, capture_output=True, text=True)
        assert done.returncode == 0 and "SUCCESS" in done.stdout, done.stdout + done.stderr
