"""The processes of a cluster: the launch, and the mains of the coordinator, the converter and the shards."""
