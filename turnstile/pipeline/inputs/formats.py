"""The formats of connection logs. No library is needed to name them."""

FORMATS = ("zeek", "vpcflow", "haproxy", "csv", "parquet", "journal")
WITH_USERS = ("csv", "parquet", "journal")
"""Those that can tell the user of a connection."""
