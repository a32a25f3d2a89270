"""Names that clients choose, in a form of bounded length: what keys a table or labels a metric.

A client id may have 32,767 bytes. Where a table or a metric keeps names by the thousand, a long one stands there as its
beginning and a digest of all of it: equal names stay equal, and names that differ stay apart.
"""

from __future__ import annotations

from hashlib import blake2b
from typing import Final

LONGEST_KNOWN: Final = 200
"""Characters of the longest name that is kept as it is."""
_BEGINNING: Final = 40


def short_name(name: str) -> str:
    """`name` if it has at most LONGEST_KNOWN characters, else its beginning and 128 bits of BLAKE2b in hex."""
    if len(name) <= LONGEST_KNOWN:
        return name
    digest = blake2b(name.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()
    return f"{name[:_BEGINNING]}...{digest}"
