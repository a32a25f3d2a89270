"""What a Kafka client connects to: listeners, admission, requests, the log, groups; and the turnstile command."""
