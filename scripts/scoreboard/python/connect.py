"""Kafka Connect, standalone, with its default settings: a source writes the numbered lines of a file to a topic, a sink its records
to a file. Its one argument is the folder of Connect's jars; SIGTERM ends Connect, and this program with it."""

import os
import signal
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

ended = threading.Event()
folder = Path(tempfile.mkdtemp(prefix="connect-"))
lines, kind = folder / "lines", "org.apache.kafka.connect.file.FileStream"


def properties(name: str, /, **settings: str) -> str:
    """A file of settings; a `_` in a name of one is a dot."""
    path = folder / f"{name}.properties"
    path.write_text("".join(f"{key.replace('_', '.')}={value}\n" for key, value in settings.items()))
    return str(path)


converter = "org.apache.kafka.connect.storage.StringConverter"
worker = properties(
    "worker", bootstrap_servers=os.environ["TURNSTILE_BOOTSTRAP"], key_converter=converter, value_converter=converter,
    listeners="http://127.0.0.1:0", plugin_discovery="service_load", offset_storage_file_filename=f"{folder}/offsets",
)  # fmt: skip
source = properties("source", name="source", connector_class=f"{kind}SourceConnector", file=str(lines), topic="orders")
sink = properties(
    "sink", name="sink", connector_class=f"{kind}SinkConnector", file=f"{folder}/written", topics="orders"
)
lines.touch()
main = ["-Dorg.slf4j.simpleLogger.defaultLogLevel=off", "org.apache.kafka.connect.cli.ConnectStandalone"]
connect = subprocess.Popen(["java", "-cp", f"{sys.argv[1]}/*", *main, worker, source, sink])


def end(*_: object) -> None:
    ended.set()
    connect.terminate()


signal.signal(signal.SIGTERM, end)
number = 0
with lines.open("a", buffering=1) as file:
    while not ended.wait(0.02) and connect.poll() is None:
        number += 1
        file.write(f"{connect.pid}:{number}\n")
connect.wait()
