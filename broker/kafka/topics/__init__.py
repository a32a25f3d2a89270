"""Topics: Metadata, CreateTopics, CreatePartitions, DeleteTopics, reassignments, and their guards."""
