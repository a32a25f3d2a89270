"""Names of variables of the environment: which setting each means, and which mean none. Pure."""

from __future__ import annotations

import re

KAFKA, TURNSTILE = "KAFKA_", "TURNSTILE_"
_OF_THE_SCRIPTS = re.compile(
    r"KAFKA_(VERSION|OPTS|DEBUG|HEAP_OPTS|JMX_\w+|GC_LOG_OPTS|LOG4J_\w+|TOOLS_\w+|JVM_PERFORMANCE_OPTS|HOME|DATA|CLASSPATH"
    r"|CLUSTER_ID|MODE)"
)
"""Variables that Kafka's scripts and its JVM read, and that are no broker's setting. Source: docker/ and bin/ of Apache Kafka."""
_OF_A_SERVICE = re.compile(r"_(SERVICE_HOST|SERVICE_PORT(_\w+)?|PORT(_\d+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?)?)$")
"""Variables that Kubernetes, and Docker's links, give every container for a service named `kafka` or `turnstile`."""
_ADDRESS = re.compile(r"(tcp|udp|sctp)://.*|\d{1,5}|[0-9a-fA-F.:]+|tcp|udp|sctp")
_URL = re.compile(r"(tcp|udp|sctp)://.*")
_BARE_PORT = re.compile(r"(?<!_SERVICE)_PORT$")
"""Has a URL in Kubernetes and Docker's links; with a number it is of a user who means a port."""


def is_of_others(name: str, value: str) -> bool:
    """True if the variable says nothing to a broker, although it begins like one that does."""
    if _OF_THE_SCRIPTS.fullmatch(name):
        return True
    of = _URL if _BARE_PORT.search(name) else _ADDRESS
    return bool(_OF_A_SERVICE.search(name) and of.fullmatch(value))


def kafka_setting(name: str) -> str:
    """The setting of a variable, as in Kafka's image: `_` is a dot, `__` an underscore, `___` a dash. KAFKA_NUM_PARTITIONS ->
    num.partitions."""
    words = name.removeprefix(KAFKA).lower()
    return words.replace("___", "-").replace("__", "\0").replace("_", ".").replace("\0", "_")


def turnstile_settings(name: str) -> list[str]:
    """The meanings that TURNSTILE_... may have, the first that is a setting counts: Redpanda's spelling, a short name (`per_ip`),
    Kafka's, Turnstile's own."""
    words = name.removeprefix(TURNSTILE).lower()
    dotted = kafka_setting(KAFKA + name.removeprefix(TURNSTILE))
    return [words, dotted, f"turnstile.{dotted}"]
