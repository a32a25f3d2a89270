"""Kafka's own jars and command line tools, resolved by Maven from scripts/peers/kafka/pom.xml into build/peers."""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import subprocess
from base64 import b64decode, b64encode
from pathlib import Path
from typing import NamedTuple

from scripts.peers.fetching import Missing, fetch

VERSION = "4.3.1"
"""The Kafka that is compared with."""
HERE = Path(__file__).resolve().parent
BUILD = HERE.parent.parent / "build" / "peers"
# Tools live for a second or two: the quick compiler alone and shared class data start them in half the time.
JVM_FLAGS = ("-XX:TieredStopAtLevel=1", "-Xshare:auto", "-XX:+UseSerialGC", "-Xmx512m")
WARNINGS = ("-Dorg.slf4j.simpleLogger.defaultLogLevel=warn",)
"""The log level of Streams and Connect on standard error."""


class Ran(NamedTuple):
    """The result of one run of a tool: exit code, standard output, standard error."""

    code: int
    out: str
    err: str


def classpath(version: str = VERSION) -> str:
    """Class path of Kafka's jars, our launcher and our plugin; resolves and compiles once. Raises Missing."""
    pom, *sources = (HERE / "kafka" / name for name in ("pom.xml", "Tools.java", "TelemetryReceiver.java"))
    return _made(BUILD / ("kafka" if version == VERSION else f"kafka-{version}"), pom, sources, version)


def streams_classpath() -> str:
    """Class path of Kafka Streams 4.3; resolves once. Raises Missing."""
    return _made(BUILD / "streams", HERE / "streams" / "pom.xml", [], "4.3.1")


def connect_classpath() -> str:
    """Class path of Kafka Connect 4.3 with file connectors and MirrorMaker 2; resolves once. Raises Missing."""
    return _made(BUILD / "connect", HERE / "connect" / "pom.xml", [], "4.3.1")


def spark_kafka_jars() -> list[str]:
    """The jars of Spark's source and sink for Kafka, of the version of scripts/peers/spark; resolves once. Raises Missing."""
    _made(BUILD / "spark-kafka", HERE / "spark" / "pom.xml", [], "")
    return sorted(str(path) for path in (BUILD / "spark-kafka" / "jars").iterdir())


def _made(home: Path, pom: Path, sources: list[Path], version: str) -> str:
    contents = (version.encode(), *(path.read_bytes() for path in (pom, *sources)))
    made_of = hashlib.sha256(b"\0".join(contents)).hexdigest()
    stamp = home / "made-of"
    BUILD.mkdir(parents=True, exist_ok=True)
    with open(BUILD / "kafka.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # several test processes want them at once
        if not stamp.exists() or stamp.read_text() != made_of:
            _make(home, pom, sources, version)
            stamp.write_text(made_of)
    return f"{home / 'classes'}{os.pathsep}{home / 'jars'}/*"


def _make(home: Path, pom: Path, sources: list[Path], version: str) -> None:
    for command in ("mvn", "javac"):
        if shutil.which(command) is None:
            raise Missing(f"{command} is not installed, so Kafka's jars can't be had")
    shutil.rmtree(home, ignore_errors=True)
    (home / "classes").mkdir(parents=True)
    chosen = (f"-DoutputDirectory={home / 'jars'}", f"-Dkafka.version={version}")
    fetch(["mvn", "-q", "-B", "-f", pom, "dependency:copy-dependencies", *chosen])
    if sources:
        fetch(["javac", "-cp", f"{home / 'jars'}/*", "-d", home / "classes", *sources])


MAINS = {
    "kafka-topics": "org.apache.kafka.tools.TopicCommand",
    "kafka-configs": "kafka.admin.ConfigCommand",
    "kafka-client-metrics": "org.apache.kafka.tools.ClientMetricsCommand",
    "kafka-features": "org.apache.kafka.tools.FeatureCommand",
    "kafka-metadata-quorum": "org.apache.kafka.tools.MetadataQuorumCommand",
    "kafka-leader-election": "org.apache.kafka.tools.LeaderElectionCommand",
    "kafka-consumer-groups": "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand",
    "kafka-share-groups": "org.apache.kafka.tools.consumer.group.ShareGroupCommand",
    "kafka-streams-groups": "org.apache.kafka.tools.streams.StreamsGroupCommand",
    "kafka-groups": "org.apache.kafka.tools.GroupsCommand",
    "kafka-console-share-consumer": "org.apache.kafka.tools.consumer.ConsoleShareConsumer",
    "kafka-console-producer": "org.apache.kafka.tools.ConsoleProducer",
    "kafka-console-consumer": "org.apache.kafka.tools.consumer.ConsoleConsumer",
    "kafka-producer-perf-test": "org.apache.kafka.tools.ProducerPerformance",
    "kafka-consumer-perf-test": "org.apache.kafka.tools.ConsumerPerformance",
    "kafka-get-offsets": "org.apache.kafka.tools.GetOffsetShell",
    "kafka-delete-records": "org.apache.kafka.tools.DeleteRecordsCommand",
    "kafka-log-dirs": "org.apache.kafka.tools.LogDirsCommand",
    "kafka-broker-api-versions": "org.apache.kafka.tools.BrokerApiVersionsCommand",
    "kafka-storage": "kafka.tools.StorageTool",
    "kafka-acls": "org.apache.kafka.tools.AclCommand",
    "kafka-delegation-tokens": "org.apache.kafka.tools.DelegationTokenCommand",
    "kafka-transactions": "org.apache.kafka.tools.TransactionsCommand",
    "kafka-cluster": "org.apache.kafka.tools.ClusterTool",
    "kafka-reassign-partitions": "org.apache.kafka.tools.reassign.ReassignPartitionsCommand",
    "kafka-e2e-latency": "org.apache.kafka.tools.EndToEndLatency",
}


class Tools:
    """Kafka's tools, in one JVM that stays up between them. A context manager; not for several threads."""

    def __init__(self, version: str = VERSION) -> None:
        self._jvm = subprocess.Popen(
            ["java", *JVM_FLAGS, "-cp", classpath(version), "Tools"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def __call__(self, tool: str, *args: str, stdin: str = "") -> Ran:
        """Run `tool`, one of MAINS, with `args`; returns when it has ended."""
        assert self._jvm.stdin is not None and self._jvm.stdout is not None
        words = (MAINS[tool], stdin, *args)
        self._jvm.stdin.write(" ".join(b64encode(word.encode()).decode() for word in words) + "\n")
        self._jvm.stdin.flush()
        answer = self._jvm.stdout.readline()
        if not answer:
            raise ChildProcessError(f"the JVM ended while it ran {tool}")
        code, out, err = answer.rstrip("\n").split(" ")
        return Ran(int(code), b64decode(out).decode(), b64decode(err).decode())

    def kill(self) -> None:
        """End the JVM now, from any thread; the call that waits for a tool raises ChildProcessError."""
        self._jvm.kill()

    def close(self) -> None:
        """End the JVM."""
        assert self._jvm.stdin is not None and self._jvm.stdout is not None
        self._jvm.stdin.close()
        try:
            self._jvm.wait(timeout=10)
        except subprocess.TimeoutExpired:
            self._jvm.kill()
            self._jvm.wait()
        self._jvm.stdout.close()

    def __enter__(self) -> Tools:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
