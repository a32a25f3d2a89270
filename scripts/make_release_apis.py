"""Writes broker/wire/release_apis.tsv: the versions of each API that the brokers of each release list.

    python scripts/make_release_apis.py

Needs a JDK and Maven, which brings each release's kafka-clients. Those of Redpanda are the ranges of its handlers
(src/v/kafka/server/handlers at 1c6cff34, December 2024).
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT)]

from scripts.peers import jars  # noqa: E402 - importable only from here on

TARGET = ROOT / "broker" / "wire" / "release_apis.tsv"
SOURCE = ROOT / "scripts" / "peers" / "kafka" / "ReleaseApis.java"
KAFKA = {
    "2.8": "2.8.2", "3.0": "3.0.2", "3.1": "3.1.2", "3.2": "3.2.3", "3.3": "3.3.2", "3.4": "3.4.1", "3.5": "3.5.2",
    "3.6": "3.6.2", "3.7": "3.7.2", "3.8": "3.8.1", "3.9": "3.9.1", "4.0": "4.0.1", "4.1": "4.1.0", "4.2": "4.2.0",
    "4.3": "4.3.1",
}  # fmt: skip
"""The version whose jars are asked, of each release."""
WITH_ZOOKEEPER = ("2.8", "3.0", "3.1", "3.2")
"""Releases whose clusters had ZooKeeper as a rule: their brokers list what their ZooKeeper listeners do."""
REDPANDA = {
    "Produce": "0-7", "Fetch": "4-11", "ListOffsets": "0-4", "Metadata": "0-8", "OffsetCommit": "1-8",
    "OffsetFetch": "1-7", "FindCoordinator": "0-3", "JoinGroup": "0-6", "Heartbeat": "0-4", "LeaveGroup": "0-4",
    "SyncGroup": "0-4", "DescribeGroups": "0-5", "ListGroups": "0-4", "SaslHandshake": "0-1", "ApiVersions": "0-3",
    "CreateTopics": "0-6", "DeleteTopics": "0-5", "DeleteRecords": "0-2", "InitProducerId": "0-3",
    "OffsetForLeaderEpoch": "0-4", "AddPartitionsToTxn": "0-3", "AddOffsetsToTxn": "0-1", "EndTxn": "0-3",
    "TxnOffsetCommit": "0-3", "DescribeAcls": "0-2", "CreateAcls": "0-2", "DeleteAcls": "0-2", "DescribeConfigs": "0-4",
    "AlterConfigs": "0-2", "DescribeLogDirs": "0-2", "SaslAuthenticate": "0-2", "CreatePartitions": "0-3",
    "DeleteGroups": "0-2", "IncrementalAlterConfigs": "0-1", "AlterPartitionReassignments": "0-0",
    "ListPartitionReassignments": "0-0", "OffsetDelete": "0-0", "DescribeClientQuotas": "0-1",
    "AlterClientQuotas": "0-1", "DescribeProducers": "0-0", "DescribeTransactions": "0-0", "ListTransactions": "0-0",
}  # fmt: skip
_HEAD = """\
# Versions of each API that brokers of a release list; -: none. Written by scripts/make_release_apis.py: do not edit.
"""


def main() -> None:
    columns = {release: _listed(release) for release in KAFKA}
    names = {key: name for column in columns.values() for key, (name, _) in column.items()}
    rows = ["\t".join(("key", "api", *KAFKA, "redpanda-24.3"))]
    for key, name in sorted(names.items()):
        cells = [column.get(key, ("", "-"))[1] for column in columns.values()]
        rows.append("\t".join((str(key), name, *cells, REDPANDA.get(name, "-"))))
    TARGET.write_text(_HEAD + "\n".join(rows) + "\n")


def _listed(release: str) -> dict[int, tuple[str, str]]:
    """Name and versions by API key, as the jars of a release say."""
    folder = jars.BUILD / "releases" / KAFKA[release]
    if not folder.exists():
        artifact = f"-Dartifact=org.apache.kafka:kafka-clients:{KAFKA[release]}"
        subprocess.run(["mvn", "-q", "-B", "dependency:copy", artifact, f"-DoutputDirectory={folder}"], check=True)
    listener = "ZK_BROKER" if release in WITH_ZOOKEEPER else "BROKER"
    path = os.pathsep.join((f"{folder}/*", jars.classpath()))
    told = subprocess.run(
        ["java", *jars.JVM_FLAGS, "-cp", path, str(SOURCE), listener], stdout=subprocess.PIPE, text=True, check=True
    ).stdout
    found = {}
    for line in told.splitlines():
        name, key, oldest, newest = line.split("\t")
        if int(newest) >= int(oldest):  # else every version of it is one that is not ready
            found[int(key)] = name, f"{oldest}-{newest}"
    return found


if __name__ == "__main__":
    main()
