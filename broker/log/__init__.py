"""Partitions as append-only files: batches, segments, recovery, producer state, reading."""
