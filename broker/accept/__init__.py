"""What happens to a new connection: listeners, admission, and the waits that rates and caps ask for."""
