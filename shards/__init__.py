"""Ownership in a sharded broker: limits, and how tokens, rates and configuration move between the processes of a cluster."""

from shards.compiled import use_compiled

is_compiled = use_compiled(__name__)
