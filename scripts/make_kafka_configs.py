"""Writes shards/settings/kafka_configs.tsv: every config of Kafka's brokers, topics, groups, from the ConfigDefs in its jars.

    python scripts/make_kafka_configs.py

Needs a JDK and Maven (scripts/peers/jars.py). To be run again when scripts/peers/kafka/pom.xml names another Kafka.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT)]

from scripts.peers import jars  # noqa: E402 - importable only from here on

TARGET = ROOT / "shards" / "settings" / "kafka_configs.tsv"
_HEAD = """\
# Configs of Apache Kafka 4.3, from its own ConfigDefs. Written by scripts/make_kafka_configs.py: do not edit.
# scope, name, type, default (\\N: none), validator, whether it changes live, documentation
"""


def main() -> None:
    source = ROOT / "scripts" / "peers" / "kafka" / "Configs.java"
    command = ["java", *jars.JVM_FLAGS, "-cp", jars.classpath(), str(source)]
    ran = subprocess.run(command, capture_output=True, text=True, check=True)
    TARGET.write_text(_HEAD + ran.stdout)


if __name__ == "__main__":
    main()
