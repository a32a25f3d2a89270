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

  /** Changes settings; answers when every shard enforces them, or, of limits that are observed, counts by them. */
  putConfig (body: SettingsChange, query?: { dry_run?: boolean, broker?: number, observe?: boolean }): Promise<ChangedConfig>

  /** Every setting: its type, range and default, and what it does. */
  getConfigSchema (): Promise<SettingsSchema>

  /** The version that each broker has, as rpk asks for it. */
  getConfigStatus (): Promise<BrokerConfigStatus[]>

  /** The settings that single brokers have of their own. */
  getBrokerOverrides (query?: { observe?: boolean }): Promise<BrokerOverrides>

  /** The history of changes: each change of settings, quotas, topics and all else that is versioned, with its author and time. */
  getConfigHistory (query?: { limit?: number, before?: number }): Promise<SettingHistory>

  /** Warnings about the limits in force, such as a cap that refuses everything. */
  getNotes (): Promise<NotesAnswer>

  /** The advertised addresses. */
  getAdvertised (): Promise<AdvertisedAnswer>

  /** Sets the advertised addresses of a listener. */
  putAdvertised (body: AddressesChange): Promise<ChangedAdvertised>

  /** Forgets what was said live: the addresses that the cluster was started with are advertised. */
  deleteAdvertised (query?: { listener?: string, broker?: number }): Promise<ChangedAdvertised>

  /** Every quota that is set. */
  getQuotas (query?: { observe?: boolean }): Promise<QuotasAnswer>

  /** Changes quotas; answers when every shard enforces them, or, of those that are observed, counts by them. */
  putQuotas (body: QuotasChange, query?: { dry_run?: boolean, observe?: boolean }): Promise<ChangedConfig>

  /** The client quotas that are observed instead of enforced, and what they would have done. */
  getObservedQuotas (): Promise<ObservedQuotasAnswer>

  /** The quotas that hold for a client. */
  explainQuotas (query?: { user?: string, 'client-id'?: string }): Promise<ClientQuotas>

  /** The limits that hold for an address, the quotas of a client, or both. */
  explain (query?: { ip?: string, user?: string, 'client-id'?: string }): Promise<Explanation>

  /** The users of listeners that ask for SASL. */
  getUsers (): Promise<UsersAnswer>

  /** Adds a user, gives it another password, or removes it. */
  putUser (body: UserChange): Promise<ChangedConfig>

  /** The faults that are set, and how often each fired. */
  getFaults (): Promise<FaultsAnswer>

  /** Adds and removes faults; answers when every shard obeys. */
  putFaults (body: FaultsChange): Promise<ChangedFaults>

  /** The clients that push telemetry (KIP-714). */
  getTelemetry (): Promise<TelemetryAnswer>

  /** Changes a client metrics resource: which metrics clients push, and how often. */
  putSubscription (body: SubscriptionConfigs): Promise<ChangedConfig>

  /** The last push of a client instance. */
  getLastPush (clientInstanceId: string): Promise<TelemetryPush>

  /** The connections that were refused, counted by what they have in common. */
  getRefusals (query?: { by?: 'ip' | 'listener' | 'reason' | 'shard' | 'limit', observed?: boolean }): Promise<RefusalsAnswer>

  /** The admitted and refused connections of each address. */
  getSources (): Promise<SourcesAnswer>

  /** By which proxies, and which private endpoints of a cloud, the open connections came. */
  getProxies (): Promise<ProxiesAnswer>

  /** The use of each limit: caps, creation rates and client quotas, the closest to being reached first. */
  getUtilisation (query?: { limit?: number }): Promise<UtilisationAnswer>

  /** One address or client over time: what it uses of its limits, what is refused and throttled. Watched once it is asked for. */
  getWatch (query?: { ip?: string, user?: string, 'client-id'?: string, broker?: number, minutes?: number, since?: number }): Promise<WatchAnswer>

  /** The caps most in use, and which shard holds how many of their tokens. */
  getTokens (): Promise<TokensAnswer>

  /** The processes of the brokers. */
  getShards (): Promise<ShardsAnswer>

  /** Everything that the live page and `turnstile top` refresh. */
  getLive (query?: { since?: number }): Promise<LiveAnswer>

  /** Connections, admissions, refusals and throttled requests of the last minutes. */
  getSeries (query?: { minutes?: number, since?: number }): Promise<SeriesAnswer>

  /** Where the cluster lives: its processes, listeners, topics and disk. */
  getCluster (): Promise<ClusterAnswer>

  /** Files that could not be read, and were set aside. */
  getDamaged (): Promise<DamagedAnswer>

  /** Settings, topics, groups, quotas and users as when the cluster started; every connection is closed. */
  reset (): Promise<ChangedConfig>

  /** Ends the whole cluster; the answer is out before it begins. */
  shutdown (): Promise<EndingAnswer>

  /** Metrics for Prometheus. The names of Redpanda's `/metrics` (without `_total`), Kafka's as the JMX exporter's example rules spell them, and `turnstile_*`. */
  getMetrics (): Promise<string>

  /** Metrics for Prometheus. The names of Redpanda's page of this name (`redpanda_rpc_*`, `redpanda_storage_disk_*`). */
  getPublicMetrics (): Promise<string>

  /** The state of the cluster: up if every shard is, and the supervisor runs, which would start them again; needs no token. */
  getHealth (): Promise<HealthAnswer>

  /** The live page. Connections, refusals, and how much of each limit and quota is used; changes them. */
  getPage (): Promise<string>

  /** A file of the live page. */
  getPageFile (name: string): Promise<string>

  /** The open connections that match a filter, in an order (Redpanda's ListKafkaConnections). */
  listKafkaConnections (body: ListConnectionsBody): Promise<ListedConnections>

  /** The brokers, as rpk asks for them. */
  listBrokers (body: ListBrokersBody): Promise<ListedBrokers>

  /** A broker and its release, as rpk asks for it. */
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
  /** Over it a connection waits, and is not refused. */
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

