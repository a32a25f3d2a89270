"""Client quotas (KIP-13, KIP-124, KIP-599) across the shards of a broker."""
