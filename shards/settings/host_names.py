"""Host names in overrides of addresses, `edge.example.com:100`: their form. A host's number holds for each address that DNS has for
the name, like an override of that address; shards/config/host_overrides.py keeps what DNS says.

Source: ConnectionQuotas of Apache Kafka looks a name up once, when the setting is read; Redpanda takes no names.
"""

import re
from collections.abc import Mapping, Sequence

HostAddresses = Mapping[str, Sequence[str]]
"""Name -> its addresses, in the spelling of `normalise_ip`."""
NO_HOSTS: HostAddresses = {}
_LABEL = r"[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?"
_HOST = re.compile(rf"(?=.{{1,253}}\Z)(?:{_LABEL}\.)*(?=[a-z_]){_LABEL}\.?\Z")


def host_name(text: str) -> str | None:
    """A host name in lower case; None for what can't be one, such as a wrong address: the last label begins with a letter
    (RFC 1123, 3696)."""
    name = text.lower()
    return name if _HOST.match(name) else None