/** A broker, as rpk asks for it. */
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

/** The settings that single brokers have of their own. */
export interface BrokerOverrides {
  /** By broker id. */
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
  /** Sentences on what people should know of what was set. */
  notes?: string[]
}

/** Faults after a change, which is in force on every shard. */
export interface ChangedFaults {
  /** The version of the configuration that is in force on every shard. */
  config_version: number
  /** Of those that were added, in their order. */
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
  /** How often a push was refused, by the error's name. */
  refused: Record<string, number>
  /** Unix milliseconds of the last push that was taken. */
  pushed_at_ms: number | null
  /** Of the last push, as it was sent. */
  bytes: number
  broker: number
  shard: number
}

/** The quotas that hold for a client by Kafka's precedence, and its present rates. */
export interface ClientQuotas {
  /** user and client-id, and client-id-prefix where the quota is of one. `<default>` is the default; null: not told apart. */
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
  /** Those that were looked at, of which anything was used. */
  limits: number
}

/** Where the cluster lives. */
export interface ClusterAnswer {
  cluster_id?: string
  data_dir?: string
  brokers?: number
  /** Of each broker. */
  shards?: number
  listeners?: ListenerRow[]
  /** Of the supervisor. */
  pid: number
  coordinator_pid: number
  /** Sentences on what of the configuration could not be read. */
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

/** Where a connection comes from: as a trusted proxy announced it, where one did. */
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
  /** Below the data directory. */
  path: string
  size_bytes: number
}

/** The cluster is about to end. */
export interface EndingAnswer {
  ending: boolean
}

/** An entity and its quotas. */
export interface EntityQuotas {
  /** What a quota is of, by its type: user, client-id, client-id-prefix or ip. null: the default of that type. */
  entity: Record<string, string | null>
  /** By the quota's key: bytes a second, percent of a thread, mutations or connections a second. */
  values: Record<string, number>
}

