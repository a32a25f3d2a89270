// Turnstile for tests in Node, in a container or, where no Docker is, as a process.
//
// Which it is, says the variable TURNSTILE_RUN: container (the default), or process, which needs the turnstile command.
// TURNSTILE_IMAGE names the image.
import { spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { AdminApi } from './admin.js'

const IMAGE = 'localhost/turnstile:latest'

export class Turnstile {
  // Resolves when every process of the cluster accepts connections. `options` are those of `turnstile up`.
  static async start (...options) {
    const cluster = new Turnstile()
    cluster.run = process.env.TURNSTILE_RUN ?? 'container'
    cluster.token = randomBytes(16).toString('hex')
    if (cluster.run === 'container') await cluster.startContainer(options)
    else if (cluster.run === 'process') await cluster.startProcess(options)
    else throw new Error(`TURNSTILE_RUN cannot be ${cluster.run}: container or process`)
    return cluster
  }

  async startContainer (options) {
    const { GenericContainer, Wait } = await import('testcontainers')
    const container = await new GenericContainer(process.env.TURNSTILE_IMAGE ?? IMAGE)
      .withCommand(['up', ...options])
      .withEnvironment({ TURNSTILE_ADMIN_TOKEN: this.token })
      .withExposedPorts(9092, 9644)
      .withWaitStrategy(Wait.forLogMessage('Turnstile is ready.'))
      .start()
    this.stop = () => container.stop()
    this.bootstrap = `${container.getHost()}:${container.getMappedPort(9092)}`
    this.admin = `http://${container.getHost()}:${container.getMappedPort(9644)}`
    // The port is known only now: from here on clients are told of it.
    this.meetApi()
    await this.api.putAdvertised({ addresses: this.bootstrap })
  }

  async startProcess (options) {
    const up = ['up', '--json', '--end-with-stdin', '--port', '0', '--admin-port', '0', ...options]
    const env = { ...process.env, TURNSTILE_ADMIN_TOKEN: this.token }
    const child = spawn('turnstile', up, { stdio: ['pipe', 'pipe', 'inherit'], env })
    const exit = once(child, 'exit')
    this.stop = async () => {
      child.stdin.end() // with which it ends, also if this process is killed
      await exit
    }
    const [line] = await once(createInterface(child.stdout), 'line')
    const told = JSON.parse(line)
    if (told.error) throw new Error(told.error)
    this.admin = told.admin
    this.bootstrap = told.listeners[0].address
    this.meetApi()
  }

  // `api` has the calls of the admin API; a change resolves once it is in force.
  meetApi () {
    this.api = new AdminApi(this.admin, this.token, 'tests in Node')
  }

  // When this resolves, every process of the cluster enforces the setting.
  set (name, value) {
    return this.api.putConfig({ upsert: { [name]: value } })
  }

  // Quotas of an entity such as { 'client-id': 'app' }, likewise.
  quota (entity, rates) {
    return this.api.putQuotas({ alter: [{ entity, set: rates }] })
  }

  // As it was when it started: no record, no group, no limit that a test has set, no connection.
  reset () {
    return this.api.reset()
  }

  // Connections refused since the reset, by the limit that refused them.
  async refusals () {
    const found = {}
    for (const { reasons } of (await this.api.getRefusals({ by: 'ip' })).refusals) {
      for (const [reason, count] of Object.entries(reasons)) found[reason] = (found[reason] ?? 0) + count
    }
    return found
  }
}
