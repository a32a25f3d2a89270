"""The effects of candidate client quotas on a log of requests."""
