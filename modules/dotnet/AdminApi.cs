// A client of Turnstile's admin API, which needs .NET 8 alone. UNTRIED: it was never compiled, as there was no dotnet.
// Generated from the API's OpenAPI document by `make clients`: changes belong there.
#nullable enable
using System.Net.Http.Headers;
using System.Net.Http.Json;
using System.Text.Json;
using System.Text.Json.Serialization;

/// <summary>The API answered with an error: Status is HTTP's, the message its body.</summary>
public sealed class AdminRefusedException(int status, string told) : Exception($"{status}: {told}")
{
    public int Status { get; } = status;
}

/// <summary>Calls of the admin API of one cluster; who is what the history of changes names the caller.</summary>
public sealed class AdminApi : IDisposable
{
    private static readonly JsonSerializerOptions Json = new()
    {
        PropertyNamingPolicy = JsonNamingPolicy.SnakeCaseLower,
        DefaultIgnoreCondition = JsonIgnoreCondition.WhenWritingNull,
    };

    private readonly HttpClient http = new();
    private readonly string url;

    public AdminApi(string url, string? token = null, string who = "a client in .NET")
    {
        this.url = url;
        http.DefaultRequestHeaders.Add("x-turnstile-who", who);
        if (token is not null) http.DefaultRequestHeaders.Authorization = new AuthenticationHeaderValue("Bearer", token);
    }

    public void Dispose() => http.Dispose();

    private async Task<string> TextAsync(
        string method, string path, object? body = null, params (string Name, object? Value)[] query)
    {
        var given = query.Where(each => each.Value is not null).Select(each => $"{each.Name}={Encoded(each.Value!)}");
        var asked = string.Join("&", given);
        using var request = new HttpRequestMessage(new HttpMethod(method), url + path + (asked == "" ? "" : "?" + asked));
        if (body is not null) request.Content = JsonContent.Create(body, body.GetType(), options: Json);
        using var response = await http.SendAsync(request);
        var told = await response.Content.ReadAsStringAsync();
        return response.IsSuccessStatusCode ? told : throw new AdminRefusedException((int)response.StatusCode, told);
    }

    private async Task<T> JsonAsync<T>(
        string method, string path, object? body = null, params (string Name, object? Value)[] query) =>
        JsonSerializer.Deserialize<T>(await TextAsync(method, path, body, query), Json)!;

    private static string Encoded(object value) =>
        Uri.EscapeDataString(value is bool yes ? (yes ? "true" : "false") : FormattableString.Invariant($"{value}"));

    /// <summary>The settings and their values: Redpanda's, Kafka's and Turnstile's own.</summary>
    public Task<Dictionary<string, object?>> GetConfigAsync(string? key = null, bool? includeDefaults = null, long? broker = null, bool? observe = null) =>
        JsonAsync<Dictionary<string, object?>>("GET", "/v1/cluster_config", null, ("key", key), ("include_defaults", includeDefaults), ("broker", broker), ("observe", observe));

    /// <summary>Changes settings. The answer comes when every shard enforces them, or counts by them if they are observed limits.</summary>
    public Task<ChangedConfig> PutConfigAsync(SettingsChange body, bool? dryRun = null, long? broker = null, bool? observe = null) =>
        JsonAsync<ChangedConfig>("PUT", "/v1/cluster_config", body, ("dry_run", dryRun), ("broker", broker), ("observe", observe));

    /// <summary>Every setting: its type, range, default and description.</summary>
    public Task<SettingsSchema> GetConfigSchemaAsync() =>
        JsonAsync<SettingsSchema>("GET", "/v1/cluster_config/schema");

    /// <summary>The configuration version of each broker, in the format of rpk.</summary>
    public Task<List<BrokerConfigStatus>> GetConfigStatusAsync() =>
        JsonAsync<List<BrokerConfigStatus>>("GET", "/v1/cluster_config/status");

    /// <summary>The settings that are set for single brokers.</summary>
    public Task<BrokerOverrides> GetBrokerOverridesAsync(bool? observe = null) =>
        JsonAsync<BrokerOverrides>("GET", "/v1/cluster_config/broker_overrides", null, ("observe", observe));

    /// <summary>The history of the configuration: the changes of settings, quotas, topics and other records, with author and time.</summary>
    public Task<SettingHistory> GetConfigHistoryAsync(long? limit = null, long? before = null) =>
        JsonAsync<SettingHistory>("GET", "/v1/config/history", null, ("limit", limit), ("before", before));

    /// <summary>Warnings about the limits in force, such as a cap that refuses everything.</summary>
    public Task<NotesAnswer> GetNotesAsync() =>
        JsonAsync<NotesAnswer>("GET", "/v1/notes");

    /// <summary>The advertised addresses.</summary>
    public Task<AdvertisedAnswer> GetAdvertisedAsync() =>
        JsonAsync<AdvertisedAnswer>("GET", "/v1/advertise");

    /// <summary>Sets the advertised addresses of a listener.</summary>
    public Task<ChangedAdvertised> PutAdvertisedAsync(AddressesChange body) =>
        JsonAsync<ChangedAdvertised>("PUT", "/v1/advertise", body);

    /// <summary>Takes back the addresses that were set live: those of the start of the cluster are advertised again.</summary>
    public Task<ChangedAdvertised> DeleteAdvertisedAsync(string? listener = null, long? broker = null) =>
        JsonAsync<ChangedAdvertised>("DELETE", "/v1/advertise", null, ("listener", listener), ("broker", broker));

    /// <summary>All quotas.</summary>
    public Task<QuotasAnswer> GetQuotasAsync(bool? observe = null) =>
        JsonAsync<QuotasAnswer>("GET", "/v1/quotas", null, ("observe", observe));

    /// <summary>Changes quotas. The answer comes when every shard enforces them, or counts by them if they are observed.</summary>
    public Task<ChangedConfig> PutQuotasAsync(QuotasChange body, bool? dryRun = null, bool? observe = null) =>
        JsonAsync<ChangedConfig>("PUT", "/v1/quotas", body, ("dry_run", dryRun), ("observe", observe));

    /// <summary>The observed client quotas, and the requests that they would have throttled.</summary>
    public Task<ObservedQuotasAnswer> GetObservedQuotasAsync() =>
        JsonAsync<ObservedQuotasAnswer>("GET", "/v1/quotas/observed");