/**
 * The limits that hold for an address (`brokers`), for a client (`client`), or for both, as it was asked; and of a
 * user those of its connections.
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
  /** May have * and ?. */
  client_id?: string
  ip?: string
  /** The client's IP:PORT. */
  connection?: string
  /** Of an error: the name of one of Kafka's. */
  error?: string
  /** Of a delay. */
  delay_ms?: number
  /** Of a throttle. */
  throttle_ms?: number
  /** Of a disconnect: with RST. */
  reset?: boolean
  /** Of a throttle: the connection is muted, too. */
  mute?: boolean
  once?: boolean
  /** At this call alone, from 1. */
  on_call?: number
  /** At so many calls, the first ones. */
  times?: number
  /** When it last fired so many milliseconds ago, or has not yet. */
  every_ms?: number
  /** From 0 to 1. */
  probability?: number
  /** Of the probability. */
  seed?: number
  name: string
  kind: 'error' | 'disconnect' | 'delay' | 'blackhole' | 'throttle'
  /** Names of Kafka's APIs; none: all. */
  api?: string[]
  /** How often; a shard that was killed has forgotten its part. */
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

/** The state of the cluster: up if every shard is, and the supervisor runs. */
export interface HealthAnswer {
  status: 'ok' | 'degraded'
  /** The shards that are not up, and the supervisor where it is stopped. */
  missing?: string[]
  /** The state of each of them. */
  states?: Record<string, 'up' | 'unresponsive' | 'starting' | 'down' | 'stopped'>
}

/** Tokens of a pool that one shard has. */
export interface HeldTokens {
  shard: number
  in_use: number
  cached: number
}

/** Requests under way; of which API is not kept. */
export interface InFlightRequests {
  sampledInFlightRequests: string[]
  /** One is under way. */
  hasMoreRequests: boolean
}

/** The events that the journal lacks. */
export interface JournalAnswer {
  /** Since the start. */
  events_dropped: number
  /** More are lost now. */
  is_losing: boolean
}

/** A setting that limits clients. */
export interface LimitRow {
  name: string
  /** The broker that has it of its own; null: the whole cluster. */
  broker: number | null
  value: string[] | boolean | number | string | null
  /** The value as `turnstile config set` takes it. */
  text: string
  set: boolean
  /** Whose name it is: kafka, redpanda or turnstile. */
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
  /** How many, at most; 0, or more than 1000: 1000. */
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

/** An open connection. What Redpanda's KafkaConnection has more is not kept. */
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
  /** Empty: none was told yet. */
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
  /** How many match, a whole number; more than `connections` has, if that is cut. */
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

/** Everything that a display refreshes. All rates are over one window, the last second that was sampled. */
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
  /** How many limits are close to being reached. */
  close: CloseRow[]
  top_refused: RefusedAddress[]
  refused_addresses: RefusedAddresses
  /** Clients that their quota slows down, the slowest first. */
  throttled: QuotaClient[]
  /** Others that use theirs, the fullest first. */
  within_quota: QuotaClient[]
  limits: LimitRow[]
  /** null: no cap is observed. */
  observed: ObservedAnswer | null
}

/** The process of one shard, and what it does. */
export interface LiveShard {
  broker: number
  shard: number
  pid: number
  /** The incarnation of the process; only ever rises. */
  epoch: number
  state: 'up' | 'unresponsive' | 'starting' | 'down'
  connections: number
  config_version: number
  /** How often something held up its loop. */
  stalls: number
  longest_callback_ms: number
  restarts: number
  /** How often it was killed for want of memory. */
  memory_kills: number
  /** Until one that keeps ending is started again, in seconds; null: it is not. */
  restart_in_s: number | null
  admitted_per_s: number
  refused_per_s: number
  admitted: number
  refused: number
  tokens: TokenTotals
  /** Decisions, by how the token was had: home, cached, rpc. */
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
  /** Decisions, by how the token was had: home, cached, rpc. */
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

/** A point of a metric, without what is empty. */
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
  /** May have * and ?. */
  client_id?: string
  ip?: string
  /** The client's IP:PORT. */
  connection?: string
  /** Of an error: the name of one of Kafka's. */
  error?: string
  /** Of a delay. */
  delay_ms?: number
  /** Of a throttle. */
  throttle_ms?: number
  /** Of a disconnect: with RST. */
  reset?: boolean
  /** Of a throttle: the connection is muted, too. */
  mute?: boolean
  once?: boolean
  /** At this call alone, from 1. */
  on_call?: number
  /** At so many calls, the first ones. */
  times?: number
  /** When it last fired so many milliseconds ago, or has not yet. */
  every_ms?: number
  /** From 0 to 1. */
  probability?: number
  /** Of the probability. */
  seed?: number
  /** Without one it gets one. */
  name?: string
  kind: 'error' | 'disconnect' | 'delay' | 'blackhole' | 'throttle'
  /** Names of Kafka's APIs; none: all. */
  api?: string[] | string
}

