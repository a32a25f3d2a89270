"""aiokafka: a producer of numbered records and a member of a group, with its default settings."""

import asyncio
import os
import signal

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer

bootstrap = os.environ["TURNSTILE_BOOTSTRAP"]


async def consume(stopping: asyncio.Event) -> None:
    consumer = AIOKafkaConsumer(
        "orders", bootstrap_servers=bootstrap, client_id="consumer", group_id="readers", auto_offset_reset="earliest"
    )
    await consumer.start()
    while not stopping.is_set():
        await consumer.getmany(timeout_ms=100)
    await consumer.stop()


async def main() -> None:
    stopping = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stopping.set)
    reader = asyncio.create_task(consume(stopping))
    producer = AIOKafkaProducer(bootstrap_servers=bootstrap, client_id="producer")
    await producer.start()
    number = 0
    while not stopping.is_set():
        number += 1
        sending = asyncio.ensure_future(producer.send("orders", f"{os.getpid()}:{number}".encode()))
        sending.add_done_callback(lambda done: done.exception())
        await asyncio.sleep(0.02)
    await producer.stop()
    await reader


asyncio.run(main())