    /// <summary>The quotas that hold for a client.</summary>
    public Task<ClientQuotas> ExplainQuotasAsync(string? user = null, string? clientId = null) =>
        JsonAsync<ClientQuotas>("GET", "/v1/quotas/explain", null, ("user", user), ("client-id", clientId));

    /// <summary>The limits that hold for an address, the quotas of a client, or both.</summary>
    public Task<Explanation> ExplainAsync(string? ip = null, string? user = null, string? clientId = null) =>
        JsonAsync<Explanation>("GET", "/v1/explain", null, ("ip", ip), ("user", user), ("client-id", clientId));

    /// <summary>The users that may log in on listeners with SASL.</summary>
    public Task<UsersAnswer> GetUsersAsync() =>
        JsonAsync<UsersAnswer>("GET", "/v1/users");

    /// <summary>Adds a user, changes its password, or removes it.</summary>
    public Task<ChangedConfig> PutUserAsync(UserChange body) =>
        JsonAsync<ChangedConfig>("PUT", "/v1/users", body);

    /// <summary>The faults, and how often each has fired.</summary>
    public Task<FaultsAnswer> GetFaultsAsync() =>
        JsonAsync<FaultsAnswer>("GET", "/v1/faults");

    /// <summary>Adds and removes faults. The answer comes when they are in force on every shard.</summary>
    public Task<ChangedFaults> PutFaultsAsync(FaultsChange body) =>
        JsonAsync<ChangedFaults>("PUT", "/v1/faults", body);

    /// <summary>The clients that push telemetry (KIP-714).</summary>
    public Task<TelemetryAnswer> GetTelemetryAsync() =>
        JsonAsync<TelemetryAnswer>("GET", "/v1/telemetry");

    /// <summary>Changes a client metrics resource: the metrics that clients push, and the interval.</summary>
    public Task<ChangedConfig> PutSubscriptionAsync(SubscriptionConfigs body) =>
        JsonAsync<ChangedConfig>("PUT", "/v1/telemetry", body);

    /// <summary>The last push of a client instance.</summary>
    public Task<TelemetryPush> GetLastPushAsync(string clientInstanceId) =>
        JsonAsync<TelemetryPush>("GET", $"/v1/telemetry/{Encoded(clientInstanceId)}");

    /// <summary>The number of refused connections, by what `by` names.</summary>
    public Task<RefusalsAnswer> GetRefusalsAsync(string? by = null, bool? observed = null) =>
        JsonAsync<RefusalsAnswer>("GET", "/v1/refusals", null, ("by", by), ("observed", observed));

    /// <summary>The admitted and refused connections of each address.</summary>
    public Task<SourcesAnswer> GetSourcesAsync() =>
        JsonAsync<SourcesAnswer>("GET", "/v1/sources");

    /// <summary>The open connections by proxy, and by private endpoint of a cloud.</summary>
    public Task<ProxiesAnswer> GetProxiesAsync() =>
        JsonAsync<ProxiesAnswer>("GET", "/v1/proxies");

    /// <summary>The use of each limit: caps, creation rates and client quotas. The fullest come first.</summary>
    public Task<UtilisationAnswer> GetUtilisationAsync(long? limit = null) =>
        JsonAsync<UtilisationAnswer>("GET", "/v1/utilisation", null, ("limit", limit));

    /// <summary>The use of limits, the refusals and the throttles of one address or client over time. The first request starts it.</summary>
    public Task<WatchAnswer> GetWatchAsync(string? ip = null, string? user = null, string? clientId = null, long? broker = null, long? minutes = null, double? since = null) =>
        JsonAsync<WatchAnswer>("GET", "/v1/watch", null, ("ip", ip), ("user", user), ("client-id", clientId), ("broker", broker), ("minutes", minutes), ("since", since));

    /// <summary>The caps that are used most, and the number of their tokens on each shard.</summary>
    public Task<TokensAnswer> GetTokensAsync() =>
        JsonAsync<TokensAnswer>("GET", "/v1/tokens");

    /// <summary>The processes of the brokers.</summary>
    public Task<ShardsAnswer> GetShardsAsync() =>
        JsonAsync<ShardsAnswer>("GET", "/v1/shards");

    /// <summary>Everything that the live page and `turnstile top` refresh.</summary>
    public Task<LiveAnswer> GetLiveAsync(double? since = null) =>
        JsonAsync<LiveAnswer>("GET", "/v1/live", null, ("since", since));

    /// <summary>Connections, admissions, refusals and throttled requests of the last minutes.</summary>
    public Task<SeriesAnswer> GetSeriesAsync(long? minutes = null, double? since = null) =>
        JsonAsync<SeriesAnswer>("GET", "/v1/series", null, ("minutes", minutes), ("since", since));

    /// <summary>The cluster: its processes, listeners, topics and disk.</summary>
    public Task<ClusterAnswer> GetClusterAsync() =>
        JsonAsync<ClusterAnswer>("GET", "/v1/cluster");

    /// <summary>Files that could not be read, and were set aside.</summary>
    public Task<DamagedAnswer> GetDamagedAsync() =>
        JsonAsync<DamagedAnswer>("GET", "/v1/damaged");

    /// <summary>Resets settings, topics, groups, quotas and users to what they were when the cluster started. Closes every connection.</summary>
    public Task<ChangedConfig> ResetAsync() =>
        JsonAsync<ChangedConfig>("POST", "/v1/reset");

    /// <summary>Ends the whole cluster, after the answer is sent.</summary>
    public Task<EndingAnswer> ShutdownAsync() =>
        JsonAsync<EndingAnswer>("POST", "/v1/shutdown");

    /// <summary>Metrics for Prometheus, under three kinds of names: those of Redpanda's `/metrics` (without `_total`), Kafka's as in the example rules of the JMX exporter, and `turnstile_*`.</summary>
    public Task<string> GetMetricsAsync() =>
        TextAsync("GET", "/metrics");

    /// <summary>Metrics for Prometheus, under the names of Redpanda's `/public_metrics` (`redpanda_rpc_*`, `redpanda_storage_disk_*`).</summary>
    public Task<string> GetPublicMetricsAsync() =>
        TextAsync("GET", "/public_metrics");

    /// <summary>The health of the cluster: ok if every shard is up and the supervisor, which restarts shards, runs. Needs no token.</summary>
    public Task<HealthAnswer> GetHealthAsync() =>
        JsonAsync<HealthAnswer>("GET", "/healthz");

