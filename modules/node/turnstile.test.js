import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect } from 'node:net'
import { after, before, beforeEach, test } from 'node:test'
import { setTimeout } from 'node:timers/promises'
import { Kafka, CompressionTypes, logLevel } from 'kafkajs'
import { Turnstile } from './turnstile.js'

let turnstile
before(async () => {
  turnstile = await Turnstile.start('--topic', 'orders:1')
  console.log('Turnstile runs as', turnstile.run)
})
after(() => turnstile.stop())
beforeEach(() => turnstile.reset())

async function connections (count) {
  const [host, port] = turnstile.bootstrap.split(':')
  const held = Array.from({ length: count }, () => connect(Number(port), host).on('error', () => {}))
  await Promise.all(held.map(each => once(each, 'connect')))
  return held
}

// Once there are any: a connection is refused a moment after it was opened.
async function refused () {
  for (let n = 0; n < 1000; n++) {
    const found = await turnstile.refusals()
    if (Object.keys(found).length) return found
    await setTimeout(10)
  }
  throw new Error('no connection was refused')
}

test('a cap refuses and says why', async () => {
  await turnstile.set('kafka_connections_max_per_ip', 3)
  const held = await connections(4)
  assert.deepEqual(await refused(), { ip_cap: 1 })
  held.forEach(each => each.destroy())
})

test('a quota throttles, always alike', async () => {
  const told = []
  for (let n = 0; n < 2; n++) {
    await turnstile.reset()
    await turnstile.quota({ 'client-id': 'importer' }, { producer_byte_rate: 1000 })
    const kafka = new Kafka({ clientId: 'importer', brokers: [turnstile.bootstrap], logLevel: logLevel.NOTHING })
    const producer = kafka.producer()
    await producer.connect()
    const [answer] = await producer.send({
      topic: 'orders', compression: CompressionTypes.None, messages: [{ value: 'x'.repeat(20_000) }]
    })
    assert.equal(answer.errorCode, 0)
    const { totals } = await turnstile.api.getLive()
    told.push(totals.throttled.producer_byte_rate.throttle_ms)
    await producer.disconnect()
  }
  // What the broker has told in all: since the start, so that the second is twice the first.
  assert.ok(told[0] > 0)
  assert.equal(told[1], 2 * told[0])
})

test('a reset forgets what a test has done', async () => {
  await turnstile.set('kafka_connections_max_per_ip', 1)
  const held = await connections(3)
  const ends = held.map(each => once(each, 'close'))
  held.forEach(each => each.resume())
  await refused()
  await turnstile.reset()
  assert.deepEqual(await turnstile.refusals(), {})
  await Promise.all(ends) // a reset closes every connection
})
