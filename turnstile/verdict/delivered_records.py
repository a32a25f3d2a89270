"""The records that a client has produced, read back from the cluster with a client of another make."""

from __future__ import annotations

import time

from turnstile.verdict.timeline import Record

MOST = 200_000
"""Records that are read of all topics; beyond, delivery is not judged."""
CLIENT_ID = "turnstile-verdict"
_ANSWER_S = 15.0
"""The longest wait for an answer, and from one record to the next."""
_LOOK_S = 0.2


def read_records(bootstrap: str) -> list[Record] | None:
    """Every record of every topic that is no internal one; None when there are more than MOST, or they can't be read."""
    from confluent_kafka import Consumer, KafkaException, TopicPartition

    options: dict[str, object] = {
        "bootstrap.servers": bootstrap,
        "group.id": CLIENT_ID,
        "client.id": CLIENT_ID,
        "log_level": 0,
    }
    consumer = Consumer({**options, "enable.auto.commit": False})
    try:
        topics = consumer.list_topics(timeout=_ANSWER_S).topics
        places = [
            TopicPartition(t.topic, p, 0) for t in topics.values() if not t.topic.startswith("__") for p in t.partitions
        ]
        ends = {(p.topic, p.partition): consumer.get_watermark_offsets(p, timeout=_ANSWER_S) for p in places}
        wanted = sum(high - low for low, high in ends.values())
        if wanted > MOST:
            return None
        found: list[Record] = []
        consumer.assign([TopicPartition(topic, number, low) for (topic, number), (low, _) in ends.items()])
        came_s = time.monotonic()
        while len(found) < wanted:
            messages = consumer.consume(min(wanted - len(found), 10_000), timeout=_LOOK_S)
            fresh = [
                Record(m.topic() or "", m.partition() or 0, m.timestamp()[1], _bytes(m.key()), _bytes(m.value()))
                for m in messages
                if m.error() is None
            ]
            if fresh:
                came_s = time.monotonic()
            elif time.monotonic() > came_s + _ANSWER_S:
                return None
            found += fresh
        return found
    except KafkaException:
        return None
    finally:
        consumer.close()


def _bytes(data: str | bytes | None) -> bytes | None:
    return data.encode() if isinstance(data, str) else data
