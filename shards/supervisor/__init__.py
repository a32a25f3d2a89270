"""The processes of a cluster: what it consists of, the sockets they inherit, and restarting what dies."""
