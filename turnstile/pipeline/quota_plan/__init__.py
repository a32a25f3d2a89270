"""What candidate client quotas would have done to a log of requests."""
