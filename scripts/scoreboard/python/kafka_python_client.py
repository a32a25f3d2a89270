"""kafka-python: a producer of numbered records and a member of a group, with its default settings."""

import contextlib
import os
import signal
import threading
import time

from kafka import KafkaConsumer, KafkaProducer
from kafka.errors import KafkaError

running = threading.Event()
running.set()
signal.signal(signal.SIGTERM, lambda *_: running.clear())
bootstrap = os.environ["TURNSTILE_BOOTSTRAP"]


def consume() -> None:
    consumer = KafkaConsumer(
        "orders", bootstrap_servers=bootstrap, client_id="consumer", group_id="readers", auto_offset_reset="earliest"
    )
    while running.is_set():
        consumer.poll(timeout_ms=100)
    consumer.close()


reader = threading.Thread(target=consume, daemon=True)
reader.start()
producer = KafkaProducer(bootstrap_servers=bootstrap, client_id="producer")
number = 0
while running.is_set():
    number += 1
    with contextlib.suppress(KafkaError):
        producer.send("orders", f"{os.getpid()}:{number}".encode())
    time.sleep(0.02)
producer.close(timeout=3)
reader.join(3)
