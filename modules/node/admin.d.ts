// The types of admin.js. Generated from the API's OpenAPI document by `make clients`: changes belong there.

export class AdminRefused extends Error {
  status: number
  told: Record<string, unknown>
}

export class AdminApi {
  /** `who` is what the history of changes names the caller. */
  constructor (url: string, token?: string, who?: string)

  /** The settings and their values: Redpanda's, Kafka's and Turnstile's own. */
  getConfig (query?: { key?: string, include_defaults?: boolean, broker?: number, observe?: boolean }): Promise<Record<string, string[] | boolean | number | string | null>>

  /** Changes settings. The answer comes when every shard enforces them, or counts by them if they are observed limits. */
  putConfig (body: SettingsChange, query?: { dry_run?: boolean, broker?: number, observe?: boolean }): Promise<ChangedConfig>

  /** Every setting: its type, range, default and description. */
  getConfigSchema (): Promise<SettingsSchema>

  /** The configuration version of each broker, in the format of rpk. */
  getConfigStatus (): Promise<BrokerConfigStatus[]>

  /** The settings that are set for single brokers. */
  getBrokerOverrides (query?: { observe?: boolean }): Promise<BrokerOverrides>

  /** The history of the configuration: the changes of settings, quotas, topics and other records, with author and time. */
  getConfigHistory (query?: { limit?: number, before?: number }): Promise<SettingHistory>

  /** Warnings about the limits in force, such as a cap that refuses everything. */
  getNotes (): Promise<NotesAnswer>

  /** The advertised addresses. */
  getAdvertised (): Promise<AdvertisedAnswer>

  /** Sets the advertised addresses of a listener. */
  putAdvertised (body: AddressesChange): Promise<ChangedAdvertised>

  /** Takes back the addresses that were set live: those of the start of the cluster are advertised again. */
  deleteAdvertised (query?: { listener?: string, broker?: number }): Promise<ChangedAdvertised>

  /** All quotas. */
  getQuotas (query?: { observe?: boolean }): Promise<QuotasAnswer>

  /** Changes quotas. The answer comes when every shard enforces them, or counts by them if they are observed. */
  putQuotas (body: QuotasChange, query?: { dry_run?: boolean, observe?: boolean }): Promise<ChangedConfig>

  /** The observed client quotas, and the requests that they would have throttled. */
  getObservedQuotas (): Promise<ObservedQuotasAnswer>

  /** The quotas that hold for a client. */
  explainQuotas (query?: { user?: string, 'client-id'?: string }): Promise<ClientQuotas>

  /** The limits that hold for an address, the quotas of a client, or both. */
  explain (query?: { ip?: string, user?: string, 'client-id'?: string }): Promise<Explanation>

  /** The users that may log in on listeners with SASL. */
  getUsers (): Promise<UsersAnswer>

  /** Adds a user, changes its password, or removes it. */
  putUser (body: UserChange): Promise<ChangedConfig>

  /** The faults, and how often each has fired. */
  getFaults (): Promise<FaultsAnswer>

  /** Adds and removes faults. The answer comes when they are in force on every shard. */
  putFaults (body: FaultsChange): Promise<ChangedFaults>

  /** The clients that push telemetry (KIP-714). */
  getTelemetry (): Promise<TelemetryAnswer>

  /** Changes a client metrics resource: the metrics that clients push, and the interval. */
  putSubscription (body: SubscriptionConfigs): Promise<ChangedConfig>

  /** The last push of a client instance. */
  getLastPush (clientInstanceId: string): Promise<TelemetryPush>

  /** The number of refused connections, by what `by` names. */
  getRefusals (query?: { by?: 'ip' | 'listener' | 'reason' | 'shard' | 'limit', observed?: boolean }): Promise<RefusalsAnswer>

  /** The admitted and refused connections of each address. */
  getSources (): Promise<SourcesAnswer>

  /** The open connections by proxy, and by private endpoint of a cloud. */
  getProxies (): Promise<ProxiesAnswer>

  /** The use of each limit: caps, creation rates and client quotas. The fullest come first. */
  getUtilisation (query?: { limit?: number }): Promise<UtilisationAnswer>

  /** The use of limits, the refusals and the throttles of one address or client over time. The first request starts it. */
  getWatch (query?: { ip?: string, user?: string, 'client-id'?: string, broker?: number, minutes?: number, since?: number }): Promise<WatchAnswer>

  /** The caps that are used most, and the number of their tokens on each shard. */
  getTokens (): Promise<TokensAnswer>

  /** The processes of the brokers. */
  getShards (): Promise<ShardsAnswer>

  /** Everything that the live page and `turnstile top` refresh. */
  getLive (query?: { since?: number }): Promise<LiveAnswer>

  /** Connections, admissions, refusals and throttled requests of the last minutes. */
  getSeries (query?: { minutes?: number, since?: number }): Promise<SeriesAnswer>