/** Of the limits in force: those that let no connection in, and how much of each rate passes at once. */
export interface NotesAnswer {
  notes: string[]
}

/**
 * The refusals that observed caps would have made since they were last changed; a shard that was started again has
 * forgotten its part.
 */
export interface ObservedAnswer {
  refused: number
  waited: number
  undecided: number
  /** Of how many addresses. */
  addresses: number
  /** There are more addresses than `addresses` says. */
  more: boolean
  caps: ObservedCapRow[]
  /** By name; null: it has no value. */
  set: Record<string, string[] | boolean | number | string | null>
  /** Those that single brokers have of their own, by broker id. */
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
  /** By how many `requests` may be too high. */
  error: number
  /** Requests, by the quota with the longest throttle time. */
  quotas: Record<string, number>
}

/** A client quota that is observed instead of enforced, at one value. */
export interface ObservedQuotaRow {
  /** Its kind. */
  quota: string
  value: number
  /** Requests that it would have throttled. */
  requests: number
  /** For how long, added up. */
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
  /** For how long, added up: of each request the longest. */
  throttle_ms: number
  /** There are more clients than `clients` has. */
  more: boolean
  quotas: ObservedQuotaRow[]
  clients: ObservedClientRow[]
}

/** A cap that is observed instead of enforced, and its use. */
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
  /** HTTP's status. */
  code: number
}

/** By which proxies the open connections came, the most first. */
export interface ProxiesAnswer {
  proxies: ProxyRow[]
}

/** A proxy that announced connections (PROXY protocol). */
export interface ProxyRow {
  /** Its address. */
  proxy: string
  /** The private endpoint of a cloud that the connections came by. */
  endpoint: string | null
  open: number
}

