"""Records of partitions: Produce, Fetch and fetch sessions, ListOffsets, DeleteRecords, log directories."""