  /** The cluster: its processes, listeners, topics and disk. */
  getCluster (): Promise<ClusterAnswer>

  /** Files that could not be read, and were set aside. */
  getDamaged (): Promise<DamagedAnswer>

  /** Resets settings, topics, groups, quotas and users to what they were when the cluster started. Closes every connection. */
  reset (): Promise<ChangedConfig>

  /** Ends the whole cluster, after the answer is sent. */
  shutdown (): Promise<EndingAnswer>

  /** Metrics for Prometheus, under three kinds of names: those of Redpanda's `/metrics` (without `_total`), Kafka's as in the example rules of the JMX exporter, and `turnstile_*`. */
  getMetrics (): Promise<string>

  /** Metrics for Prometheus, under the names of Redpanda's `/public_metrics` (`redpanda_rpc_*`, `redpanda_storage_disk_*`). */
  getPublicMetrics (): Promise<string>

  /** The health of the cluster: ok if every shard is up and the supervisor, which restarts shards, runs. Needs no token. */
  getHealth (): Promise<HealthAnswer>

  /** The live page: connections, refusals, and the use of limits and quotas, which it can change. */
  getPage (): Promise<string>

  /** A file of the live page. */
  getPageFile (name: string): Promise<string>

  /** The open connections that match a filter, in an order (Redpanda's ListKafkaConnections). */
  listKafkaConnections (body: ListConnectionsBody): Promise<ListedConnections>

  /** The brokers, in the format of rpk. */
  listBrokers (body: ListBrokersBody): Promise<ListedBrokers>

  /** A broker and its release, in the format of rpk. */
  getBroker (body: GetBrokerBody): Promise<OneBroker>

  /** This document. */
  getOpenapi (): Promise<Record<string, unknown>>
}

/** The limits of one broker for an address. */
export interface AddressLimits {
  broker: number
  ip: string
  connections: AddressPool[]
  rates: AddressRate[]
}

/** A limit on open connections that a connection of the address counts for. */
export interface AddressPool {
  /** broker, listener:NAME, ssl, ip:ADDRESS, user:NAME or cluster. */
  pool: string
  /** The setting; empty: unlimited. */
  limit: string
  /** null: unlimited. */
  value: number | null
  /** True: over the cap a connection waits instead of being refused. */
  waits: boolean
  home: number | null
  in_use: number
  cached: number
  holders: HeldTokens[]
  /** The cap that is observed beside it; null: none is. */
  observed: ObservedUse | null
}

/** A limit on new connections a second that holds for the address or user. */
export interface AddressRate {
  /** broker, ip, core, user, listener:NAME or cluster. */
  of: string
  /** The setting or quota. */
  limit: string
  /** Connections a second. */
  value: number
  /** Connections that pass at once after a pause. */
  burst: number
  /** Connections a second, over the quota window; null: not known. */
  used: number | null
}

/** The advertised addresses of a listener. */
export interface AddressesChange {
  /** May be left out where there is only one. */
  listener?: string
  /** This broker alone; without it, `addresses` has one for each. */
  broker?: number
  /** host:port, or `auto`: the address that a client reached. */
  addresses: string[] | string
}

/** The advertised address of a listener of one broker, for the admin API. */
export interface AdvertisedAddress {
  broker: number
  listener: string
  /** host:port; `auto`: the address that the client reached. */
  address: string
  port: number
  /** live: set live; start: as the cluster was started; listener: where it listens. */
  source: string
  /** It follows from where the cluster listens, not from what was said. */
  guess: boolean
}

/** Each listener of each broker. */
export interface AdvertisedAnswer {
  advertised: AdvertisedAddress[]
}

/** The proof of its identity that a client has given, if any. */
export interface AuthenticationInfo {
  state: string
  userPrincipal: string
}

/** A broker, in the format of rpk. */
export interface BrokerConfigStatus {
  node_id: number
  restart: boolean
  /** The version that every shard of the broker has acknowledged. */
  config_version: number
  invalid: string[]
  unknown: string[]
}

/** The space that a broker needs: while less is free it is `full`, and refuses Produce. */
export interface BrokerDisk {
  broker: number
  least_free_bytes: number
  full: boolean
}

/** The settings that are set for single brokers. */
export interface BrokerOverrides {
  /** Settings by broker id. */
  overrides: Record<string, Record<string, string[] | boolean | number | string | null>>
}

/** The present rates of a client on one broker. */
export interface BrokerQuotaRates {
  broker: number
  /** By the quota's key: bytes a second, percent of a thread, mutations or connections a second. */
  rates: Record<string, number>
}

/** The release of Redpanda whose calls a broker answers here. */
export interface BuildInfo {
  version: string
  buildSha: string
}

/** The addresses after a change, which is in force on every shard. */
export interface ChangedAdvertised {
  /** The version of the configuration that is in force on every shard. */
  config_version: number
  advertised: AdvertisedAddress[]
}

