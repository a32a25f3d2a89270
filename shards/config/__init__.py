"""The versioned configuration: the coordinator that changes it, the store that keeps it, the image that shards decide by."""
