"""The counters of a shard; each outcome of a connection and each move of tokens, counted and journaled in one place."""