/** A change that is in force on every shard. */
export interface ChangedConfig {
  /** The version of the configuration that is in force on every shard. */
  config_version: number
  /** Warnings about the new values, one sentence each. */
  notes?: string[]
}

/** Faults after a change, which is in force on every shard. */
export interface ChangedFaults {
  /** The version of the configuration that is in force on every shard. */
  config_version: number
  /** The names of the added faults, in their order. */
  names: string[]
}

/** A client that asked for subscriptions, or pushed, as one shard knows it. */
export interface ClientInstance {
  client_instance_id: string
  client_id?: string
  client_software_name?: string
  client_software_version?: string
  client_source_address?: string
  client_source_port?: string
  connected: boolean
  /** Prefixes of the metrics that it was asked for; null: it has not asked. */
  metrics: string[] | null
  push_interval_ms: number | null
  subscription_id: number | null
  pushes: number
  /** The number of refused pushes by error. */
  refused: Record<string, number>
  /** The time of the last accepted push, in Unix milliseconds. */
  pushed_at_ms: number | null
  /** The size of the last push, as it was sent. */
  bytes: number
  broker: number
  shard: number
}

/** The quotas that hold for a client by Kafka's precedence, and its present rates. */
export interface ClientQuotas {
  /** The names user and client-id, and client-id-prefix for a quota of a prefix. `<default>` is the default; null: not told apart. */
  matched: Record<string, string | null>
  /** By the quota's key: bytes a second, percent of a thread, mutations or connections a second. */
  quotas: Record<string, number>
  /** By the quota's key: bytes a second, percent of a thread, mutations or connections a second. */
  rates: Record<string, number>
  brokers: BrokerQuotaRates[]
  /** The level that each quota comes from, by the quota's key. */
  levels: Record<string, Record<string, string | null>>
}

/**
 * The number of limits of a kind that are close to being reached on one broker. One that is full is near and high,
 * too.
 */
export interface CloseRow {
  /** null: the limit is one of the whole cluster. */
  broker: number | null
  /** connections, new_connections, or a client quota's key. */
  what: string
  /** cluster: of all brokers together; broker: of the broker and its listeners; ip: of addresses; user: of users' connections; client: of clients. */
  of: 'cluster' | 'broker' | 'ip' | 'user' | 'client'
  /** From 80 % on. */
  high: number
  /** From 90 % on. */
  near: number
  /** From 100 % on. */
  full: number
  /** The number of limits of this kind that were in use. */
  limits: number
}

/** The cluster: its processes, listeners, topics and disk. */
export interface ClusterAnswer {
  cluster_id?: string
  data_dir?: string
  brokers?: number
  /** Of each broker. */
  shards?: number
  listeners?: ListenerRow[]
  /** The pid of the supervisor. */
  pid: number
  coordinator_pid: number
  /** The parts of the configuration that could not be read, a sentence each. */
  lost: string[]
  /** Partitions by topic. */
  topics: Record<string, number>
  disk: VolumeAnswer | null
  journal: JournalAnswer
}

/** The failure of a call of the Connect protocol. */
export interface ConnectError {
  /** invalid_argument, not_found, unimplemented or unavailable. */
  code: string
  /** One sentence. */
  message: string
}

/** The address and port that a connection comes from; those that a trusted proxy announced, if one did. */
export interface ConnectionSource {
  ipAddress: string
  port: number
}

/** The files that were set aside. */
export interface DamagedAnswer {
  damaged: DamagedFile[]
}

/** A file that could not be read, and was set aside. */
export interface DamagedFile {
  /** The path below the data directory. */
  path: string
  size_bytes: number
}

/** The cluster is about to end. */
export interface EndingAnswer {
  ending: boolean
}

/** An entity and its quotas. */
export interface EntityQuotas {
  /** The entity of a quota: its name by type (user, client-id, client-id-prefix or ip). null: the default of that type. */
  entity: Record<string, string | null>
  /** By the quota's key: bytes a second, percent of a thread, mutations or connections a second. */
  values: Record<string, number>
}

/**
 * The limits that hold for an address (`brokers`), for a client (`client`), or for both, whichever the request names.
 * If it names a user, also the limits of that user's connections (`user_connections`).
 */
export interface Explanation {
  brokers?: AddressLimits[]
  /** Beside `brokers` or `user_connections`, if the whole cluster has a cap, or one is observed: its use, without home and holders. */
  cluster?: AddressPool
  /** Beside `brokers` or `user_connections`, if the whole cluster has a rate of new connections. */
  cluster_rate?: AddressRate
  /** The same, if one is observed that is not the one in force. */
  observed_cluster_rate?: AddressRate
  client?: ClientQuotas
  user_connections?: UserConnections[]
}