    /// <summary>The live page: connections, refusals, and the use of limits and quotas, which it can change.</summary>
    public Task<string> GetPageAsync() =>
        TextAsync("GET", "/");

    /// <summary>A file of the live page.</summary>
    public Task<string> GetPageFileAsync(string name) =>
        TextAsync("GET", $"/page/{Encoded(name)}");

    /// <summary>The open connections that match a filter, in an order (Redpanda's ListKafkaConnections).</summary>
    public Task<ListedConnections> ListKafkaConnectionsAsync(ListConnectionsBody body) =>
        JsonAsync<ListedConnections>("POST", "/redpanda.core.admin.v2.ClusterService/ListKafkaConnections", body);

    /// <summary>The brokers, in the format of rpk.</summary>
    public Task<ListedBrokers> ListBrokersAsync(ListBrokersBody body) =>
        JsonAsync<ListedBrokers>("POST", "/redpanda.core.admin.v2.BrokerService/ListBrokers", body);

    /// <summary>A broker and its release, in the format of rpk.</summary>
    public Task<OneBroker> GetBrokerAsync(GetBrokerBody body) =>
        JsonAsync<OneBroker>("POST", "/redpanda.core.admin.v2.BrokerService/GetBroker", body);

    /// <summary>This document.</summary>
    public Task<Dictionary<string, object>> GetOpenapiAsync() =>
        JsonAsync<Dictionary<string, object>>("GET", "/v1/openapi.json");
}

/// <summary>The limits of one broker for an address.</summary>
public sealed record AddressLimits(long Broker, string Ip, List<AddressPool> Connections, List<AddressRate> Rates);

/// <summary>A limit on open connections that a connection of the address counts for.</summary>
/// <param name="Pool">broker, listener:NAME, ssl, ip:ADDRESS, user:NAME or cluster.</param>
/// <param name="Limit">The setting; empty: unlimited.</param>
/// <param name="Value">null: unlimited.</param>
/// <param name="Waits">True: over the cap a connection waits instead of being refused.</param>
/// <param name="Observed">The cap that is observed beside it; null: none is.</param>
public sealed record AddressPool(string Pool, string Limit, long? Value, bool Waits, long? Home, long InUse, long Cached, List<HeldTokens> Holders, ObservedUse? Observed);

/// <summary>A limit on new connections a second that holds for the address or user.</summary>
/// <param name="Of">broker, ip, core, user, listener:NAME or cluster.</param>
/// <param name="Limit">The setting or quota.</param>
/// <param name="Value">Connections a second.</param>
/// <param name="Burst">Connections that pass at once after a pause.</param>
/// <param name="Used">Connections a second, over the quota window; null: not known.</param>
public sealed record AddressRate(string Of, string Limit, double Value, double Burst, double? Used);

/// <summary>The advertised addresses of a listener.</summary>
/// <param name="Addresses">host:port, or `auto`: the address that a client reached.</param>
/// <param name="Listener">May be left out where there is only one.</param>
/// <param name="Broker">This broker alone; without it, `addresses` has one for each.</param>
public sealed record AddressesChange(object Addresses, string? Listener = null, long? Broker = null);

/// <summary>The advertised address of a listener of one broker, for the admin API.</summary>
/// <param name="Address">host:port; `auto`: the address that the client reached.</param>
/// <param name="Source">live: set live; start: as the cluster was started; listener: where it listens.</param>
/// <param name="Guess">It follows from where the cluster listens, not from what was said.</param>
public sealed record AdvertisedAddress(long Broker, string Listener, string Address, long Port, string Source, bool Guess);

/// <summary>Each listener of each broker.</summary>
public sealed record AdvertisedAnswer(List<AdvertisedAddress> Advertised);

/// <summary>The proof of its identity that a client has given, if any.</summary>
public sealed record AuthenticationInfo(string State, string UserPrincipal);

/// <summary>A broker, in the format of rpk.</summary>
/// <param name="ConfigVersion">The version that every shard of the broker has acknowledged.</param>
public sealed record BrokerConfigStatus(long NodeId, bool Restart, long ConfigVersion, List<string> Invalid, List<string> Unknown);

/// <summary>The space that a broker needs: while less is free it is `full`, and refuses Produce.</summary>
public sealed record BrokerDisk(long Broker, long LeastFreeBytes, bool Full);

/// <summary>The settings that are set for single brokers.</summary>
/// <param name="Overrides">Settings by broker id.</param>
public sealed record BrokerOverrides(Dictionary<string, Dictionary<string, object?>> Overrides);

/// <summary>The present rates of a client on one broker.</summary>
/// <param name="Rates">By the quota's key: bytes a second, percent of a thread, mutations or connections a second.</param>
public sealed record BrokerQuotaRates(long Broker, Dictionary<string, double> Rates);

/// <summary>The release of Redpanda whose calls a broker answers here.</summary>
public sealed record BuildInfo(string Version, string BuildSha);

/// <summary>The addresses after a change, which is in force on every shard.</summary>
/// <param name="ConfigVersion">The version of the configuration that is in force on every shard.</param>
public sealed record ChangedAdvertised(long ConfigVersion, List<AdvertisedAddress> Advertised);

/// <summary>A change that is in force on every shard.</summary>
/// <param name="ConfigVersion">The version of the configuration that is in force on every shard.</param>
/// <param name="Notes">Warnings about the new values, one sentence each.</param>
public sealed record ChangedConfig(long ConfigVersion, List<string>? Notes = null);

/// <summary>Faults after a change, which is in force on every shard.</summary>
/// <param name="ConfigVersion">The version of the configuration that is in force on every shard.</param>
/// <param name="Names">The names of the added faults, in their order.</param>
public sealed record ChangedFaults(long ConfigVersion, List<string> Names);

/// <summary>A client that asked for subscriptions, or pushed, as one shard knows it.</summary>
/// <param name="Metrics">Prefixes of the metrics that it was asked for; null: it has not asked.</param>
/// <param name="Refused">The number of refused pushes by error.</param>
/// <param name="PushedAtMs">The time of the last accepted push, in Unix milliseconds.</param>
/// <param name="Bytes">The size of the last push, as it was sent.</param>
public sealed record ClientInstance(string ClientInstanceId, bool Connected, List<string> Metrics, long? PushIntervalMs, long? SubscriptionId, long Pushes, Dictionary<string, long> Refused, long? PushedAtMs, long Bytes, long Broker, long Shard, string? ClientId = null, string? ClientSoftwareName = null, string? ClientSoftwareVersion = null, string? ClientSourceAddress = null, string? ClientSourcePort = null);

