"""Configs of brokers, topics, groups, client metrics and loggers: Describe and Alter."""