/** A fault that is set. */
export interface FaultRow {
  /** * and ? stand for other characters. */
  client_id?: string
  ip?: string
  /** The client's IP:PORT. */
  connection?: string
  /** The name of a Kafka error, for the kind error. */
  error?: string
  /** For the kind delay. */
  delay_ms?: number
  /** For the kind throttle. */
  throttle_ms?: number
  /** For the kind disconnect: close by RST. */
  reset?: boolean
  /** For the kind throttle: the connection is muted, too. */
  mute?: boolean
  once?: boolean
  /** Fires at this call only, counted from 1. */
  on_call?: number
  /** The number of calls at which it fires, from the first on. */
  times?: number
  /** Fires if it last fired so many milliseconds ago or longer. */
  every_ms?: number
  /** The share of calls at which it fires, from 0 to 1. */
  probability?: number
  /** The seed that chooses these calls. */
  seed?: number
  name: string
  kind: 'error' | 'disconnect' | 'delay' | 'blackhole' | 'throttle'
  /** Names of Kafka's APIs; none: all. */
  api?: string[]
  /** The number of times it fired; a killed shard loses its part of the count. */
  fired: number
}

/** Every fault that is set. */
export interface FaultsAnswer {
  faults: FaultRow[]
}

/** Faults to add and, by name, to remove: all of them or none. */
export interface FaultsChange {
  add?: NewFault[]
  remove?: string[]
}

/** The broker that is asked for. */
export interface GetBrokerBody {
  nodeId?: number
}

/** The health of the cluster: ok if every shard is up, and the supervisor runs. */
export interface HealthAnswer {
  status: 'ok' | 'degraded'
  /** The shards that are not up, and the supervisor if it is stopped. */
  missing?: string[]
  /** The state of each of them. */
  states?: Record<string, 'up' | 'unresponsive' | 'starting' | 'down' | 'stopped'>
}

/** The tokens of a pool on one shard. */
export interface HeldTokens {
  shard: number
  in_use: number
  cached: number
}

/** Requests under way. Their APIs are not kept. */
export interface InFlightRequests {
  sampledInFlightRequests: string[]
  /** True: a request is under way. */
  hasMoreRequests: boolean
}

/** The events that the journal lacks. */
export interface JournalAnswer {
  /** The number of events since the start that were not written. */
  events_dropped: number
  /** True: events are being lost now. */
  is_losing: boolean
}

/** A setting that limits clients. */
export interface LimitRow {
  name: string
  /** The broker that it is set for; null: the whole cluster. */
  broker: number | null
  value: string[] | boolean | number | string | null
  /** The value as `turnstile config set` takes it. */
  text: string
  set: boolean
  /** The origin of the name: kafka, redpanda or turnstile. */
  vocabulary: string
  /** True if it can be observed instead of enforced. */
  observable: boolean
  doc: string
}

/** The use of a limit on one broker, or of one of the whole cluster. */
export interface LimitUse {
  /** null: the limit is one of the whole cluster. */
  broker: number | null
  /** Open ones, or new ones a second over the quota window. */
  what: 'connections' | 'new_connections'
  /** broker, broker:all, listener:NAME, ssl, ip:ADDRESS, user:NAME or cluster. */
  of: string
  used: number
  limit: number
  /** The setting or quota that gives the limit. */
  by: string
}

/** Nothing is asked. */
export interface ListBrokersBody {
}

/** The connections that are asked for, and their order. */
export interface ListConnectionsBody {
  /** The most connections to return; 0, or more than 1000: 1000. */
  pageSize?: number
  /** Conditions joined by AND, such as `client_id = "app" AND idle_duration > 30s`. */
  filter?: string
  /** Fields, each with asc or desc, such as `idle_duration desc, source.port`. */
  orderBy?: string
}

/** Every broker. */
export interface ListedBrokers {
  brokers: RedpandaBroker[]
}

/** An open connection. The other members of Redpanda's KafkaConnection are not kept. */
export interface ListedConnection {
  nodeId: number
  shardId: number
  /** Incarnation of the shard, broker, shard, and the connection's number in the journal, as a UUID. */
  uid: string
  state: string
  openTime: string
  authenticationInfo: AuthenticationInfo
  listenerName: string
  tlsInfo: TlsInfo
  source: ConnectionSource
  /** The client id; empty: the client has not sent one yet. */
  clientId: string
  clientSoftwareName: string
  clientSoftwareVersion: string
  /** Since its last request was read; 0s while one is under way. */
  idleDuration: string
  inFlightRequests: InFlightRequests
  totalRequestStatistics: RequestStatistics
}

/** The connections that match. */
export interface ListedConnections {
  connections: ListedConnection[]
  /** The number of matches, a whole number; `connections` may have fewer. */
  totalSize: string
}

/** A listener of one broker. */
export interface ListenerRow {
  broker: number
  name: string
  /** host:port that it is bound to. */
  address: string
  options: string[]
}

