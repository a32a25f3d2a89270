"""Connection logs of any format as one canonical DataFrame of connections."""
