"""The same without pytest: `python -m unittest examples/test_with_unittest.py`."""

import unittest

from confluent_kafka import Producer

import turnstile


class ProducerUnderQuota(unittest.TestCase):
    cluster: turnstile.Cluster

    @classmethod
    def setUpClass(cls) -> None:
        cls.cluster = turnstile.Cluster(topics={"orders": 3}).start()

    @classmethod
    def tearDownClass(cls) -> None:
        cls.cluster.stop()

    def setUp(self) -> None:
        self.cluster.reset()

    def test_it_is_told_to_wait(self) -> None:
        self.cluster.quota("client-id=importer", producer_byte_rate=1000)
        self.produce(b"x" * 50_000)
        self.assertGreater(self.cluster.throttled()["producer_byte_rate"].throttle_ms, 1000)

    def test_without_a_quota_it_is_not(self) -> None:
        self.produce(b"x" * 50_000)
        self.assertEqual(self.cluster.throttled(), {})

    def produce(self, value: bytes) -> None:
        producer = Producer({"bootstrap.servers": self.cluster.bootstrap, "client.id": "importer", "log_level": 0})
        producer.produce("orders", value)
        self.assertEqual(producer.flush(10), 0)
