"""A producer of numbered records and a member of a group, librdkafka's with its default settings, to be judged:

turnstile verdict --topic orders -- python examples/client_to_judge.py [GROUP_PROTOCOL]
"""

import os
import signal
import sys
import threading

from confluent_kafka import Consumer, Producer

running = threading.Event()
running.set()
signal.signal(signal.SIGTERM, lambda *_: running.clear())
where = {"bootstrap.servers": os.environ["TURNSTILE_BOOTSTRAP"], "log_level": 0}
group = {"group.id": "readers", "group.protocol": sys.argv[1] if sys.argv[1:] else "classic"}


def consume() -> None:
    consumer = Consumer({**where, **group, "client.id": "consumer", "auto.offset.reset": "earliest"})
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
