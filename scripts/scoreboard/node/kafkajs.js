// kafkajs: a producer of numbered records and a member of a group, with its default settings.
import { Kafka, Partitioners, logLevel } from "kafkajs";

const kafka = new Kafka({ brokers: [process.env.TURNSTILE_BOOTSTRAP], clientId: "client", logLevel: logLevel.NOTHING });
const producer = kafka.producer({ createPartitioner: Partitioners.DefaultPartitioner });
const consumer = kafka.consumer({ groupId: "readers" });
let running = true;
process.on("SIGTERM", () => { running = false; });
process.on("unhandledRejection", () => {});
await producer.connect();
await consumer.connect();
await consumer.subscribe({ topics: ["orders"], fromBeginning: true });
consumer.run({ eachMessage: async () => {} });
for (let number = 1; running; number++) {
  producer.send({ topic: "orders", messages: [{ value: `${process.pid}:${number}` }] }).catch(() => {});
  await new Promise((done) => setTimeout(done, 20));
}
await Promise.allSettled([consumer.disconnect(), producer.disconnect()]);
process.exit(0);
