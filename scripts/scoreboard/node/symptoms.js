// Two records produced, one after the other, with kafkajs or @platformatic/kafka, with their default logs: what its user sees.
import { Kafka, Partitioners } from "kafkajs";
import { Producer } from "@platformatic/kafka";

const where = process.env.TURNSTILE_BOOTSTRAP;
const value = "x".repeat(50000);
const began = Date.now();
const told = (what) => { console.log(`returned after ${((Date.now() - began) / 1000).toFixed(1)} s: ${what}`); process.exit(0); };
setTimeout(() => told("nothing yet"), 20000);
try {
  if (process.argv[2] === "kafkajs") {
    const producer = new Kafka({ brokers: [where], clientId: "symptoms" }).producer({ createPartitioner: Partitioners.DefaultPartitioner });
    await producer.connect();
    for (let sent = 0; sent < 2; sent++) await producer.send({ topic: "orders", messages: [{ value }] });
  } else {
    const producer = new Producer({ clientId: "symptoms", bootstrapBrokers: [where] });
    for (let sent = 0; sent < 2; sent++) await producer.send({ messages: [{ topic: "orders", value: Buffer.from(value) }] });
  }
  told("null");
} catch (error) {
  told(`${error.name}: ${error.message}`);
}
