"""Partitions and other records as append-only files: batches, segments, recovery, producer state, reading."""