/// <summary>The quotas that hold for a client by Kafka's precedence, and its present rates.</summary>
/// <param name="Matched">The names user and client-id, and client-id-prefix for a quota of a prefix. `&lt;default&gt;` is the default; null: not told apart.</param>
/// <param name="Quotas">By the quota's key: bytes a second, percent of a thread, mutations or connections a second.</param>
/// <param name="Rates">By the quota's key: bytes a second, percent of a thread, mutations or connections a second.</param>
/// <param name="Levels">The level that each quota comes from, by the quota's key.</param>
public sealed record ClientQuotas(Dictionary<string, string?> Matched, Dictionary<string, double> Quotas, Dictionary<string, double> Rates, List<BrokerQuotaRates> Brokers, Dictionary<string, Dictionary<string, string?>> Levels);

/// <summary>The number of limits of a kind that are close to being reached on one broker. One that is full is near and high, too.</summary>
/// <param name="Broker">null: the limit is one of the whole cluster.</param>
/// <param name="What">connections, new_connections, or a client quota's key.</param>
/// <param name="Of">cluster: of all brokers together; broker: of the broker and its listeners; ip: of addresses; user: of users' connections; client: of clients.</param>
/// <param name="High">From 80 % on.</param>
/// <param name="Near">From 90 % on.</param>
/// <param name="Full">From 100 % on.</param>
/// <param name="Limits">The number of limits of this kind that were in use.</param>
public sealed record CloseRow(long? Broker, string What, string Of, long High, long Near, long Full, long Limits);

/// <summary>The cluster: its processes, listeners, topics and disk.</summary>
/// <param name="Pid">The pid of the supervisor.</param>
/// <param name="Lost">The parts of the configuration that could not be read, a sentence each.</param>
/// <param name="Topics">Partitions by topic.</param>
/// <param name="Shards">Of each broker.</param>
public sealed record ClusterAnswer(long Pid, long CoordinatorPid, List<string> Lost, Dictionary<string, long> Topics, VolumeAnswer? Disk, JournalAnswer Journal, string? ClusterId = null, string? DataDir = null, long? Brokers = null, long? Shards = null, List<ListenerRow>? Listeners = null);

/// <summary>The failure of a call of the Connect protocol.</summary>
/// <param name="Code">invalid_argument, not_found, unimplemented or unavailable.</param>
/// <param name="Message">One sentence.</param>
public sealed record ConnectError(string Code, string Message);

/// <summary>The address and port that a connection comes from; those that a trusted proxy announced, if one did.</summary>
public sealed record ConnectionSource(string IpAddress, long Port);

/// <summary>The files that were set aside.</summary>
public sealed record DamagedAnswer(List<DamagedFile> Damaged);

/// <summary>A file that could not be read, and was set aside.</summary>
/// <param name="Path">The path below the data directory.</param>
public sealed record DamagedFile(string Path, long SizeBytes);

/// <summary>The cluster is about to end.</summary>
public sealed record EndingAnswer(bool Ending);

/// <summary>An entity and its quotas.</summary>
/// <param name="Entity">The entity of a quota: its name by type (user, client-id, client-id-prefix or ip). null: the default of that type.</param>
/// <param name="Values">By the quota's key: bytes a second, percent of a thread, mutations or connections a second.</param>
public sealed record EntityQuotas(Dictionary<string, string?> Entity, Dictionary<string, double> Values);

/// <summary>The limits that hold for an address (`brokers`), for a client (`client`), or for both, whichever the request names. If it names a user, also the limits of that user's connections (`user_connections`).</summary>
/// <param name="Cluster">Beside `brokers` or `user_connections`, if the whole cluster has a cap, or one is observed: its use, without home and holders.</param>
/// <param name="ClusterRate">Beside `brokers` or `user_connections`, if the whole cluster has a rate of new connections.</param>
/// <param name="ObservedClusterRate">The same, if one is observed that is not the one in force.</param>
public sealed record Explanation(List<AddressLimits>? Brokers = null, AddressPool? Cluster = null, AddressRate? ClusterRate = null, AddressRate? ObservedClusterRate = null, ClientQuotas? Client = null, List<UserConnections>? UserConnections = null);

/// <summary>A fault that is set.</summary>
/// <param name="Fired">The number of times it fired; a killed shard loses its part of the count.</param>
/// <param name="ClientId">* and ? stand for other characters.</param>
/// <param name="Connection">The client's IP:PORT.</param>
/// <param name="Error">The name of a Kafka error, for the kind error.</param>
/// <param name="DelayMs">For the kind delay.</param>
/// <param name="ThrottleMs">For the kind throttle.</param>
/// <param name="Reset">For the kind disconnect: close by RST.</param>
/// <param name="Mute">For the kind throttle: the connection is muted, too.</param>
/// <param name="OnCall">Fires at this call only, counted from 1.</param>
/// <param name="Times">The number of calls at which it fires, from the first on.</param>
/// <param name="EveryMs">Fires if it last fired so many milliseconds ago or longer.</param>
/// <param name="Probability">The share of calls at which it fires, from 0 to 1.</param>
/// <param name="Seed">The seed that chooses these calls.</param>
/// <param name="Api">Names of Kafka's APIs; none: all.</param>
public sealed record FaultRow(string Name, string Kind, long Fired, string? ClientId = null, string? Ip = null, string? Connection = null, string? Error = null, long? DelayMs = null, long? ThrottleMs = null, bool? Reset = null, bool? Mute = null, bool? Once = null, long? OnCall = null, long? Times = null, long? EveryMs = null, double? Probability = null, long? Seed = null, List<string>? Api = null);

/// <summary>Every fault that is set.</summary>
public sealed record FaultsAnswer(List<FaultRow> Faults);

/// <summary>Faults to add and, by name, to remove: all of them or none.</summary>
public sealed record FaultsChange(List<NewFault>? Add = null, List<string>? Remove = null);

/// <summary>The broker that is asked for.</summary>
public sealed record GetBrokerBody(long? NodeId = null);

/// <summary>The health of the cluster: ok if every shard is up, and the supervisor runs.</summary>
/// <param name="Missing">The shards that are not up, and the supervisor if it is stopped.</param>
/// <param name="States">The state of each of them.</param>
public sealed record HealthAnswer(string Status, List<string>? Missing = null, Dictionary<string, object>? States = null);

