"""The means that a process gives its parts: the shard's context, the log on stderr, printable text, names of damaged files, the
collector."""
