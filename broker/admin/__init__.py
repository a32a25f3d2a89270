"""The parts of a broker that people and tools see: the admin API, metrics, the live page, turnstile top."""