/// <summary>The tokens of a pool on one shard.</summary>
public sealed record HeldTokens(long Shard, long InUse, long Cached);

/// <summary>Requests under way. Their APIs are not kept.</summary>
/// <param name="HasMoreRequests">True: a request is under way.</param>
public sealed record InFlightRequests(List<string> SampledInFlightRequests, bool HasMoreRequests);

/// <summary>The events that the journal lacks.</summary>
/// <param name="EventsDropped">The number of events since the start that were not written.</param>
/// <param name="IsLosing">True: events are being lost now.</param>
public sealed record JournalAnswer(long EventsDropped, bool IsLosing);

/// <summary>A setting that limits clients.</summary>
/// <param name="Broker">The broker that it is set for; null: the whole cluster.</param>
/// <param name="Text">The value as `turnstile config set` takes it.</param>
/// <param name="Vocabulary">The origin of the name: kafka, redpanda or turnstile.</param>
/// <param name="Observable">True if it can be observed instead of enforced.</param>
public sealed record LimitRow(string Name, long? Broker, object? Value, string Text, bool Set, string Vocabulary, bool Observable, string Doc);

/// <summary>The use of a limit on one broker, or of one of the whole cluster.</summary>
/// <param name="Broker">null: the limit is one of the whole cluster.</param>
/// <param name="What">Open ones, or new ones a second over the quota window.</param>
/// <param name="Of">broker, broker:all, listener:NAME, ssl, ip:ADDRESS, user:NAME or cluster.</param>
/// <param name="By">The setting or quota that gives the limit.</param>
public sealed record LimitUse(long? Broker, string What, string Of, double Used, double Limit, string By);

/// <summary>Nothing is asked.</summary>
public sealed record ListBrokersBody();

/// <summary>The connections that are asked for, and their order.</summary>
/// <param name="PageSize">The most connections to return; 0, or more than 1000: 1000.</param>
/// <param name="Filter">Conditions joined by AND, such as `client_id = "app" AND idle_duration &gt; 30s`.</param>
/// <param name="OrderBy">Fields, each with asc or desc, such as `idle_duration desc, source.port`.</param>
public sealed record ListConnectionsBody(long? PageSize = null, string? Filter = null, string? OrderBy = null);

/// <summary>Every broker.</summary>
public sealed record ListedBrokers(List<RedpandaBroker> Brokers);

/// <summary>An open connection. The other members of Redpanda's KafkaConnection are not kept.</summary>
/// <param name="Uid">Incarnation of the shard, broker, shard, and the connection's number in the journal, as a UUID.</param>
/// <param name="ClientId">The client id; empty: the client has not sent one yet.</param>
/// <param name="IdleDuration">Since its last request was read; 0s while one is under way.</param>
public sealed record ListedConnection(long NodeId, long ShardId, string Uid, string State, string OpenTime, AuthenticationInfo AuthenticationInfo, string ListenerName, TlsInfo TlsInfo, ConnectionSource Source, string ClientId, string ClientSoftwareName, string ClientSoftwareVersion, string IdleDuration, InFlightRequests InFlightRequests, RequestStatistics TotalRequestStatistics);

/// <summary>The connections that match.</summary>
/// <param name="TotalSize">The number of matches, a whole number; `connections` may have fewer.</param>
public sealed record ListedConnections(List<ListedConnection> Connections, string TotalSize);

/// <summary>A listener of one broker.</summary>
/// <param name="Address">host:port that it is bound to.</param>
public sealed record ListenerRow(long Broker, string Name, string Address, List<string> Options);

/// <summary>Everything that a display refreshes. The rates of `shards` are over the last second that was sampled; new connections in `uses`, and the values of quotas, are over the quota window.</summary>
/// <param name="At">Unix seconds.</param>
/// <param name="Uses">The fullest first.</param>
/// <param name="Close">The numbers of limits that are close to being reached.</param>
/// <param name="Throttled">Clients that are throttled by a quota, the longest throttle time first.</param>
/// <param name="WithinQuota">Other clients with a quota that they use, the fullest first.</param>
/// <param name="Observed">null: no limit and no quota is observed.</param>
public sealed record LiveAnswer(double At, double UptimeS, double WindowS, long Version, long Brokers, List<string> Listeners, LiveTotals Totals, JournalAnswer Journal, List<LiveShard> Shards, List<SeriesPoint> Series, List<LimitUse> Uses, List<CloseRow> Close, List<RefusedAddress> TopRefused, RefusedAddresses RefusedAddresses, List<QuotaClient> Throttled, List<QuotaClient> WithinQuota, List<LimitRow> Limits, ObservedAnswer? Observed);

/// <summary>The process of one shard, and its work.</summary>
/// <param name="Epoch">The number of this incarnation of the process; it only rises.</param>
/// <param name="Stalls">The number of times that its event loop was held up.</param>
/// <param name="MemoryKills">The number of times that the system killed it for want of memory.</param>
/// <param name="RestartInS">Seconds until a shard that keeps ending is started again; null: it does not wait for that.</param>
/// <param name="Decisions">Decisions about connections: home (at once, without a token of another shard), cached (at once, with tokens that another shard had granted before), rpc (later: it waited for a home's answer).</param>
public sealed record LiveShard(long Broker, long Shard, long Pid, long Epoch, string State, long Connections, long ConfigVersion, long Stalls, double LongestCallbackMs, long Restarts, long MemoryKills, double? RestartInS, double AdmittedPerS, double RefusedPerS, long Admitted, long Refused, TokenTotals Tokens, Dictionary<string, long> Decisions);

/// <summary>Gauges, and counts since the cluster started.</summary>
/// <param name="Refused">Connections, by the reason of the refusal.</param>
/// <param name="Decisions">Decisions about connections: home (at once, without a token of another shard), cached (at once, with tokens that another shard had granted before), rpc (later: it waited for a home's answer).</param>
/// <param name="Throttled">By the quota's kind.</param>
public sealed record LiveTotals(long Connections, long Admitted, long Closed, long Lost, Dictionary<string, long> Refused, Dictionary<string, long> Decisions, TokenTotals Tokens, long Waiting, long Held, long Muted, long Borrows, long Reclaims, long Malformed, long Requests, long BytesIn, long BytesOut, Dictionary<string, Throttles> Throttled);

