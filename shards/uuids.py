"""Ids of topics, clusters and the like, as Kafka makes them."""

from base64 import urlsafe_b64encode
from uuid import UUID, uuid4


def random_uuid() -> UUID:
    """An id whose text (`uuid_text`) does not begin with a dash: commands would take it for an option.

    Source: Uuid.randomUuid (Apache Kafka).
    """
    while uuid_text(made := uuid4()).startswith("-"):
        pass
    return made


def uuid_text(made: UUID) -> str:
    """An id in 22 characters of base64. Source: Uuid.toString (Apache Kafka)."""
    return urlsafe_b64encode(made.bytes).decode().rstrip("=")
