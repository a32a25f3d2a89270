"""Kafka's wire format: wire.py is what the others use, and the only module that knows kio."""