/**
 * Everything that a display refreshes. The rates of `shards` are over the last second that was sampled; new
 * connections in `uses`, and the values of quotas, are over the quota window.
 */
export interface LiveAnswer {
  /** Unix seconds. */
  at: number
  uptime_s: number
  window_s: number
  version: number
  brokers: number
  listeners: string[]
  totals: LiveTotals
  journal: JournalAnswer
  shards: LiveShard[]
  series: SeriesPoint[]
  /** The fullest first. */
  uses: LimitUse[]
  /** The numbers of limits that are close to being reached. */
  close: CloseRow[]
  top_refused: RefusedAddress[]
  refused_addresses: RefusedAddresses
  /** Clients that are throttled by a quota, the longest throttle time first. */
  throttled: QuotaClient[]
  /** Other clients with a quota that they use, the fullest first. */
  within_quota: QuotaClient[]
  limits: LimitRow[]
  /** null: no limit and no quota is observed. */
  observed: ObservedAnswer | null
}

/** The process of one shard, and its work. */
export interface LiveShard {
  broker: number
  shard: number
  pid: number
  /** The number of this incarnation of the process; it only rises. */
  epoch: number
  state: 'up' | 'unresponsive' | 'starting' | 'down'
  connections: number
  config_version: number
  /** The number of times that its event loop was held up. */
  stalls: number
  longest_callback_ms: number
  restarts: number
  /** The number of times that the system killed it for want of memory. */
  memory_kills: number
  /** Seconds until a shard that keeps ending is started again; null: it does not wait for that. */
  restart_in_s: number | null
  admitted_per_s: number
  refused_per_s: number
  admitted: number
  refused: number
  tokens: TokenTotals
  /** Decisions about connections: home (at once, without a token of another shard), cached (at once, with tokens that another shard had granted before), rpc (later: it waited for a home's answer). */
  decisions: Record<string, number>
}

/** Gauges, and counts since the cluster started. */
export interface LiveTotals {
  connections: number
  admitted: number
  closed: number
  lost: number
  /** Connections, by the reason of the refusal. */
  refused: Record<string, number>
  /** Decisions about connections: home (at once, without a token of another shard), cached (at once, with tokens that another shard had granted before), rpc (later: it waited for a home's answer). */
  decisions: Record<string, number>
  tokens: TokenTotals
  waiting: number
  held: number
  muted: number
  borrows: number
  reclaims: number
  malformed: number
  requests: number
  bytes_in: number
  bytes_out: number
  /** By the quota's kind. */
  throttled: Record<string, Throttles>
}

/** A point of a metric; empty members are left out. */
export interface MetricPoint {
  name?: string
  type: 'gauge' | 'sum' | 'histogram' | 'exponential_histogram' | 'summary'
  unit?: string
  temporality?: 'delta' | 'cumulative'
  resource?: Record<string, string | boolean | number | null>
  attributes?: Record<string, string | boolean | number | null>
  /** Unix milliseconds. */
  at_ms?: number
  value?: number
  count?: number
  sum?: number
  bucket_counts?: number[]
  explicit_bounds?: Array<number | null>
  quantiles?: Array<[number | null, number | null]>
}

/** A fault to add. */
export interface NewFault {
  /** * and ? stand for other characters. */
  client_id?: string
  ip?: string
  /** The client's IP:PORT. */
  connection?: string
  /** The name of a Kafka error, for the kind error. */
  error?: string
  /** For the kind delay. */
  delay_ms?: number
  /** For the kind throttle. */
  throttle_ms?: number
  /** For the kind disconnect: close by RST. */
  reset?: boolean
  /** For the kind throttle: the connection is muted, too. */
  mute?: boolean
  once?: boolean
  /** Fires at this call only, counted from 1. */
  on_call?: number
  /** The number of calls at which it fires, from the first on. */
  times?: number
  /** Fires if it last fired so many milliseconds ago or longer. */
  every_ms?: number
  /** The share of calls at which it fires, from 0 to 1. */
  probability?: number
  /** The seed that chooses these calls. */
  seed?: number
  /** Left out: the fault gets one, such as fault-1. */
  name?: string
  kind: 'error' | 'disconnect' | 'delay' | 'blackhole' | 'throttle'
  /** Names of Kafka's APIs; none: all. */
  api?: string[] | string
}

/** Warnings about the limits in force: those that admit no connection, and the bursts that rates let through. */
export interface NotesAnswer {
  notes: string[]
}

/**
 * The refusals and waits that observed caps and creation rates would have caused since one of these limits was last
 * changed; a shard that was started again has forgotten its part.
 */