/// <summary>A point of a metric; empty members are left out.</summary>
/// <param name="AtMs">Unix milliseconds.</param>
public sealed record MetricPoint(string Type, string? Name = null, string? Unit = null, string? Temporality = null, Dictionary<string, object?>? Resource = null, Dictionary<string, object?>? Attributes = null, long? AtMs = null, double? Value = null, long? Count = null, double? Sum = null, List<long>? BucketCounts = null, List<double?>? ExplicitBounds = null, List<List<object?>>? Quantiles = null);

/// <summary>A fault to add.</summary>
/// <param name="ClientId">* and ? stand for other characters.</param>
/// <param name="Connection">The client's IP:PORT.</param>
/// <param name="Error">The name of a Kafka error, for the kind error.</param>
/// <param name="DelayMs">For the kind delay.</param>
/// <param name="ThrottleMs">For the kind throttle.</param>
/// <param name="Reset">For the kind disconnect: close by RST.</param>
/// <param name="Mute">For the kind throttle: the connection is muted, too.</param>
/// <param name="OnCall">Fires at this call only, counted from 1.</param>
/// <param name="Times">The number of calls at which it fires, from the first on.</param>
/// <param name="EveryMs">Fires if it last fired so many milliseconds ago or longer.</param>
/// <param name="Probability">The share of calls at which it fires, from 0 to 1.</param>
/// <param name="Seed">The seed that chooses these calls.</param>
/// <param name="Name">Left out: the fault gets one, such as fault-1.</param>
/// <param name="Api">Names of Kafka's APIs; none: all.</param>
public sealed record NewFault(string Kind, string? ClientId = null, string? Ip = null, string? Connection = null, string? Error = null, long? DelayMs = null, long? ThrottleMs = null, bool? Reset = null, bool? Mute = null, bool? Once = null, long? OnCall = null, long? Times = null, long? EveryMs = null, double? Probability = null, long? Seed = null, string? Name = null, object? Api = null);

/// <summary>Warnings about the limits in force: those that admit no connection, and the bursts that rates let through.</summary>
public sealed record NotesAnswer(List<string> Notes);

/// <summary>The refusals and waits that observed caps and creation rates would have caused since one of these limits was last changed; a shard that was started again has forgotten its part.</summary>
/// <param name="Addresses">The number of addresses of these connections that were counted one by one.</param>
/// <param name="More">True: at least one shard's table of addresses was full, so there may be more.</param>
/// <param name="Set">Values by name; null: no value.</param>
/// <param name="Brokers">The observed values that are set for single brokers, by broker id.</param>
/// <param name="Quotas">null: no client quota is observed.</param>
public sealed record ObservedAnswer(long Refused, long Waited, long Undecided, long Addresses, bool More, List<ObservedCapRow> Caps, Dictionary<string, object?> Set, Dictionary<string, Dictionary<string, object?>> Brokers, ObservedQuotasAnswer? Quotas);

/// <summary>A cap or a creation rate that is observed instead of enforced.</summary>
/// <param name="Limit">The setting.</param>
/// <param name="Waits">Connections would have waited, for a slot or for a rate.</param>
/// <param name="Count">Connections that it would have refused, or made wait.</param>
public sealed record ObservedCapRow(string Limit, double Value, bool Waits, long Count);

/// <summary>A client that observed quotas would have throttled.</summary>
/// <param name="Error">`requests` may be too high by this.</param>
/// <param name="Quotas">Requests, by the quota with the longest throttle time.</param>
public sealed record ObservedClientRow(string User, string ClientId, long Requests, long Error, Dictionary<string, long> Quotas);

/// <summary>A client quota that is observed instead of enforced, at one value.</summary>
/// <param name="Quota">The kind of quota.</param>
/// <param name="Requests">Requests that it would have throttled.</param>
/// <param name="ThrottleMs">The sum of their throttle times.</param>
/// <param name="Refused">Mutations that it would have refused.</param>
public sealed record ObservedQuotaRow(string Quota, double Value, long Requests, long ThrottleMs, long Refused);

/// <summary>Requests that the observed client quotas would have throttled since one of these quotas was last changed. A shard that was started again counts anew.</summary>
/// <param name="Set">The observed quotas.</param>
/// <param name="Requests">Requests that at least one of them would have throttled.</param>
/// <param name="ThrottleMs">The sum of the throttle times; of each request the longest.</param>
/// <param name="More">True: there are more clients than `clients` has.</param>
public sealed record ObservedQuotasAnswer(List<EntityQuotas> Set, long Requests, long ThrottleMs, bool More, List<ObservedQuotaRow> Quotas, List<ObservedClientRow> Clients);

/// <summary>An observed cap, and its use.</summary>
public sealed record ObservedUse(string Limit, long? Value, bool Waits, long InUse);

/// <summary>A broker.</summary>
public sealed record OneBroker(RedpandaBroker Broker);

/// <summary>The reason why a request was refused, or can't be answered now.</summary>
/// <param name="Message">One sentence.</param>
/// <param name="Code">The HTTP status.</param>
public sealed record Problem(string Message, long Code);

/// <summary>The proxies of the open connections; the proxy with the most comes first.</summary>
public sealed record ProxiesAnswer(List<ProxyRow> Proxies);

/// <summary>A proxy that announced connections (PROXY protocol).</summary>
/// <param name="Proxy">The address of the proxy.</param>
/// <param name="Endpoint">The private endpoint of a cloud by which the connections came.</param>
public sealed record ProxyRow(string Proxy, string? Endpoint, long Open);

/// <summary>The quotas of one entity that change.</summary>
/// <param name="Entity">The entity of a quota: its name by type (user, client-id, client-id-prefix or ip). null: the default of that type.</param>
/// <param name="Set">By the quota's key: bytes a second, percent of a thread, mutations or connections a second.</param>
/// <param name="Remove">Keys of quotas.</param>
public sealed record QuotaChange(Dictionary<string, string?> Entity, Dictionary<string, double>? Set = null, List<string>? Remove = null);

/// <summary>A client with a quota, on one broker.</summary>
/// <param name="User">Empty: the quota does not tell users apart.</param>
/// <param name="ClientId">Empty: the quota does not tell client ids apart.</param>
/// <param name="Quota">The quota's key.</param>
/// <param name="ThrottleMs">The average throttle time within the quota window, in milliseconds.</param>
/// <param name="Value">Bytes a second, percent, or mutations a second.</param>
/// <param name="Limit">The quota, in the same unit; null: it is no longer set.</param>
public sealed record QuotaClient(long Broker, string User, string ClientId, string Quota, double ThrottleMs, double Value, double? Limit);

