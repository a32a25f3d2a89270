// @platformatic/kafka: a producer of numbered records and a member of a group, with its default settings.
import { Consumer, Producer, stringDeserializers, stringSerializers } from "@platformatic/kafka";

const bootstrapBrokers = [process.env.TURNSTILE_BOOTSTRAP];
const producer = new Producer({ clientId: "producer", bootstrapBrokers, serializers: stringSerializers });
const consumer = new Consumer({ clientId: "consumer", groupId: "readers", bootstrapBrokers, deserializers: stringDeserializers });
let running = true;
process.on("SIGTERM", () => { running = false; });
process.on("unhandledRejection", () => {});
process.on("uncaughtException", () => {});

async function consume() {
  while (running) {
    try {
      const stream = await consumer.consume({ topics: ["orders"], autocommit: true });
      for await (const message of stream) if (!running) break;
    } catch {
      await new Promise((done) => setTimeout(done, 1000)); // as long as the library's own retryDelay
    }
  }
}
consume();
for (let number = 1; running; number++) {
  producer.send({ messages: [{ topic: "orders", value: `${process.pid}:${number}` }] }).catch(() => {});
  await new Promise((done) => setTimeout(done, 20));
}
await Promise.allSettled([consumer.close(true), producer.close()]);
process.exit(0);
