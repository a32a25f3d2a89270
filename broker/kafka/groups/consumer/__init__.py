"""Groups of the consumer protocol (KIP-848) as pure state: members, target assignment, reconciliation. No I/O, no clock."""
