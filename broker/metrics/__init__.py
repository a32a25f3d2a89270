"""What a shard counts: connections and tokens, each counted and journaled in one place, and the file of its counters."""
