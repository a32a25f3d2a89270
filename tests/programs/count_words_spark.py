"""Spark's structured streaming from Kafka to Kafka: counts the words of a topic; run by the Python of its environment. A query
that fails is started again from its checkpoint, as its operator would: one that does a batch again can fail (SPARK-55271)."""

import sys

from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

bootstrap, folder, *jars = sys.argv[1:]
spark = SparkSession.builder.master("local[2]").config(map={
    "spark.jars": ",".join(jars), "spark.driver.memory": "512m", "spark.driver.host": "127.0.0.1", "spark.ui.enabled": False,
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC", "spark.ui.showConsoleProgress": False,
    "spark.sql.shuffle.partitions": 2, "spark.sql.codegen.wholeStage": False, "spark.sql.warehouse.dir": f"{folder}/warehouse",
}).getOrCreate()  # fmt: skip
# A process of its own, which a test kills.
print("jvm", spark._jvm.java.lang.ProcessHandle.current().pid(), flush=True)
kafka = {"kafka.bootstrap.servers": bootstrap}
lines = spark.readStream.format("kafka").options(**kafka, subscribe="lines", startingOffsets="earliest").load()
words = lines.select(F.explode(F.split(F.col("value").cast("string"), " ")).alias("key"))
counts = words.groupBy("key").agg(F.count("*").cast("string").alias("value"))
writer = counts.writeStream.format("kafka").options(**kafka, topic="counts", checkpointLocation=f"{folder}/checkpoint")
for _ in range(3):
    try:
        writer.outputMode("update").start().awaitTermination()
    except StreamingQueryException as failed:
        print("started again after", failed, flush=True)
