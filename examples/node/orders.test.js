// Tests of a Node client (kafkajs) under limits: `npm test`, with the turnstile command on the PATH.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect } from 'node:net'
import { after, before, beforeEach, test } from 'node:test'
import kafkajs from 'kafkajs'
import { Cluster } from './cluster.js'

let cluster
before(async () => { cluster = await Cluster.start('--topic', 'orders:3', '--set', 'group.initial.rebalance.delay.ms=0') })
after(() => cluster.stop())
beforeEach(() => cluster.reset())

const client = (clientId) => new kafkajs.Kafka({
  clientId, brokers: [cluster.bootstrap], logLevel: kafkajs.logLevel.NOTHING
})
const producerOf = (clientId) => client(clientId).producer({ createPartitioner: kafkajs.Partitioners.DefaultPartitioner })

test('an order arrives', async () => {
  const producer = producerOf('shop')
  const consumer = client('shop').consumer({ groupId: 'warehouse', maxWaitTimeInMs: 100 })
  await Promise.all([producer.connect(), consumer.connect()])
  await producer.send({ topic: 'orders', messages: [{ value: 'one' }] })
  await consumer.subscribe({ topics: ['orders'], fromBeginning: true })
  const order = await new Promise((resolve) => {
    consumer.run({ eachMessage: async ({ message }) => resolve(message.value.toString()) })
  })
  assert.equal(order, 'one')
  await Promise.all([producer.disconnect(), consumer.disconnect()])
})

test('a fourth connection is refused', async () => {
  await cluster.set('kafka_connections_max_per_ip', 3)
  const [host, port] = cluster.bootstrap.split(':')
  const sockets = Array.from({ length: 4 }, () => connect(port, host))
  for (const socket of sockets) socket.on('error', () => {}).resume()
  await Promise.race(sockets.map((socket) => once(socket, 'close'))) // before it is answered a byte
  assert.equal(await cluster.refused(), 1)
  for (const socket of sockets) socket.destroy()
})

test('a producer over its quota is told to wait', async () => {
  await cluster.quota({ 'client-id': 'importer' }, { producer_byte_rate: 1000 })
  const producer = producerOf('importer')
  await producer.connect()
  const [told] = await producer.send({ topic: 'orders', messages: [{ value: 'x'.repeat(50_000) }] })
  assert.equal(told.errorCode, 0)
  const { totals } = await cluster.ask('GET', '/v1/live')
  assert.ok(totals.throttled.producer_byte_rate.throttle_ms > 1000)
  await producer.disconnect()
})