export interface ObservedAnswer {
  refused: number
  waited: number
  undecided: number
  /** The number of addresses of these connections that were counted one by one. */
  addresses: number
  /** True: at least one shard's table of addresses was full, so there may be more. */
  more: boolean
  caps: ObservedCapRow[]
  /** Values by name; null: no value. */
  set: Record<string, string[] | boolean | number | string | null>
  /** The observed values that are set for single brokers, by broker id. */
  brokers: Record<string, Record<string, string[] | boolean | number | string | null>>
  /** null: no client quota is observed. */
  quotas: ObservedQuotasAnswer | null
}

/** A cap or a creation rate that is observed instead of enforced. */
export interface ObservedCapRow {
  /** The setting. */
  limit: string
  value: number
  /** Connections would have waited, for a slot or for a rate. */
  waits: boolean
  /** Connections that it would have refused, or made wait. */
  count: number
}

/** A client that observed quotas would have throttled. */
export interface ObservedClientRow {
  user: string
  client_id: string
  requests: number
  /** `requests` may be too high by this. */
  error: number
  /** Requests, by the quota with the longest throttle time. */
  quotas: Record<string, number>
}

/** A client quota that is observed instead of enforced, at one value. */
export interface ObservedQuotaRow {
  /** The kind of quota. */
  quota: string
  value: number
  /** Requests that it would have throttled. */
  requests: number
  /** The sum of their throttle times. */
  throttle_ms: number
  /** Mutations that it would have refused. */
  refused: number
}

/**
 * Requests that the observed client quotas would have throttled since one of these quotas was last changed. A shard
 * that was started again counts anew.
 */
export interface ObservedQuotasAnswer {
  /** The observed quotas. */
  set: EntityQuotas[]
  /** Requests that at least one of them would have throttled. */
  requests: number
  /** The sum of the throttle times; of each request the longest. */
  throttle_ms: number
  /** True: there are more clients than `clients` has. */
  more: boolean
  quotas: ObservedQuotaRow[]
  clients: ObservedClientRow[]
}

/** An observed cap, and its use. */
export interface ObservedUse {
  limit: string
  value: number | null
  waits: boolean
  in_use: number
}

/** A broker. */
export interface OneBroker {
  broker: RedpandaBroker
}

/** The reason why a request was refused, or can't be answered now. */
export interface Problem {
  /** One sentence. */
  message: string
  /** The HTTP status. */
  code: number
}

/** The proxies of the open connections; the proxy with the most comes first. */
export interface ProxiesAnswer {
  proxies: ProxyRow[]
}

/** A proxy that announced connections (PROXY protocol). */
export interface ProxyRow {
  /** The address of the proxy. */
  proxy: string
  /** The private endpoint of a cloud by which the connections came. */
  endpoint: string | null
  open: number
}

/** The quotas of one entity that change. */
export interface QuotaChange {
  /** The entity of a quota: its name by type (user, client-id, client-id-prefix or ip). null: the default of that type. */
  entity: Record<string, string | null>
  /** By the quota's key: bytes a second, percent of a thread, mutations or connections a second. */
  set?: Record<string, number>
  /** Keys of quotas. */
  remove?: string[]
}

/** A client with a quota, on one broker. */
export interface QuotaClient {
  broker: number
  /** Empty: the quota does not tell users apart. */
  user: string
  /** Empty: the quota does not tell client ids apart. */
  client_id: string
  /** The quota's key. */
  quota: string
  /** The average throttle time within the quota window, in milliseconds. */
  throttle_ms: number
  /** Bytes a second, percent, or mutations a second. */
  value: number
  /** The quota, in the same unit; null: it is no longer set. */
  limit: number | null
}

/** Every entity that has a quota. */
export interface QuotasAnswer {
  quotas: EntityQuotas[]
}

/** Quotas that change: all of them or none. */
export interface QuotasChange {
  alter: QuotaChange[]
}

/** A version of the configuration, and what it changed: of a setting the values that were in force. */
export interface RecordedChange {
  version: number
  /** Unix seconds. */
  at: number
  /** The caller as it names itself, and the address it called from. */
  who: string
  /** Kind, such as setting or quota; key; old and new value, null: none. */
  changes: Array<[string, string, unknown, unknown]>
}

/** A broker. */
export interface RedpandaBroker {
  nodeId: number
  buildInfo: BuildInfo
}

/**
 * Counts since the cluster started. By ip there are only the most refused addresses, counted since their shard
 * started. If `observed`, the counts by ip and by limit are those since an observed limit was last changed.
 */
export interface RefusalsAnswer {
  by: 'ip' | 'listener' | 'reason' | 'shard' | 'limit'
  total: number
  admitted: number
  refusals: RefusedRow[]
  /** True: these are observed limits, which have refused nothing. */
  observed?: boolean
  summary?: ObservedAnswer | null
}

/** One of the addresses that were refused most. */
export interface RefusedAddress {
  ip: string
  count: number
  /** `count` may be too high by this. */
  error: number
  /** Connections, by the reason of the refusal. */
  reasons: Record<string, number>
  /** The open connections of the address. */
  open: number
  uses: LimitUse[]
}

