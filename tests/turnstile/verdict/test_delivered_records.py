"""The log read back, by a consumer that is slow."""

import confluent_kafka
import pytest

from turnstile.verdict import delivered_records


class Slow:
    """Of three records, each comes `every_s` after the one before."""

    every_s = 10.0
    now_s = 0.0

    def __init__(self, options):
        self._number = 0

    def list_topics(self, timeout):
        partitions = type("Topic", (), {"topic": "orders", "partitions": {0: None}})
        return type("Metadata", (), {"topics": {"orders": partitions}})

    def get_watermark_offsets(self, place, timeout):
        return 0, 3

    def assign(self, places):
        pass

    def consume(self, most, timeout):
        type(self).now_s += timeout
        if self.now_s < self.every_s * self._number:
            return []
        self._number += 1
        return [Message(f"{self._number}")]

    def close(self):
        pass


class Message:
    def __init__(self, value):
        self._value = value

    def value(self):
        return self._value

    def topic(self):
        return "orders"

    def partition(self):
        return 0

    def timestamp(self):
        return 1, 0

    def key(self):
        return None

    def error(self):
        return None


@pytest.mark.parametrize(("every_s", "told"), [(10.0, [b"1", b"2", b"3"]), (16.0, None)])
def test_a_slow_log_is_waited_for_as_long_as_records_come(every_s, told, monkeypatch):
    class Consumer(Slow):
        pass

    Consumer.every_s = every_s
    monkeypatch.setattr(confluent_kafka, "Consumer", Consumer)
    monkeypatch.setattr(delivered_records.time, "monotonic", lambda: Consumer.now_s)
    found = delivered_records.read_records("127.0.0.1:1")
    assert (found and [record.value for record in found]) == told
