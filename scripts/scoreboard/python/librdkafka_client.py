"""librdkafka, a member of a group of KIP-848's protocol and a producer of numbered records, with its default settings."""

import os
import signal
import threading

from confluent_kafka import Consumer, Producer

running = threading.Event()
running.set()
signal.signal(signal.SIGTERM, lambda *_: running.clear())
where = {"bootstrap.servers": os.environ["TURNSTILE_BOOTSTRAP"], "log_level": 0}


def consume() -> None:
    group = {"group.id": "readers", "group.protocol": "consumer", "auto.offset.reset": "earliest"}
    consumer = Consumer({**where, **group, "client.id": "consumer"})
    consumer.subscribe(["orders"])
    while running.is_set():
        consumer.poll(0.1)
    consumer.close()


reader = threading.Thread(target=consume)
reader.start()
producer = Producer({**where, "client.id": "producer"})
number = 0
while running.is_set():
    number += 1
    producer.produce("orders", f"{os.getpid()}:{number}".encode())
    producer.poll(0.02)
producer.flush(3)
reader.join()