/** The quotas of one entity that change. */
export interface QuotaChange {
  /** What a quota is of, by its type: user, client-id, client-id-prefix or ip. null: the default of that type. */
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
  /** In the same unit; null: it is not set any more. */
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
 * started.
 */
export interface RefusalsAnswer {
  by: 'ip' | 'listener' | 'reason' | 'shard' | 'limit'
  total: number
  admitted: number
  refusals: RefusedRow[]
  /** True: of limits that are observed; they have refused nothing. */
  observed?: boolean
  summary?: ObservedAnswer | null
}

/** One of the addresses that were refused most. */
export interface RefusedAddress {
  ip: string
  count: number
  /** By how many `count` may be too high. */
  error: number
  /** Connections, by the reason of the refusal. */
  reasons: Record<string, number>
  /** Its open connections. */
  open: number
  uses: LimitUse[]
}

/** The number of addresses that were refused. */
export interface RefusedAddresses {
  /** Addresses that are counted apart. */
  known: number
  /** Refusals of those that `top_refused` does not show. */
  others_refused: number
  /** A shard has more of them than it counts apart. */
  more: boolean
}

/**
 * The refusals of one address, listener, reason, shard or observed limit: that member is there by which it was asked.
 */
export interface RefusedRow {
  count: number
  ip?: string
  /** By ip: by how many `count` may be too high. */
  error?: number
  listener?: string
  broker?: number
  shard?: number
  reason?: string
  /** Connections, by the reason of the refusal. */
  reasons?: Record<string, number>
  limit?: string
  /** Of the limit. */
  value?: number
  /** At the limit connections would have waited. */
  waits?: boolean
}

/** Of a connection, since it was opened. */
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

/** One second: gauges, and how much a second; reasons and quotas of which there were none are left out. */
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

/** Of a setting that is a list. */
export interface SettingItems {
  type: string
}

/** A setting, as Redpanda's schema has it. */
export interface SettingProperty {
  /** integer, number, boolean, string or array. */
  type: string
  description: string
  /** False: it is stored and shown, and nothing acts on it. */
  emulated: boolean
  nullable: boolean
  /** It can't change while the cluster runs. */
  needs_restart: boolean
  visibility: 'user' | 'tunable'
  is_secret: boolean
  /** Whose name it is: kafka, redpanda or turnstile. */
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
  /** The incarnation of the process; only ever rises. */
  epoch: number
  state: 'up' | 'unresponsive' | 'starting' | 'down'
  connections: number
  config_version: number
  /** How often something held up its loop. */
  stalls: number
  longest_callback_ms: number
  restarts: number
  /** How often it was killed for want of memory. */
  memory_kills: number
  /** Until one that keeps ending is started again, in seconds; null: it is not. */
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
  /** How many shards have answered. */
  shards: number
  /** How often one had too many addresses, and began anew. */
  forgotten: number
  /** By address, by outcome: `admitted`, or the reason of the refusal. */
  sources: Record<string, Record<string, number>>
}

/** The configs of a client metrics resource (KIP-714) that change. */
export interface SubscriptionConfigs {
  name: string
  /** null: back to the default. */
  configs: Record<string, string | null>
}

/** The client instances heard of last; one that is connected to several shards is told of by each. */
export interface TelemetryAnswer {
  client_instances: ClientInstance[]
}

/** The last push of a client instance. */
export interface TelemetryPush {
  client_instance_id: string
  /** Unix milliseconds. */
  pushed_at_ms: number
  metrics: MetricPoint[]
  /** Why it can't be read. */
  error: string | null
}

/** The requests that a kind of quota has slowed down since the start. */
export interface Throttles {
  requests: number
  /** Milliseconds, added up. */
  throttle_ms: number
}

/** Of a connection. */
export interface TlsInfo {
  enabled: boolean
}

/** A pool of tokens, one for each connection: what its home says of it, and what every shard holds. */
export interface TokenPool {
  /** null: of all brokers; its shards are then numbered over all of them, those of broker 0 first. */
  broker: number | null
  /** broker, listener, ssl, ip, user or cluster. */
  kind: string
  /** The listener's name, or the address. */
  key: string
  /** The shard that decides; null: it did not answer. */
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
  /** There are more. */
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
  /** Over it a connection waits, and is not refused. */
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

/** A user of listeners that ask for SASL. */
export interface UserRow {
  name: string
  /** In which it can log in besides PLAIN. */
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
  /** Of a client; empty: its quota does not tell users apart. null: it is no client's. */
  user: string | null
  /** Of a client; empty: its quota does not tell client ids apart. null: it is no client's. */
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
 * answered this request. Where a shard is home to more than 2,000 pools or 500 metered clients, which of them are the
 * closest, and `close`, was seen in the last ten seconds.
 */
export interface UtilisationAnswer {
  /** Unix seconds. */
  at: number
  /** All of brokers and listeners, and of addresses and clients the closest. */
  limits: Utilisation[]
  close: CloseRow[]
}

/** The volume of the data; bytes are -1 where the system does not tell them. */
export interface VolumeAnswer {
  total_bytes: number
  free_bytes: number
  brokers: BrokerDisk[]
}

/**
 * One address or client on one broker. It is watched from the first question on, for half an hour after the last one.
 */
export interface WatchAnswer {
  broker: number
  ip: string | null
  user: string | null
  client_id: string | null
  /** Since when it is watched, in Unix seconds. */
  began: number
  /** Seconds from one point to the next. */
  step_s: number
  points: WatchPoint[]
  /** Connections since the shards started; null: of a client. */
  admitted: number | null
  /** Likewise. */
  refused: Record<string, number> | null
}

/** A point in time: the use that was seen then, and the events since the point before. */
export interface WatchPoint {
  /** Unix seconds. */
  at: number
  /** By limit: connections that are open, new_connections a second over the quota window, or the use of a quota by its key. */
  used: Record<string, number>
  /** Those that hold, in the same units. */
  limits: Record<string, number>
  /** The average throttle time within the quota window, by the quota's key. */
  throttle_ms: Record<string, number>
  /** Connections a second; of an address. */
  admitted: number
  /** Connections a second, by reason; of an address. */
  refused: Record<string, number>
}