/** The number of addresses that were refused. */
export interface RefusedAddresses {
  /** The number of addresses that have a count of their own. */
  known: number
  /** Refusals of the addresses that `top_refused` leaves out. */
  others_refused: number
  /** True: at least one shard's table of addresses was full, so there may be more. */
  more: boolean
}

/**
 * The refusals of one address, listener, reason, shard or observed limit. Besides `count`, only the members that
 * belong to `by` are there.
 */
export interface RefusedRow {
  count: number
  ip?: string
  /** By ip: `count` may be too high by this. */
  error?: number
  listener?: string
  broker?: number
  shard?: number
  reason?: string
  /** Connections, by the reason of the refusal. */
  reasons?: Record<string, number>
  limit?: string
  /** The value of the limit. */
  value?: number
  /** True: at the limit, connections would have waited. */
  waits?: boolean
}

/** The counts of a connection since it was opened. */
export interface RequestStatistics {
  /** A whole number. */
  requestCount: string
}

/** The counts over time. */
export interface SeriesAnswer {
  /** Seconds from one point to the next; each is an average over the time since the last. */
  step_s: number
  series: SeriesPoint[]
}

/**
 * One step of time: gauges at its end, and rates a second within it. Reasons and quotas without a count are left out.
 */
export interface SeriesPoint {
  /** Unix seconds. */
  at: number
  connections: number
  admitted: number
  closed: number
  refused: Record<string, number>
  in_use: number
  cached: number
  decisions: Record<string, number>
  requests: number
  throttled: Record<string, number>
}

/** The last changes, the latest first. */
export interface SettingHistory {
  history: RecordedChange[]
}

/** The entries of a setting that is a list. */
export interface SettingItems {
  type: string
}

/** A setting, in the format of Redpanda's schema. */
export interface SettingProperty {
  /** integer, number, boolean, string or array. */
  type: string
  description: string
  /** False: the setting is stored and shown, but has no effect. */
  emulated: boolean
  nullable: boolean
  /** True: it can't be changed while the cluster runs. */
  needs_restart: boolean
  visibility: 'user' | 'tunable'
  is_secret: boolean
  /** The origin of the name: kafka, redpanda or turnstile. */
  vocabulary: string
  default: string[] | boolean | number | string | null
  items?: SettingItems
  enum_values?: string[]
  minimum?: number
  maximum?: number
}

/** Settings to set, and to take back: all of them or none. */
export interface SettingsChange {
  /** A value, or its text as `turnstile config set` takes it, by name. */
  upsert?: Record<string, string[] | boolean | number | string | null>
  remove?: string[]
}

/** Every setting, by name. */
export interface SettingsSchema {
  properties: Record<string, SettingProperty>
}

/** The process of one shard. */
export interface ShardRow {
  broker: number
  shard: number
  pid: number
  /** The number of this incarnation of the process; it only rises. */
  epoch: number
  state: 'up' | 'unresponsive' | 'starting' | 'down'
  connections: number
  config_version: number
  /** The number of times that its event loop was held up. */
  stalls: number
  longest_callback_ms: number
  restarts: number
  /** The number of times that the system killed it for want of memory. */
  memory_kills: number
  /** Seconds until a shard that keeps ending is started again; null: it does not wait for that. */
  restart_in_s: number | null
}

/** Every shard. */
export interface ShardsAnswer {
  shards: ShardRow[]
}

/**
 * The admitted and refused connections of each address, since its shard started. Two answers can be subtracted if
 * `shards`, `forgotten` and the shards' epochs are the same in both.
 */
export interface SourcesAnswer {
  /** The number of shards that answered. */
  shards: number
  /** The number of times that a shard had too many addresses and began anew. */
  forgotten: number
  /** Counts by address and by outcome: `admitted`, or the reason of the refusal. */
  sources: Record<string, Record<string, number>>
}

/** The configs of a client metrics resource (KIP-714) that change. */
export interface SubscriptionConfigs {
  name: string
  /** null: back to the default. */
  configs: Record<string, string | null>
}

/** The client instances that were active last. One that is connected to several shards has a row for each. */
export interface TelemetryAnswer {
  client_instances: ClientInstance[]
}

/** The last push of a client instance. */
export interface TelemetryPush {
  client_instance_id: string
  /** Unix milliseconds. */
  pushed_at_ms: number
  metrics: MetricPoint[]
  /** The reason why the push can't be read. */
  error: string | null
}

/** The requests that a kind of quota has slowed down since the start. */
export interface Throttles {
  requests: number
  /** The sum of their throttle times, in milliseconds. */
  throttle_ms: number
}

/** The TLS state of a connection. */
export interface TlsInfo {
  enabled: boolean
}

