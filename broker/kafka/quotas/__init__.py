"""Client quotas: their APIs, and the quota of controller mutations (KIP-599)."""
