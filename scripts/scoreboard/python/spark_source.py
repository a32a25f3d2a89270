"""Spark's structured streaming with the default settings of its source and its sink for Kafka: it reads a topic, and writes
numbered records to another. Its arguments are the connector's jars; run by a Python that has pyspark."""

import os
import signal
import sys
import tempfile
import threading

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

spark = SparkSession.builder.master("local[2]").config(map={
    "spark.jars": ",".join(sys.argv[1:]), "spark.driver.memory": "512m", "spark.driver.host": "127.0.0.1",
    "spark.ui.enabled": False, "spark.ui.showConsoleProgress": False, "spark.log.level": "OFF",
}).getOrCreate()  # fmt: skip
kafka = {"kafka.bootstrap.servers": os.environ["TURNSTILE_BOOTSTRAP"]}
read = spark.readStream.format("kafka").options(**kafka, subscribe="read").load().select("value")
numbers = spark.readStream.format("rate").option("rowsPerSecond", 50).load()
numbered = numbers.select(
    F.concat(F.lit(f"{os.getpid()}:"), (F.col("value") + 1).cast("string")).cast("binary").alias("value")
)
folder = tempfile.mkdtemp(prefix="spark-source-")
written = (
    numbered.union(read).writeStream.format("kafka").options(**kafka, topic="orders", checkpointLocation=folder).start()
)
running = threading.Event()
running.set()
signal.signal(signal.SIGTERM, lambda *_: running.clear())
while running.is_set() and written.isActive:
    written.awaitTermination(0.2)
written.stop()
