"""Kafka's wire format: wire.py is its interface, and the only module that imports kio."""
