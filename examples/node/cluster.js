// A `turnstile up` for tests. It ends when its standard input does: with this process, however that ends.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'

export class Cluster {
  static async start (...options) {
    const up = ['up', '--json', '--end-with-stdin', '--port', '0', '--admin-port', '0', ...options]
    const cluster = new Cluster()
    cluster.process = spawn('turnstile', up, { stdio: ['pipe', 'pipe', 'inherit'] })
    // Its first line, once every process accepts connections.
    const [line] = await once(createInterface(cluster.process.stdout), 'line')
    const started = JSON.parse(line)
    if (started.error) throw new Error(started.error)
    cluster.admin = started.admin
    cluster.bootstrap = started.listeners[0].address
    return cluster
  }

  async stop () {
    const exit = once(this.process, 'exit')
    this.process.stdin.end()
    await exit
  }

  // The cluster as it was when it started, in milliseconds: a test begins with nothing of the tests before it.
  reset () {
    return this.ask('POST', '/v1/reset')
  }

  // When this returns, every process of the cluster enforces the setting.
  set (name, value) {
    return this.ask('PUT', '/v1/cluster_config', { upsert: { [name]: value }, remove: [] })
  }

  quota (entity, rates) {
    return this.ask('PUT', '/v1/quotas', { alter: [{ entity, set: rates, remove: [] }] })
  }

  // Connections refused since the reset.
  async refused () {
    const { refusals } = await this.ask('GET', '/v1/refusals?by=ip')
    return refusals.reduce((sum, each) => sum + each.count, 0)
  }

  async ask (method, path, body) {
    const headers = { 'content-type': 'application/json', 'x-turnstile-who': 'npm test' }
    const answer = await fetch(this.admin + path, { method, headers, body: body && JSON.stringify(body) })
    if (!answer.ok) throw new Error(`${method} ${path}: ${await answer.text()}`)
    return answer.json()
  }
}
