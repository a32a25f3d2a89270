"""Faults: what a shard does wrong on purpose, for an API, a client id, an address or a connection."""
