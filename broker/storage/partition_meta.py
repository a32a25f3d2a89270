"""`partition.meta`: which topic a partition's directory belongs to, and where its log starts. Checked by a checksum."""

import os
from typing import NamedTuple
from uuid import UUID

from broker.runtime.set_aside import set_aside
from broker.storage.files import is_short_of_resources, read_checked, replace_checked

NAME = "partition.meta"


class PartitionMeta(NamedTuple):
    """`start_offset`: the first offset that DeleteRecords and retention have left."""

    topic_id: UUID
    start_offset: int


def load(directory: str) -> PartitionMeta | None:
    """None if there is none, or one that can't be read: that one is set aside. Raises OSError.

    The caller takes the directory for its topic's own then: a directory of a deleted topic is deleted with the topic.
    """
    path = os.path.join(directory, NAME)
    try:
        value = read_checked(path)
    except FileNotFoundError:
        return None
    except OSError as fault:
        if is_short_of_resources(fault):
            raise
        value = None
    if value is None:
        set_aside(path, "its checksum does not hold")
        return None
    topic_id, start_offset = value
    return PartitionMeta(UUID(bytes=topic_id), start_offset)


def save(directory: str, meta: PartitionMeta) -> None:
    """Raises OSError."""
    replace_checked(os.path.join(directory, NAME), [meta.topic_id.bytes, meta.start_offset])
