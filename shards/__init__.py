"""Ownership in a sharded broker: limits, and how tokens, rates and configuration move between the processes of a cluster."""
