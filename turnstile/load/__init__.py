"""The load driver: connection storms and Kafka traffic, and what it saw set beside what the cluster counted.

It sees a broker only over the wire and over the admin HTTP. `run.py` is the way in; docs/load.md is for its users.
"""
