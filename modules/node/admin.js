// A client of Turnstile's admin API, which needs Node 20 alone: `new AdminApi('http://127.0.0.1:9644')`.
// admin.d.ts has its types. Generated from the API's OpenAPI document by `make clients`: changes belong there.

// The API answered with an error: `status` is HTTP's, `told` the JSON of its body; the message is its sentence.
export class AdminRefused extends Error {
  constructor (status, told) {
    super('message' in told ? told.message : Object.values(told).join('\n'))
    this.status = status
    this.told = told
  }
}

export class AdminApi {
  // `who` is what the history of changes names the caller.
  constructor (url, token, who = 'a client in Node') {
    this.url = url
    this.headers = { 'content-type': 'application/json', 'x-turnstile-who': who }
    if (token) this.headers.authorization = `Bearer ${token}`
  }

  async text (method, path, query = {}, body = undefined) {
    const asked = new URLSearchParams(Object.entries(query).filter(([, value]) => value != null)).toString()
    const answer = await fetch(this.url + path + (asked && `?${asked}`), {
      method, headers: this.headers, body: body && JSON.stringify(body)
    })
    const told = await answer.text()
    if (answer.ok) return told
    let fault = { message: told } // of something before the API
    try { fault = JSON.parse(told) } catch {}
    throw new AdminRefused(answer.status, fault)
  }

  async json (method, path, query, body) {
    return JSON.parse(await this.text(method, path, query, body))
  }

  getConfig (query) {
    return this.json('GET', '/v1/cluster_config', query)
  }

  putConfig (body, query) {
    return this.json('PUT', '/v1/cluster_config', query, body)
  }

  getConfigSchema () {
    return this.json('GET', '/v1/cluster_config/schema')
  }

  getConfigStatus () {
    return this.json('GET', '/v1/cluster_config/status')
  }

  getBrokerOverrides (query) {
    return this.json('GET', '/v1/cluster_config/broker_overrides', query)
  }

  getConfigHistory (query) {
    return this.json('GET', '/v1/config/history', query)
  }

  getNotes () {
    return this.json('GET', '/v1/notes')
  }

  getAdvertised () {
    return this.json('GET', '/v1/advertise')
  }

  putAdvertised (body) {
    return this.json('PUT', '/v1/advertise', {}, body)
  }

  deleteAdvertised (query) {
    return this.json('DELETE', '/v1/advertise', query)
  }

  getQuotas (query) {
    return this.json('GET', '/v1/quotas', query)
  }

  putQuotas (body, query) {
    return this.json('PUT', '/v1/quotas', query, body)
  }

  getObservedQuotas () {
    return this.json('GET', '/v1/quotas/observed')
  }

  explainQuotas (query) {
    return this.json('GET', '/v1/quotas/explain', query)
  }

  explain (query) {
    return this.json('GET', '/v1/explain', query)
  }

  getUsers () {
    return this.json('GET', '/v1/users')
  }

  putUser (body) {
    return this.json('PUT', '/v1/users', {}, body)
  }

  getFaults () {
    return this.json('GET', '/v1/faults')
  }

  putFaults (body) {
    return this.json('PUT', '/v1/faults', {}, body)
  }

  getTelemetry () {
    return this.json('GET', '/v1/telemetry')
  }

  putSubscription (body) {
    return this.json('PUT', '/v1/telemetry', {}, body)
  }

  getLastPush (clientInstanceId) {
    return this.json('GET', `/v1/telemetry/${encodeURIComponent(clientInstanceId)}`)
  }

  getRefusals (query) {
    return this.json('GET', '/v1/refusals', query)
  }

  getSources () {
    return this.json('GET', '/v1/sources')
  }

  getProxies () {
    return this.json('GET', '/v1/proxies')
  }

  getUtilisation (query) {
    return this.json('GET', '/v1/utilisation', query)
  }

  getWatch (query) {
    return this.json('GET', '/v1/watch', query)
  }

  getTokens () {
    return this.json('GET', '/v1/tokens')
  }

  getShards () {
    return this.json('GET', '/v1/shards')
  }

  getLive (query) {
    return this.json('GET', '/v1/live', query)
  }

  getSeries (query) {
    return this.json('GET', '/v1/series', query)
  }

  getCluster () {
    return this.json('GET', '/v1/cluster')
  }

  getDamaged () {
    return this.json('GET', '/v1/damaged')
  }

  reset () {
    return this.json('POST', '/v1/reset')
  }

  shutdown () {
    return this.json('POST', '/v1/shutdown')
  }

  getMetrics () {
    return this.text('GET', '/metrics')
  }

  getPublicMetrics () {
    return this.text('GET', '/public_metrics')
  }

  getHealth () {
    return this.json('GET', '/healthz')
  }

  getPage () {
    return this.text('GET', '/')
  }

  getPageFile (name) {
    return this.text('GET', `/page/${encodeURIComponent(name)}`)
  }

  listKafkaConnections (body) {
    return this.json('POST', '/redpanda.core.admin.v2.ClusterService/ListKafkaConnections', {}, body)
  }

  listBrokers (body) {
    return this.json('POST', '/redpanda.core.admin.v2.BrokerService/ListBrokers', {}, body)
  }

  getBroker (body) {
    return this.json('POST', '/redpanda.core.admin.v2.BrokerService/GetBroker', {}, body)
  }

  getOpenapi () {
    return this.json('GET', '/v1/openapi.json')
  }
}
