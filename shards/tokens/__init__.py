"""The connection-token protocol: pools at their home, tokens at their holders, and what travels between them."""
