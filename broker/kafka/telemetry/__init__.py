"""Client telemetry (KIP-714): who is to push what, and what was pushed."""
