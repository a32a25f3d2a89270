"""The broker that a Kafka client connects to: listeners, admission, requests, the log, groups, the journal and the admin API."""
