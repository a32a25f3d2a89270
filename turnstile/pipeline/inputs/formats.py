"""The formats of connection logs. No library is needed to name them."""

FORMATS = ("zeek", "vpcflow", "haproxy", "csv", "parquet", "journal")
WITH_USERS = ("csv", "parquet", "journal")
"""The formats that can have the user of a connection."""
