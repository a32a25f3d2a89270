"""The partition of a topic, as logs, committed offsets and transactions name it."""

TopicPartition = tuple[str, int]
"""(name of the topic, number of the partition)."""