/// <summary>Every entity that has a quota.</summary>
public sealed record QuotasAnswer(List<EntityQuotas> Quotas);

/// <summary>Quotas that change: all of them or none.</summary>
public sealed record QuotasChange(List<QuotaChange> Alter);

/// <summary>A version of the configuration, and what it changed: of a setting the values that were in force.</summary>
/// <param name="At">Unix seconds.</param>
/// <param name="Who">The caller as it names itself, and the address it called from.</param>
/// <param name="Changes">Kind, such as setting or quota; key; old and new value, null: none.</param>
public sealed record RecordedChange(long Version, double At, string Who, List<List<object?>> Changes);

/// <summary>A broker.</summary>
public sealed record RedpandaBroker(long NodeId, BuildInfo BuildInfo);

/// <summary>Counts since the cluster started. By ip there are only the most refused addresses, counted since their shard started. If `observed`, the counts by ip and by limit are those since an observed limit was last changed.</summary>
/// <param name="Observed">True: these are observed limits, which have refused nothing.</param>
public sealed record RefusalsAnswer(string By, long Total, long Admitted, List<RefusedRow> Refusals, bool? Observed = null, ObservedAnswer? Summary = null);

/// <summary>One of the addresses that were refused most.</summary>
/// <param name="Error">`count` may be too high by this.</param>
/// <param name="Reasons">Connections, by the reason of the refusal.</param>
/// <param name="Open">The open connections of the address.</param>
public sealed record RefusedAddress(string Ip, long Count, long Error, Dictionary<string, long> Reasons, long Open, List<LimitUse> Uses);

/// <summary>The number of addresses that were refused.</summary>
/// <param name="Known">The number of addresses that have a count of their own.</param>
/// <param name="OthersRefused">Refusals of the addresses that `top_refused` leaves out.</param>
/// <param name="More">True: at least one shard's table of addresses was full, so there may be more.</param>
public sealed record RefusedAddresses(long Known, long OthersRefused, bool More);

/// <summary>The refusals of one address, listener, reason, shard or observed limit. Besides `count`, only the members that belong to `by` are there.</summary>
/// <param name="Error">By ip: `count` may be too high by this.</param>
/// <param name="Reasons">Connections, by the reason of the refusal.</param>
/// <param name="Value">The value of the limit.</param>
/// <param name="Waits">True: at the limit, connections would have waited.</param>
public sealed record RefusedRow(long Count, string? Ip = null, long? Error = null, string? Listener = null, long? Broker = null, long? Shard = null, string? Reason = null, Dictionary<string, long>? Reasons = null, string? Limit = null, double? Value = null, bool? Waits = null);

/// <summary>The counts of a connection since it was opened.</summary>
/// <param name="RequestCount">A whole number.</param>
public sealed record RequestStatistics(string RequestCount);

/// <summary>The counts over time.</summary>
/// <param name="StepS">Seconds from one point to the next; each is an average over the time since the last.</param>
public sealed record SeriesAnswer(double StepS, List<SeriesPoint> Series);

/// <summary>One step of time: gauges at its end, and rates a second within it. Reasons and quotas without a count are left out.</summary>
/// <param name="At">Unix seconds.</param>
public sealed record SeriesPoint(double At, long Connections, double Admitted, double Closed, Dictionary<string, double> Refused, long InUse, long Cached, Dictionary<string, double> Decisions, double Requests, Dictionary<string, double> Throttled);

/// <summary>The last changes, the latest first.</summary>
public sealed record SettingHistory(List<RecordedChange> History);

/// <summary>The entries of a setting that is a list.</summary>
public sealed record SettingItems(string Type);

/// <summary>A setting, in the format of Redpanda's schema.</summary>
/// <param name="Type">integer, number, boolean, string or array.</param>
/// <param name="Emulated">False: the setting is stored and shown, but has no effect.</param>
/// <param name="NeedsRestart">True: it can't be changed while the cluster runs.</param>
/// <param name="Vocabulary">The origin of the name: kafka, redpanda or turnstile.</param>
public sealed record SettingProperty(string Type, string Description, bool Emulated, bool Nullable, bool NeedsRestart, string Visibility, bool IsSecret, string Vocabulary, object? Default, SettingItems? Items = null, List<string>? EnumValues = null, double? Minimum = null, double? Maximum = null);

/// <summary>Settings to set, and to take back: all of them or none.</summary>
/// <param name="Upsert">A value, or its text as `turnstile config set` takes it, by name.</param>
public sealed record SettingsChange(Dictionary<string, object?>? Upsert = null, List<string>? Remove = null);

/// <summary>Every setting, by name.</summary>
public sealed record SettingsSchema(Dictionary<string, SettingProperty> Properties);

/// <summary>The process of one shard.</summary>
/// <param name="Epoch">The number of this incarnation of the process; it only rises.</param>
/// <param name="Stalls">The number of times that its event loop was held up.</param>
/// <param name="MemoryKills">The number of times that the system killed it for want of memory.</param>
/// <param name="RestartInS">Seconds until a shard that keeps ending is started again; null: it does not wait for that.</param>
public sealed record ShardRow(long Broker, long Shard, long Pid, long Epoch, string State, long Connections, long ConfigVersion, long Stalls, double LongestCallbackMs, long Restarts, long MemoryKills, double? RestartInS);

/// <summary>Every shard.</summary>
public sealed record ShardsAnswer(List<ShardRow> Shards);

/// <summary>The admitted and refused connections of each address, since its shard started. Two answers can be subtracted if `shards`, `forgotten` and the shards' epochs are the same in both.</summary>
/// <param name="Shards">The number of shards that answered.</param>
/// <param name="Forgotten">The number of times that a shard had too many addresses and began anew.</param>
/// <param name="Sources">Counts by address and by outcome: `admitted`, or the reason of the refusal.</param>
public sealed record SourcesAnswer(long Shards, long Forgotten, Dictionary<string, Dictionary<string, long>> Sources);

/// <summary>The configs of a client metrics resource (KIP-714) that change.</summary>
/// <param name="Configs">null: back to the default.</param>
public sealed record SubscriptionConfigs(string Name, Dictionary<string, string?> Configs);

/// <summary>The client instances that were active last. One that is connected to several shards has a row for each.</summary>
public sealed record TelemetryAnswer(List<ClientInstance> ClientInstances);

