"""What people and tools see: the admin API, metrics, the live page, turnstile top."""
