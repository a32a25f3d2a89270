"""Two records produced, one after the other, by confluent-kafka, kafka-python, aiokafka or kcat: what its user sees by default."""

import asyncio
import logging
import os
import subprocess
import sys
import time

logging.basicConfig(format="%(levelname)s:%(name)s:%(message)s", level=logging.WARNING)
WHERE = os.environ["TURNSTILE_BOOTSTRAP"]
VALUE = b"x" * 50_000


def confluent() -> object:
    from confluent_kafka import Producer

    errors: list[object] = []
    producer = Producer(
        {"bootstrap.servers": WHERE, "client.id": "symptoms", "error_cb": lambda error: print("error_cb:", error)}
    )
    for _ in range(2):
        producer.produce("orders", VALUE, on_delivery=lambda error, _: errors.append(error))
        if producer.flush(10):
            return "nothing after 10 s"
    return errors[-1]


def kafka_python() -> object:
    from kafka import KafkaProducer

    producer = KafkaProducer(bootstrap_servers=WHERE, client_id="symptoms")
    for _ in range(2):
        producer.send("orders", VALUE).get(timeout=10)
    return None


async def aiokafka() -> object:
    from aiokafka import AIOKafkaProducer

    producer = AIOKafkaProducer(bootstrap_servers=WHERE, client_id="symptoms")
    try:
        await producer.start()
        for _ in range(2):
            await asyncio.wait_for(producer.send_and_wait("orders", VALUE), 10)
    finally:
        await asyncio.wait_for(producer.stop(), 5)
    return None


def kcat() -> object:
    command = ["kcat", "-P", "-b", WHERE, "-t", "orders", "-X", "client.id=symptoms"]
    done = subprocess.run(command, input=VALUE + b"\n" + VALUE, timeout=70)
    return f"exit code {done.returncode}"


began = time.monotonic()
PROGRAMS = {
    "aiokafka": lambda: asyncio.run(aiokafka()),
    "confluent-kafka": confluent,
    "kafka-python": kafka_python,
    "kcat": kcat,
}
try:
    result = PROGRAMS[sys.argv[1]]()
except subprocess.TimeoutExpired:
    result = "nothing yet"
except Exception as error:
    result = f"{type(error).__name__}: {error}"
print(f"returned after {time.monotonic() - began:.1f} s: {result}", flush=True)
os._exit(0)