/// <summary>The last push of a client instance.</summary>
/// <param name="PushedAtMs">Unix milliseconds.</param>
/// <param name="Error">The reason why the push can't be read.</param>
public sealed record TelemetryPush(string ClientInstanceId, long PushedAtMs, List<MetricPoint> Metrics, string? Error);

/// <summary>The requests that a kind of quota has slowed down since the start.</summary>
/// <param name="ThrottleMs">The sum of their throttle times, in milliseconds.</param>
public sealed record Throttles(long Requests, long ThrottleMs);

/// <summary>The TLS state of a connection.</summary>
public sealed record TlsInfo(bool Enabled);

/// <summary>A pool of tokens, one for each connection: the state at its home, and the tokens of every shard.</summary>
/// <param name="Broker">null: of all brokers; its shards are then numbered over all of them, those of broker 0 first.</param>
/// <param name="Kind">broker, listener, ssl, ip, user or cluster; `observed/` before it: the cap is observed, not enforced.</param>
/// <param name="Key">The listener's name, the address or the user's name; `all`: of the broker with its inter-broker listener; else empty.</param>
/// <param name="Home">The home of the pool, the shard that decides; null: it did not answer.</param>
/// <param name="Cap">null: unlimited.</param>
/// <param name="Limit">The setting that gives the cap.</param>
/// <param name="Mode">open, reclaiming or tight.</param>
/// <param name="Waiting">Connections that wait for a token.</param>
public sealed record TokenPool(long? Broker, string Kind, string Key, long? Home, long? Cap, string Limit, string Mode, long? Free, long Waiting, long InUse, long Cached, List<HeldTokens> Holders);

/// <summary>Tokens of all pools.</summary>
public sealed record TokenTotals(long InUse, long Cached, long Pools);

/// <summary>The pools most in use.</summary>
/// <param name="Truncated">True: there are more pools.</param>
public sealed record TokensAnswer(List<TokenPool> Pools, bool Truncated, TokenTotals Totals);

/// <summary>A user that is added, gets another password, or is removed.</summary>
/// <param name="Password">null: the user is removed.</param>
public sealed record UserChange(string Name, string? Password = null);

/// <summary>The cap of a user's connections on one broker, and the rate of new ones if that is limited.</summary>
/// <param name="Pool">broker, listener:NAME, ssl, ip:ADDRESS, user:NAME or cluster.</param>
/// <param name="Limit">The setting; empty: unlimited.</param>
/// <param name="Value">null: unlimited.</param>
/// <param name="Waits">True: over the cap a connection waits instead of being refused.</param>
/// <param name="Observed">The cap that is observed beside it; null: none is.</param>
public sealed record UserConnections(string Pool, string Limit, long? Value, bool Waits, long? Home, long InUse, long Cached, List<HeldTokens> Holders, long Broker, ObservedUse? Observed, AddressRate? Rate);

/// <summary>A user that may log in on listeners with SASL.</summary>
/// <param name="Mechanisms">The SASL mechanisms that the user can log in with, besides PLAIN.</param>
public sealed record UserRow(string Name, List<string> Mechanisms);

/// <summary>Every user.</summary>
public sealed record UsersAnswer(List<UserRow> Users);

/// <summary>The use of a limit on one broker, or of one of the whole cluster.</summary>
/// <param name="Broker">null: the limit is one of the whole cluster.</param>
/// <param name="What">connections: open ones; new_connections: a second, over the quota window; or a client quota's key.</param>
/// <param name="Of">broker, broker:all, listener:NAME, ssl, ip:ADDRESS, user:NAME, cluster, or client.</param>
/// <param name="User">The user; empty: the quota does not tell users apart; null: the limit is not of a client.</param>
/// <param name="ClientId">The client id; empty: the quota does not tell client ids apart; null: the limit is not of a client.</param>
/// <param name="Used">Connections, or in the quota's unit: bytes a second, percent, mutations a second.</param>
/// <param name="Percent">null: the limit is 0, and something is used.</param>
/// <param name="Level">Below 80 % of the limit, from 80 %, from 90 %, from 100 % on.</param>
/// <param name="By">The setting or quota that gives the limit.</param>
public sealed record Utilisation(long? Broker, string What, string Of, string? User, string? ClientId, double Used, double Limit, double? Percent, string Level, string By);

/// <summary>The use of each limit, the closest to being reached first. Each figure is of the moment at which its shards answered this request. Where a shard is home to more than 2,000 pools or 500 metered clients, the choice of the closest, and `close`, may be ten seconds old.</summary>
/// <param name="At">Unix seconds.</param>
/// <param name="Limits">All limits of brokers and listeners, and the fullest of addresses and clients.</param>
public sealed record UtilisationAnswer(double At, List<Utilisation> Limits, List<CloseRow> Close);

/// <summary>The volume of the data directory. Sizes are -1 if the system does not tell them.</summary>
public sealed record VolumeAnswer(long TotalBytes, long FreeBytes, List<BrokerDisk> Brokers);

/// <summary>One address or client on one broker. It is watched from the first request on, until half an hour after the last one.</summary>
/// <param name="Began">The time from which it is watched, in Unix seconds.</param>
/// <param name="StepS">Seconds from one point to the next.</param>
/// <param name="Admitted">Admitted connections since the shards started, or last forgot the counts of too many addresses; null for a client.</param>
/// <param name="Refused">Refused connections, counted since the same time; null for a client.</param>
public sealed record WatchAnswer(long Broker, string? Ip, string? User, string? ClientId, double Began, double StepS, List<WatchPoint> Points, long? Admitted, Dictionary<string, long> Refused);

/// <summary>A point in time: the use at that time, and the events since the point before.</summary>
/// <param name="At">Unix seconds.</param>
/// <param name="Used">By limit: connections that are open, new_connections a second over the quota window, or the use of a quota by its key.</param>
/// <param name="Limits">The limits that hold, in the same units.</param>
/// <param name="ThrottleMs">The average throttle time within the quota window, by the quota's key.</param>
/// <param name="Admitted">Admitted connections a second, for an address.</param>
/// <param name="Refused">Refused connections a second by reason, for an address.</param>
public sealed record WatchPoint(double At, Dictionary<string, double> Used, Dictionary<string, double> Limits, Dictionary<string, double> ThrottleMs, double Admitted, Dictionary<string, double> Refused);
