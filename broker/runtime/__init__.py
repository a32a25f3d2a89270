"""What the parts of a process are given by it: the shard's context, its log to stderr, files set aside."""
