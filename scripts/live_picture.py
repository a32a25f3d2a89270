"""Draws docs/live.png anew: the live page while an office connects from behind one NAT address, and a batch job is throttled.

    python scripts/live_picture.py [FILE]      needs chromium

Everything on it is real: the cluster, the storm of `turnstile load`, librdkafka's producer, and a cap raised meanwhile.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import suppress
from pathlib import Path

from confluent_kafka import Producer

from turnstile import Cluster

ROOT = Path(__file__).resolve().parent.parent
TURNSTILE = str(Path(sys.executable).parent / "turnstile")
SIZE = "1180,1000"
STORM = """
[[group]]
name = "office"
sources = "127.1.0.1"
clients = 300
rate = 100
duration_s = 40
hold_s = "end"
reconnect = true
backoff_s = 0.5

[[group]]
name = "data centre"
sources = "127.2.0.0/24"
clients = 6000
rate = 150
duration_s = 40
hold_s = 3
"""


def main() -> int:
    chromium = shutil.which("chromium") or shutil.which("google-chrome")
    if chromium is None:
        print("needs chromium: apt-get install chromium", file=sys.stderr)
        return 2
    picture = Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "docs" / "live.png"
    with tempfile.TemporaryDirectory() as folder, Cluster(limits={"per_ip": 50}, topics={"orders": 4}) as cluster:
        storm = Path(folder) / "office.toml"
        storm.write_text(STORM)
        command = [TURNSTILE, "load", "--scenario", str(storm), "--bootstrap", cluster.bootstrap]
        load = subprocess.Popen([*command, "--admin", cluster.admin.url], stdout=subprocess.DEVNULL)
        ended = threading.Event()
        batch_job = threading.Thread(target=produce, args=(cluster.bootstrap, ended))
        batch_job.start()
        try:
            meanwhile(cluster)
            draw(chromium, folder, cluster.admin.url, picture)
        finally:
            ended.set()
            load.terminate()
            load.wait()
            batch_job.join()
    return 0


def meanwhile(cluster: Cluster) -> None:
    """An operator watches, sets a quota and a cap for all together, rehearses a tighter one, and lets the office have more
    connections."""
    time.sleep(8)
    cluster.quota("client-id=batch-job", producer_byte_rate=250_000)
    cluster.set(connections=700)
    cluster.observe(connections=500)
    time.sleep(12)
    cluster.set(overrides={"127.1.0.1": 120})
    time.sleep(14)


def produce(bootstrap: str, ended: threading.Event) -> None:
    """A batch job that writes as fast as it may."""
    producer = Producer({"bootstrap.servers": bootstrap, "client.id": "batch-job", "queue.buffering.max.kbytes": 1024})
    while not ended.wait(0.005):
        with suppress(BufferError):  # as fast as the broker takes it
            producer.produce("orders", bytes(2000))
        producer.poll(0)
    producer.purge()


def draw(chromium: str, folder: str, url: str, picture: Path) -> None:
    """One picture of the page. Raises CalledProcessError."""
    options = ["--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--hide-scrollbars"]
    options += [f"--user-data-dir={folder}/profile", f"--window-size={SIZE}", "--virtual-time-budget=2000"]
    subprocess.run([chromium, *options, f"--screenshot={picture}", url], check=True, capture_output=True)


if __name__ == "__main__":
    sys.exit(main())
