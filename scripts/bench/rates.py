"""KIP-612's creation rates, side by side: a real Kafka 4.3 and Turnstile under the same driver.

    python scripts/bench/rates.py [--seconds 20] [--write]

Each system is told its limit by the same command, Kafka's own kafka-configs, and then meets the same storm. --write
puts the table into docs/internals/rates.md.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from scripts.bench import machine, table  # noqa: E402
from scripts.peers import servers  # noqa: E402
from scripts.peers.fetching import Missing  # noqa: E402
from scripts.peers.jars import Tools  # noqa: E402
from turnstile.admin_client import AdminClient  # noqa: E402 - importable only from here on
from turnstile.load.driver import run  # noqa: E402
from turnstile.load.latencies import Latencies  # noqa: E402
from turnstile.load.sources import Sources  # noqa: E402
from turnstile.load.spec import ClientGroup, LoadScenario  # noqa: E402
from turnstile.load.tally import Tally  # noqa: E402

NO_ADMIN = AdminClient("http://127.0.0.1:1")


class Case(NamedTuple):
    """A limit, as kafka-configs is told it, and the storm that meets it: `rate` a second from `sources`."""

    what: str
    limit: tuple[str, ...]
    sources: str
    rate: float


BROKERS = ("--entity-type", "brokers", "--entity-default")
ONE_IP = ("--ip", "127.1.0.1")
CASES = [
    Case("one address limited to 20/s, asking for 60/s", (*ONE_IP, "--add-config", "connection_creation_rate=20"),
         "127.1.0.1", 60),
    Case("the broker limited to 50/s, asked for 75/s", (*BROKERS, "--add-config", "max.connection.creation.rate=50"),
         "127.1.0.0/25", 75),
    Case("one listener limited to 50/s, asked for 75/s; the inter-broker one next to it for 75/s",
         (*BROKERS, "--add-config", "listener.name.plaintext.max.connection.creation.rate=50"),
         "127.1.0.0/25", 75),
]  # fmt: skip


class System(NamedTuple):
    """A running broker: its name, and its two listeners."""

    name: str
    external: str
    internal: str


@contextmanager
def real_kafka() -> Iterator[System]:
    """Kafka 4.3 from its jars."""
    external, internal, controller = (servers.free_port() for _ in range(3))
    listeners = f"PLAINTEXT://127.0.0.1:{external},INTERNAL://127.0.0.1:{internal}"
    settings = {
        "listeners": f"{listeners},CONTROLLER://127.0.0.1:{controller}",
        "advertised.listeners": listeners,
        "controller.quorum.bootstrap.servers": f"127.0.0.1:{controller}",
        "inter.broker.listener.name": "INTERNAL",
    }
    with servers.kafka(settings, port=external):
        yield System("Kafka 4.3", f"127.0.0.1:{external}", f"127.0.0.1:{internal}")


@contextmanager
def turnstile(shards: int) -> Iterator[System]:
    """Turnstile with as many shards."""
    external, internal = servers.free_port(), servers.free_port()
    options = ["--listener", f"PLAINTEXT=127.0.0.1:{external}", "--listener", f"INTERNAL=127.0.0.1:{internal}"]
    options += ["--set", "inter.broker.listener.name=INTERNAL"]
    with machine.turnstile(*options, shards=shards):
        yield System(f"Turnstile, {shards} shards", f"127.0.0.1:{external}", f"127.0.0.1:{internal}")


def main() -> int:
    """Run every case against every system, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--write", action="store_true")
    asked = parser.parse_args()
    rows: list[tuple[str, ...]] = []
    try:
        with Tools() as tools:
            for start in (real_kafka, lambda: turnstile(2), lambda: turnstile(4)):
                for number, case in enumerate(CASES):
                    with start() as system:  # a new one each time: windows remember the case before
                        print(f"{system.name}: {case.what}", file=sys.stderr, flush=True)
                        rows += measure(tools, system, number, asked.seconds)
    except Missing as missing:
        print(missing, file=sys.stderr)
        return 1
    rows.sort(key=lambda row: row[0])
    columns = ("case", "system", "admitted/s", "most in a second", "refused", "unanswered", "admission p50, p99",
               "refusal p50, p99")  # fmt: skip
    rows = [(row[0].partition(" ")[2], *row[1:]) for row in rows]
    table.show_plain("Creation rates, side by side", columns, rows)
    if asked.write:
        table.write_plain(columns, rows, ROOT / "docs" / "internals" / "rates.md")
    return 0


def measure(tools: Tools, system: System, number: int, seconds: float) -> list[tuple[str, ...]]:
    """The rows of one case on one system."""
    case = CASES[number]

    def storm(name: str, bootstrap: str) -> ClientGroup:
        return ClientGroup(
            name=name,
            sources=Sources(case.sources),
            bootstrap=bootstrap,
            rate=case.rate,
            duration_s=seconds,
            clients=int(case.rate * seconds),
            hold_s=0.05,
        )

    groups = [storm("", system.external)]
    if "inter-broker" in case.what:
        groups = [storm(": limited listener", system.external), storm(": inter-broker listener", system.internal)]
    configure(tools, system, case.limit)
    scenario = LoadScenario(name="rates", groups=tuple(groups), timeout_s=10)
    result = run(scenario, system.external, NO_ADMIN, processes=1)
    return [
        (f"{number} {case.what}", f"{system.name}{group.name}", *figures(tally, seconds))
        for group, tally in zip(groups, result.groups, strict=True)
    ]


def configure(tools: Tools, system: System, words: tuple[str, ...]) -> None:
    """kafka-configs --alter over the inter-broker listener, which no limit of these cases slows down."""
    ran = tools("kafka-configs", "--bootstrap-server", system.internal, "--alter", *words)
    if ran.code != 0:
        raise machine.CannotMeasure(f"{system.name} refused {' '.join(words)}: {ran.err or ran.out}")


def figures(total: Tally, seconds: float) -> tuple[str, ...]:
    """The figures of one run in a row."""
    whole = total.per_second[1 : int(seconds)]
    most = max((admitted for admitted, _ in whole), default=0)
    later = sum(admitted for admitted, _ in whole) / max(1, len(whole))
    return (
        f"{later:.1f}", str(most), f"{total.refused:,}", f"{total.unanswered:,}", _pair(total.admitted_us), _pair(total.refused_us),
    )  # fmt: skip


def _pair(latencies_us: Latencies) -> str:
    found = latencies_us.percentiles_ms()
    return "-" if found["p50"] is None else f"{found['p50']:,.1f}, {found['p99']:,.1f} ms"


if __name__ == "__main__":
    sys.exit(main())
