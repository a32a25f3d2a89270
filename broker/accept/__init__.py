"""The way of a new connection: listeners, admission, and the waits that rates and caps impose."""
