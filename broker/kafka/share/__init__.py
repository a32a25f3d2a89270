"""Share partitions (KIP-932): which records of a partition are given to whom, and what became of them."""
