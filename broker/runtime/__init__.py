"""What a process gives its parts: the shard's context, the log on stderr, printable text, and names for damaged files."""
