"""Regular expressions that clients and operators send: RE2, as in Kafka and Redpanda.

Matching takes time in proportion to the text, whatever the pattern is. Python's `re` takes exponential time for patterns like
`(a+)+$`: one request would stop a shard.

Source: KIP-848 (SubscribedTopicRegex), KIP-1152 (TransactionalIdPattern), `kafka_throughput_control`; com.google.re2j in Kafka.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

_MOST_BYTES = 1 << 18
"""The largest compiled pattern; a larger one is refused, as matching takes time in proportion to its size, too."""


class BadPattern(ValueError):
    """A text that is no regular expression of RE2; the message says why."""


@lru_cache(maxsize=256)
def whole(pattern: str) -> Callable[[str], bool]:
    """True if the pattern matches the whole of a text. Raises BadPattern."""
    import re2  # 6 ms that only those who send a pattern wait for

    options = re2.Options()
    options.log_errors = False
    options.max_mem = _MOST_BYTES
    try:
        compiled = re2.compile(pattern, options)
    except re2.error as error:
        raise BadPattern(str(error.args[0] if error.args else error)) from None
    return lambda text: compiled.fullmatch(text) is not None
