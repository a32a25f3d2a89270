"""Drives connections and Kafka traffic against a broker, seen only over the wire and its admin API."""
