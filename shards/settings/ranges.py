"""The largest numbers of the types that Kafka (Java: short, int, long) and Redpanda (uint32_t) keep their settings in."""

SHORT_MAX = 2**15 - 1
INT_MAX = 2**31 - 1
LONG_MAX = 2**63 - 1
UINT32_MAX = 2**32 - 1