/** A pool of tokens, one for each connection: the state at its home, and the tokens of every shard. */
export interface TokenPool {
  /** null: of all brokers; its shards are then numbered over all of them, those of broker 0 first. */
  broker: number | null
  /** broker, listener, ssl, ip, user or cluster; `observed/` before it: the cap is observed, not enforced. */
  kind: string
  /** The listener's name, the address or the user's name; `all`: of the broker with its inter-broker listener; else empty. */
  key: string
  /** The home of the pool, the shard that decides; null: it did not answer. */
  home: number | null
  /** null: unlimited. */
  cap: number | null
  /** The setting that gives the cap. */
  limit: string
  /** open, reclaiming or tight. */
  mode: string
  free: number | null
  /** Connections that wait for a token. */
  waiting: number
  in_use: number
  cached: number
  holders: HeldTokens[]
}

/** Tokens of all pools. */
export interface TokenTotals {
  in_use: number
  cached: number
  pools: number
}

/** The pools most in use. */
export interface TokensAnswer {
  pools: TokenPool[]
  /** True: there are more pools. */
  truncated: boolean
  totals: TokenTotals
}

/** A user that is added, gets another password, or is removed. */
export interface UserChange {
  name: string
  /** null: the user is removed. */
  password?: string | null
}

/** The cap of a user's connections on one broker, and the rate of new ones if that is limited. */
export interface UserConnections {
  /** broker, listener:NAME, ssl, ip:ADDRESS, user:NAME or cluster. */
  pool: string
  /** The setting; empty: unlimited. */
  limit: string
  /** null: unlimited. */
  value: number | null
  /** True: over the cap a connection waits instead of being refused. */
  waits: boolean
  home: number | null
  in_use: number
  cached: number
  holders: HeldTokens[]
  broker: number
  /** The cap that is observed beside it; null: none is. */
  observed: ObservedUse | null
  rate: AddressRate | null
}

/** A user that may log in on listeners with SASL. */
export interface UserRow {
  name: string
  /** The SASL mechanisms that the user can log in with, besides PLAIN. */
  mechanisms: string[]
}

/** Every user. */
export interface UsersAnswer {
  users: UserRow[]
}

/** The use of a limit on one broker, or of one of the whole cluster. */
export interface Utilisation {
  /** null: the limit is one of the whole cluster. */
  broker: number | null
  /** connections: open ones; new_connections: a second, over the quota window; or a client quota's key. */
  what: string
  /** broker, broker:all, listener:NAME, ssl, ip:ADDRESS, user:NAME, cluster, or client. */
  of: string
  /** The user; empty: the quota does not tell users apart; null: the limit is not of a client. */
  user: string | null
  /** The client id; empty: the quota does not tell client ids apart; null: the limit is not of a client. */
  client_id: string | null
  /** Connections, or in the quota's unit: bytes a second, percent, mutations a second. */
  used: number
  limit: number
  /** null: the limit is 0, and something is used. */
  percent: number | null
  /** Below 80 % of the limit, from 80 %, from 90 %, from 100 % on. */
  level: 'roomy' | 'high' | 'near' | 'full'
  /** The setting or quota that gives the limit. */
  by: string
}

/**
 * The use of each limit, the closest to being reached first. Each figure is of the moment at which its shards
 * answered this request. Where a shard is home to more than 2,000 pools or 500 metered clients, the choice of the
 * closest, and `close`, may be ten seconds old.
 */
export interface UtilisationAnswer {
  /** Unix seconds. */
  at: number
  /** All limits of brokers and listeners, and the fullest of addresses and clients. */
  limits: Utilisation[]
  close: CloseRow[]
}

/** The volume of the data directory. Sizes are -1 if the system does not tell them. */
export interface VolumeAnswer {
  total_bytes: number
  free_bytes: number
  brokers: BrokerDisk[]
}

/**
 * One address or client on one broker. It is watched from the first request on, until half an hour after the last
 * one.
 */
export interface WatchAnswer {
  broker: number
  ip: string | null
  user: string | null
  client_id: string | null
  /** The time from which it is watched, in Unix seconds. */
  began: number
  /** Seconds from one point to the next. */
  step_s: number
  points: WatchPoint[]
  /** Admitted connections since the shards started, or last forgot the counts of too many addresses; null for a client. */
  admitted: number | null
  /** Refused connections, counted since the same time; null for a client. */
  refused: Record<string, number> | null
}

/** A point in time: the use at that time, and the events since the point before. */
export interface WatchPoint {
  /** Unix seconds. */
  at: number
  /** By limit: connections that are open, new_connections a second over the quota window, or the use of a quota by its key. */
  used: Record<string, number>
  /** The limits that hold, in the same units. */
  limits: Record<string, number>
  /** The average throttle time within the quota window, by the quota's key. */
  throttle_ms: Record<string, number>
  /** Admitted connections a second, for an address. */
  admitted: number
  /** Refused connections a second by reason, for an address. */
  refused: Record<string, number>
}
