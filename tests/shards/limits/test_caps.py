"""Which of several caps rules a pool."""

from shards.limits.caps import UNLIMITED, CapRule, tightest


def test_no_cap_at_all_is_unlimited() -> None:
    assert tightest([]) is UNLIMITED
    assert tightest([CapRule(None, ""), CapRule(None, "")]) is UNLIMITED


def test_the_lowest_cap_rules_whatever_its_vocabulary() -> None:
    redpanda, kafka = CapRule(10, "kafka_connections_max"), CapRule(9, "max.connections", wait=True)
    assert tightest([redpanda, kafka, UNLIMITED]) == kafka
    assert tightest([UNLIMITED, redpanda, kafka._replace(cap=11)]) == redpanda


def test_a_cap_of_zero_is_a_cap() -> None:
    assert tightest([CapRule(0, "kafka_connections_max_per_ip"), CapRule(5, "max.connections.per.ip")]).cap == 0


def test_at_equal_caps_refusing_wins_over_waiting_and_the_first_over_the_second() -> None:
    refuse, wait = CapRule(5, "kafka_connections_max"), CapRule(5, "max.connections", wait=True)
    assert tightest([wait, refuse]) == refuse
    assert tightest([CapRule(5, "a"), CapRule(5, "b")]).name == "a"
