"""The load driver: connection storms and Kafka traffic, reconciled with the cluster's own counters.

It sees a broker only over the wire and over the admin HTTP. `driver.py` is its entry point; docs/load.md is for its users.
"""
