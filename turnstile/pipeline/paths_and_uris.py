"""Where input is and results go: a path of this machine, or a URI of a filesystem that Spark reaches (hdfs://, s3a://).

`file:` names a path of this machine, too. The path is taken literally: %20 is not decoded, as in Hadoop.
"""

import re
from pathlib import Path

_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:/")
_FILE = re.compile(r"file:(//)?(?=/)")


def is_uri(place: str) -> bool:
    """True if only Spark can reach it."""
    return _SCHEME.match(place) is not None and _FILE.match(place) is None


def local_path(place: str) -> Path:
    """The path that a place of this machine has."""
    return Path(_FILE.sub("", place, count=1))


def under(folder: str, name: str) -> str:
    """The place of that name in a folder, of either kind."""
    return f"{folder.rstrip('/')}/{name}"


def as_spark_has_it(place: str) -> str:
    """A place as Spark takes it, whose own default may be another filesystem than this machine's."""
    return place if is_uri(place) else f"file:{local_path(place).absolute()}"


def as_read(place: str) -> str:
    """The place for a reader of Spark's, to which names are patterns."""
    return re.sub(r"([\\{}\[\]*?])", r"\\\1", as_spark_has_it(place))
