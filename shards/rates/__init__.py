"""Connection creation rates (KIP-612) across the shards of a broker, and of the cluster."""
