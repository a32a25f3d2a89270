"""Streams groups (KIP-1071): topology, members and tasks as pure state, with their home and their API."""
