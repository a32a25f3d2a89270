package turnstile;

import com.fasterxml.jackson.annotation.JsonInclude;
import com.fasterxml.jackson.annotation.JsonProperty;
import com.fasterxml.jackson.core.type.TypeReference;
import com.fasterxml.jackson.databind.DeserializationFeature;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.PropertyNamingStrategies;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.net.URI;
import java.net.URLEncoder;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.Map;

/**
 * Calls of the admin API of one cluster; they throw {@link Refused}, and UncheckedIOException where nothing answers. An argument
 * that is null is left out.
 *
 * <p>Generated from the API's OpenAPI document by {@code make clients}: changes belong there.
 */
public final class AdminApi {
    private static final ObjectMapper JSON = new ObjectMapper()
            .setPropertyNamingStrategy(PropertyNamingStrategies.SNAKE_CASE)
            .setDefaultPropertyInclusion(JsonInclude.Value.construct(JsonInclude.Include.NON_NULL, JsonInclude.Include.ALWAYS))
            .disable(DeserializationFeature.FAIL_ON_UNKNOWN_PROPERTIES);

    private final HttpClient http = HttpClient.newHttpClient();
    private final String url;
    private final String token;
    private final String who;

    /** {@code token} may be null; {@code who} is what the history of changes names the caller. */
    public AdminApi(String url, String token, String who) {
        this.url = url;
        this.token = token;
        this.who = who;
    }

    /** The API answered with an error. */
    public static final class Refused extends RuntimeException {
        public final int status;

        Refused(int status, String told) {
            super(status + ": " + told);
            this.status = status;
        }
    }

    private <T> T json(String method, String target, Object body, TypeReference<T> kind) {
        try {
            return JSON.readValue(text(method, target, body), kind);
        } catch (IOException fault) {
            throw new UncheckedIOException(fault);
        }
    }

    private String text(String method, String target, Object body) {
        try {
            HttpRequest.Builder request = HttpRequest.newBuilder(URI.create(url + target))
                    .header("content-type", "application/json")
                    .header("x-turnstile-who", who)
                    .method(method, body == null
                            ? HttpRequest.BodyPublishers.noBody()
                            : HttpRequest.BodyPublishers.ofString(JSON.writeValueAsString(body)));
            if (token != null) {
                request.header("authorization", "Bearer " + token);
            }
            HttpResponse<String> response = http.send(request.build(), HttpResponse.BodyHandlers.ofString());
            if (response.statusCode() >= 400) {
                throw new Refused(response.statusCode(), response.body());
            }
            return response.body();
        } catch (IOException fault) {
            throw new UncheckedIOException(fault);
        } catch (InterruptedException fault) {
            Thread.currentThread().interrupt();
            throw new IllegalStateException(fault);
        }
    }

    /** A path and its query: names and values by turns. */
    private static String target(String path, Object... query) {
        StringBuilder asked = new StringBuilder();
        for (int i = 0; i < query.length; i += 2) {
            if (query[i + 1] != null) {
                asked.append(asked.isEmpty() ? '?' : '&').append(query[i]).append('=').append(encoded(query[i + 1]));
            }
        }
        return path + asked;
    }

    private static String encoded(Object value) {
        return URLEncoder.encode(String.valueOf(value), StandardCharsets.UTF_8).replace("+", "%20");
    }

    /** The settings and their values: Redpanda's, Kafka's and Turnstile's own. */
    public Map<String, Object> getConfig(String key, Boolean includeDefaults, Long broker, Boolean observe) {
        return json("GET", target("/v1/cluster_config", "key", key, "include_defaults", includeDefaults, "broker", broker, "observe", observe), null, new TypeReference<>() {});
    }

    /** The settings and their values: Redpanda's, Kafka's and Turnstile's own. */
    public Map<String, Object> getConfig() {
        return getConfig(null, null, null, null);
    }

    /**
     * Changes settings. The answer comes when every shard enforces them, or counts by them if they are observed
     * limits.
     */
    public ChangedConfig putConfig(SettingsChange body, Boolean dryRun, Long broker, Boolean observe) {
        return json("PUT", target("/v1/cluster_config", "dry_run", dryRun, "broker", broker, "observe", observe), body, new TypeReference<>() {});
    }

    /**
     * Changes settings. The answer comes when every shard enforces them, or counts by them if they are observed
     * limits.
     */
    public ChangedConfig putConfig(SettingsChange body) {
        return putConfig(body, null, null, null);
    }

    /** Every setting: its type, range, default and description. */
    public SettingsSchema getConfigSchema() {
        return json("GET", "/v1/cluster_config/schema", null, new TypeReference<>() {});
    }

    /** The configuration version of each broker, in the format of rpk. */
    public List<BrokerConfigStatus> getConfigStatus() {
        return json("GET", "/v1/cluster_config/status", null, new TypeReference<>() {});
    }

    /** The settings that are set for single brokers. */
    public BrokerOverrides getBrokerOverrides(Boolean observe) {
        return json("GET", target("/v1/cluster_config/broker_overrides", "observe", observe), null, new TypeReference<>() {});
    }

    /** The settings that are set for single brokers. */
    public BrokerOverrides getBrokerOverrides() {
        return getBrokerOverrides(null);
    }

    /**
     * The history of the configuration: the changes of settings, quotas, topics and other records, with author and
     * time.
     */
    public SettingHistory getConfigHistory(Long limit, Long before) {
        return json("GET", target("/v1/config/history", "limit", limit, "before", before), null, new TypeReference<>() {});
    }

    /**
     * The history of the configuration: the changes of settings, quotas, topics and other records, with author and
     * time.
     */
    public SettingHistory getConfigHistory() {
        return getConfigHistory(null, null);
    }

    /** Warnings about the limits in force, such as a cap that refuses everything. */
    public NotesAnswer getNotes() {
        return json("GET", "/v1/notes", null, new TypeReference<>() {});
    }

    /** The advertised addresses. */
    public AdvertisedAnswer getAdvertised() {
        return json("GET", "/v1/advertise", null, new TypeReference<>() {});
    }

    /** Sets the advertised addresses of a listener. */
    public ChangedAdvertised putAdvertised(AddressesChange body) {
        return json("PUT", "/v1/advertise", body, new TypeReference<>() {});
    }

    /** Takes back the addresses that were set live: those of the start of the cluster are advertised again. */
    public ChangedAdvertised deleteAdvertised(String listener, Long broker) {
        return json("DELETE", target("/v1/advertise", "listener", listener, "broker", broker), null, new TypeReference<>() {});
    }

    /** Takes back the addresses that were set live: those of the start of the cluster are advertised again. */
    public ChangedAdvertised deleteAdvertised() {
        return deleteAdvertised(null, null);
    }

    /** All quotas. */
    public QuotasAnswer getQuotas(Boolean observe) {
        return json("GET", target("/v1/quotas", "observe", observe), null, new TypeReference<>() {});
    }

    /** All quotas. */
    public QuotasAnswer getQuotas() {
        return getQuotas(null);
    }

    /** Changes quotas. The answer comes when every shard enforces them, or counts by them if they are observed. */
    public ChangedConfig putQuotas(QuotasChange body, Boolean dryRun, Boolean observe) {
        return json("PUT", target("/v1/quotas", "dry_run", dryRun, "observe", observe), body, new TypeReference<>() {});
    }

    /** Changes quotas. The answer comes when every shard enforces them, or counts by them if they are observed. */
    public ChangedConfig putQuotas(QuotasChange body) {
        return putQuotas(body, null, null);
    }

    /** The observed client quotas, and the requests that they would have throttled. */
    public ObservedQuotasAnswer getObservedQuotas() {
        return json("GET", "/v1/quotas/observed", null, new TypeReference<>() {});
    }

    /** The quotas that hold for a client. */
    public ClientQuotas explainQuotas(String user, String clientId) {
        return json("GET", target("/v1/quotas/explain", "user", user, "client-id", clientId), null, new TypeReference<>() {});
    }

    /** The quotas that hold for a client. */
    public ClientQuotas explainQuotas() {
        return explainQuotas(null, null);
    }

    /** The limits that hold for an address, the quotas of a client, or both. */
    public Explanation explain(String ip, String user, String clientId) {
        return json("GET", target("/v1/explain", "ip", ip, "user", user, "client-id", clientId), null, new TypeReference<>() {});
    }

    /** The limits that hold for an address, the quotas of a client, or both. */
    public Explanation explain() {
        return explain(null, null, null);
    }

    /** The users that may log in on listeners with SASL. */
    public UsersAnswer getUsers() {
        return json("GET", "/v1/users", null, new TypeReference<>() {});
    }

    /** Adds a user, changes its password, or removes it. */
    public ChangedConfig putUser(UserChange body) {
        return json("PUT", "/v1/users", body, new TypeReference<>() {});
    }

    /** The faults, and how often each has fired. */
    public FaultsAnswer getFaults() {
        return json("GET", "/v1/faults", null, new TypeReference<>() {});
    }

    /** Adds and removes faults. The answer comes when they are in force on every shard. */
    public ChangedFaults putFaults(FaultsChange body) {
        return json("PUT", "/v1/faults", body, new TypeReference<>() {});
    }

    /** The clients that push telemetry (KIP-714). */
    public TelemetryAnswer getTelemetry() {
        return json("GET", "/v1/telemetry", null, new TypeReference<>() {});
    }

    /** Changes a client metrics resource: the metrics that clients push, and the interval. */
    public ChangedConfig putSubscription(SubscriptionConfigs body) {
        return json("PUT", "/v1/telemetry", body, new TypeReference<>() {});
    }

    /** The last push of a client instance. */
    public TelemetryPush getLastPush(String clientInstanceId) {
        return json("GET", "/v1/telemetry/" + encoded(clientInstanceId), null, new TypeReference<>() {});
    }

    /** The number of refused connections, by what `by` names. */
    public RefusalsAnswer getRefusals(String by, Boolean observed) {
        return json("GET", target("/v1/refusals", "by", by, "observed", observed), null, new TypeReference<>() {});
    }

    /** The number of refused connections, by what `by` names. */
    public RefusalsAnswer getRefusals() {
        return getRefusals(null, null);
    }

    /** The admitted and refused connections of each address. */
    public SourcesAnswer getSources() {
        return json("GET", "/v1/sources", null, new TypeReference<>() {});
    }

    /** The open connections by proxy, and by private endpoint of a cloud. */
    public ProxiesAnswer getProxies() {
        return json("GET", "/v1/proxies", null, new TypeReference<>() {});
    }

    /** The use of each limit: caps, creation rates and client quotas. The fullest come first. */
    public UtilisationAnswer getUtilisation(Long limit) {
        return json("GET", target("/v1/utilisation", "limit", limit), null, new TypeReference<>() {});
    }

    /** The use of each limit: caps, creation rates and client quotas. The fullest come first. */
    public UtilisationAnswer getUtilisation() {
        return getUtilisation(null);
    }

    /**
     * The use of limits, the refusals and the throttles of one address or client over time. The first request starts
     * it.
     */
    public WatchAnswer getWatch(String ip, String user, String clientId, Long broker, Long minutes, Double since) {
        return json("GET", target("/v1/watch", "ip", ip, "user", user, "client-id", clientId, "broker", broker, "minutes", minutes, "since", since), null, new TypeReference<>() {});
    }

    /**
     * The use of limits, the refusals and the throttles of one address or client over time. The first request starts
     * it.
     */
    public WatchAnswer getWatch() {
        return getWatch(null, null, null, null, null, null);
    }

    /** The caps that are used most, and the number of their tokens on each shard. */
    public TokensAnswer getTokens() {
        return json("GET", "/v1/tokens", null, new TypeReference<>() {});
    }

    /** The processes of the brokers. */
    public ShardsAnswer getShards() {
        return json("GET", "/v1/shards", null, new TypeReference<>() {});
    }

    /** Everything that the live page and `turnstile top` refresh. */
    public LiveAnswer getLive(Double since) {
        return json("GET", target("/v1/live", "since", since), null, new TypeReference<>() {});
    }

    /** Everything that the live page and `turnstile top` refresh. */
    public LiveAnswer getLive() {
        return getLive(null);
    }

    /** Connections, admissions, refusals and throttled requests of the last minutes. */
    public SeriesAnswer getSeries(Long minutes, Double since) {
        return json("GET", target("/v1/series", "minutes", minutes, "since", since), null, new TypeReference<>() {});
    }

    /** Connections, admissions, refusals and throttled requests of the last minutes. */
    public SeriesAnswer getSeries() {
        return getSeries(null, null);
    }

    /** The cluster: its processes, listeners, topics and disk. */
    public ClusterAnswer getCluster() {
        return json("GET", "/v1/cluster", null, new TypeReference<>() {});
    }

    /** Files that could not be read, and were set aside. */
    public DamagedAnswer getDamaged() {
        return json("GET", "/v1/damaged", null, new TypeReference<>() {});
    }

    /**
     * Resets settings, topics, groups, quotas and users to what they were when the cluster started. Closes every
     * connection.
     */
    public ChangedConfig reset() {
        return json("POST", "/v1/reset", null, new TypeReference<>() {});
    }

    /** Ends the whole cluster, after the answer is sent. */
    public EndingAnswer shutdown() {
        return json("POST", "/v1/shutdown", null, new TypeReference<>() {});
    }

    /**
     * Metrics for Prometheus, under three kinds of names: those of Redpanda's `/metrics` (without `_total`), Kafka's
     * as in the example rules of the JMX exporter, and `turnstile_*`.
     */
    public String getMetrics() {
        return text("GET", "/metrics", null);
    }

    /**
     * Metrics for Prometheus, under the names of Redpanda's `/public_metrics` (`redpanda_rpc_*`,
     * `redpanda_storage_disk_*`).
     */
    public String getPublicMetrics() {
        return text("GET", "/public_metrics", null);
    }

    /**
     * The health of the cluster: ok if every shard is up and the supervisor, which restarts shards, runs. Needs no
     * token.
     */
    public HealthAnswer getHealth() {
        return json("GET", "/healthz", null, new TypeReference<>() {});
    }

    /** The live page: connections, refusals, and the use of limits and quotas, which it can change. */
    public String getPage() {
        return text("GET", "/", null);
    }

    /** A file of the live page. */
    public String getPageFile(String name) {
        return text("GET", "/page/" + encoded(name), null);
    }

    /** The open connections that match a filter, in an order (Redpanda's ListKafkaConnections). */
    public ListedConnections listKafkaConnections(ListConnectionsBody body) {
        return json("POST", "/redpanda.core.admin.v2.ClusterService/ListKafkaConnections", body, new TypeReference<>() {});
    }

    /** The brokers, in the format of rpk. */
    public ListedBrokers listBrokers(ListBrokersBody body) {
        return json("POST", "/redpanda.core.admin.v2.BrokerService/ListBrokers", body, new TypeReference<>() {});
    }

    /** A broker and its release, in the format of rpk. */
    public OneBroker getBroker(GetBrokerBody body) {
        return json("POST", "/redpanda.core.admin.v2.BrokerService/GetBroker", body, new TypeReference<>() {});
    }

    /** This document. */
    public Map<String, Object> getOpenapi() {
        return json("GET", "/v1/openapi.json", null, new TypeReference<>() {});
    }

    /** The limits of one broker for an address. */
    public record AddressLimits(
            long broker,
            String ip,
            List<AddressPool> connections,
            List<AddressRate> rates) {}

    /** A limit on open connections that a connection of the address counts for. */
    public record AddressPool(
            /** broker, listener:NAME, ssl, ip:ADDRESS, user:NAME or cluster. */
            String pool,
            /** The setting; empty: unlimited. */
            String limit,
            /** null: unlimited. */
            Long value,
            /** True: over the cap a connection waits instead of being refused. */
            boolean waits,
            Long home,
            long inUse,
            long cached,
            List<HeldTokens> holders,
            /** The cap that is observed beside it; null: none is. */
            ObservedUse observed) {}

    /** A limit on new connections a second that holds for the address or user. */
    public record AddressRate(
            /** broker, ip, core, user, listener:NAME or cluster. */
            String of,
            /** The setting or quota. */
            String limit,
            /** Connections a second. */
            double value,
            /** Connections that pass at once after a pause. */
            double burst,
            /** Connections a second, over the quota window; null: not known. */
            Double used) {}

    /** The advertised addresses of a listener. */
    public record AddressesChange(
            /** May be left out where there is only one. */
            String listener,
            /** This broker alone; without it, `addresses` has one for each. */
            Long broker,
            /** host:port, or `auto`: the address that a client reached. */
            Object addresses) {}

    /** The advertised address of a listener of one broker, for the admin API. */
    public record AdvertisedAddress(
            long broker,
            String listener,
            /** host:port; `auto`: the address that the client reached. */
            String address,
            long port,
            /** live: set live; start: as the cluster was started; listener: where it listens. */
            String source,
            /** It follows from where the cluster listens, not from what was said. */
            boolean guess) {}

    /** Each listener of each broker. */
    public record AdvertisedAnswer(
            List<AdvertisedAddress> advertised) {}

    /** The proof of its identity that a client has given, if any. */
    public record AuthenticationInfo(
            String state,
            String userPrincipal) {}

    /** A broker, in the format of rpk. */
    public record BrokerConfigStatus(
            long nodeId,
            boolean restart,
            /** The version that every shard of the broker has acknowledged. */
            long configVersion,
            List<String> invalid,
            List<String> unknown) {}

    /** The space that a broker needs: while less is free it is `full`, and refuses Produce. */
    public record BrokerDisk(
            long broker,
            long leastFreeBytes,
            boolean full) {}

    /** The settings that are set for single brokers. */
    public record BrokerOverrides(
            /** Settings by broker id. */
            Map<String, Map<String, Object>> overrides) {}

    /** The present rates of a client on one broker. */
    public record BrokerQuotaRates(
            long broker,
            /** By the quota's key: bytes a second, percent of a thread, mutations or connections a second. */
            Map<String, Double> rates) {}

    /** The release of Redpanda whose calls a broker answers here. */
    public record BuildInfo(
            String version,
            String buildSha) {}

    /** The addresses after a change, which is in force on every shard. */
    public record ChangedAdvertised(
            /** The version of the configuration that is in force on every shard. */
            long configVersion,
            List<AdvertisedAddress> advertised) {}

    /** A change that is in force on every shard. */
    public record ChangedConfig(
            /** The version of the configuration that is in force on every shard. */
            long configVersion,
            /** Warnings about the new values, one sentence each. */
            List<String> notes) {}

    /** Faults after a change, which is in force on every shard. */
    public record ChangedFaults(
            /** The version of the configuration that is in force on every shard. */
            long configVersion,
            /** The names of the added faults, in their order. */
            List<String> names) {}

    /** A client that asked for subscriptions, or pushed, as one shard knows it. */
    public record ClientInstance(
            String clientInstanceId,
            String clientId,
            String clientSoftwareName,
            String clientSoftwareVersion,
            String clientSourceAddress,
            String clientSourcePort,
            boolean connected,
            /** Prefixes of the metrics that it was asked for; null: it has not asked. */
            List<String> metrics,
            Long pushIntervalMs,
            Long subscriptionId,
            long pushes,
            /** The number of refused pushes by error. */
            Map<String, Long> refused,
            /** The time of the last accepted push, in Unix milliseconds. */
            Long pushedAtMs,
            /** The size of the last push, as it was sent. */
            long bytes,
            long broker,
            long shard) {}

    /** The quotas that hold for a client by Kafka's precedence, and its present rates. */
    public record ClientQuotas(
            /**
             * The names user and client-id, and client-id-prefix for a quota of a prefix. `<default>` is the default;
             * null: not told apart.
             */
            Map<String, String> matched,
            /** By the quota's key: bytes a second, percent of a thread, mutations or connections a second. */
            Map<String, Double> quotas,
            /** By the quota's key: bytes a second, percent of a thread, mutations or connections a second. */
            Map<String, Double> rates,
            List<BrokerQuotaRates> brokers,
            /** The level that each quota comes from, by the quota's key. */
            Map<String, Map<String, String>> levels) {}

    /**
     * The number of limits of a kind that are close to being reached on one broker. One that is full is near and
     * high, too.
     */
    public record CloseRow(
            /** null: the limit is one of the whole cluster. */
            Long broker,
            /** connections, new_connections, or a client quota's key. */
            String what,
            /**
             * cluster: of all brokers together; broker: of the broker and its listeners; ip: of addresses; user: of
             * users' connections; client: of clients.
             */
            String of,
            /** From 80 % on. */
            long high,
            /** From 90 % on. */
            long near,
            /** From 100 % on. */
            long full,
            /** The number of limits of this kind that were in use. */
            long limits) {}

    /** The cluster: its processes, listeners, topics and disk. */
    public record ClusterAnswer(
            String clusterId,
            String dataDir,
            Long brokers,
            /** Of each broker. */
            Long shards,
            List<ListenerRow> listeners,
            /** The pid of the supervisor. */
            long pid,
            long coordinatorPid,
            /** The parts of the configuration that could not be read, a sentence each. */
            List<String> lost,
            /** Partitions by topic. */
            Map<String, Long> topics,
            VolumeAnswer disk,
            JournalAnswer journal) {}

    /** The failure of a call of the Connect protocol. */
    public record ConnectError(
            /** invalid_argument, not_found, unimplemented or unavailable. */
            String code,
            /** One sentence. */
            String message) {}

    /** The address and port that a connection comes from; those that a trusted proxy announced, if one did. */
    public record ConnectionSource(
            String ipAddress,
            long port) {}

    /** The files that were set aside. */
    public record DamagedAnswer(
            List<DamagedFile> damaged) {}

    /** A file that could not be read, and was set aside. */
    public record DamagedFile(
            /** The path below the data directory. */
            String path,
            long sizeBytes) {}

    /** The cluster is about to end. */
    public record EndingAnswer(
            boolean ending) {}

    /** An entity and its quotas. */
    public record EntityQuotas(
            /**
             * The entity of a quota: its name by type (user, client-id, client-id-prefix or ip). null: the default of
             * that type.
             */
            Map<String, String> entity,
            /** By the quota's key: bytes a second, percent of a thread, mutations or connections a second. */
            Map<String, Double> values) {}

    /**
     * The limits that hold for an address (`brokers`), for a client (`client`), or for both, whichever the request
     * names. If it names a user, also the limits of that user's connections (`user_connections`).
     */
    public record Explanation(
            List<AddressLimits> brokers,
            /**
             * Beside `brokers` or `user_connections`, if the whole cluster has a cap, or one is observed: its use,
             * without home and holders.
             */
            AddressPool cluster,
            /** Beside `brokers` or `user_connections`, if the whole cluster has a rate of new connections. */
            AddressRate clusterRate,
            /** The same, if one is observed that is not the one in force. */
            AddressRate observedClusterRate,
            ClientQuotas client,
            List<UserConnections> userConnections) {}

    /** A fault that is set. */
    public record FaultRow(
            /** * and ? stand for other characters. */
            String clientId,
            String ip,
            /** The client's IP:PORT. */
            String connection,
            /** The name of a Kafka error, for the kind error. */
            String error,
            /** For the kind delay. */
            Long delayMs,
            /** For the kind throttle. */
            Long throttleMs,
            /** For the kind disconnect: close by RST. */
            Boolean reset,
            /** For the kind throttle: the connection is muted, too. */
            Boolean mute,
            Boolean once,
            /** Fires at this call only, counted from 1. */
            Long onCall,
            /** The number of calls at which it fires, from the first on. */
            Long times,
            /** Fires if it last fired so many milliseconds ago or longer. */
            Long everyMs,
            /** The share of calls at which it fires, from 0 to 1. */
            Double probability,
            /** The seed that chooses these calls. */
            Long seed,
            String name,
            String kind,
            /** Names of Kafka's APIs; none: all. */
            List<String> api,
            /** The number of times it fired; a killed shard loses its part of the count. */
            long fired) {}

    /** Every fault that is set. */
    public record FaultsAnswer(
            List<FaultRow> faults) {}

    /** Faults to add and, by name, to remove: all of them or none. */
    public record FaultsChange(
            List<NewFault> add,
            List<String> remove) {}

    /** The broker that is asked for. */
    public record GetBrokerBody(
            Long nodeId) {}

    /** The health of the cluster: ok if every shard is up, and the supervisor runs. */
    public record HealthAnswer(
            String status,
            /** The shards that are not up, and the supervisor if it is stopped. */
            List<String> missing,
            /** The state of each of them. */
            Map<String, Object> states) {}

    /** The tokens of a pool on one shard. */
    public record HeldTokens(
            long shard,
            long inUse,
            long cached) {}

    /** Requests under way. Their APIs are not kept. */
    public record InFlightRequests(
            List<String> sampledInFlightRequests,
            /** True: a request is under way. */
            boolean hasMoreRequests) {}

    /** The events that the journal lacks. */
    public record JournalAnswer(
            /** The number of events since the start that were not written. */
            long eventsDropped,
            /** True: events are being lost now. */
            boolean isLosing) {}

    /** A setting that limits clients. */
    public record LimitRow(
            String name,
            /** The broker that it is set for; null: the whole cluster. */
            Long broker,
            Object value,
            /** The value as `turnstile config set` takes it. */
            String text,
            boolean set,
            /** The origin of the name: kafka, redpanda or turnstile. */
            String vocabulary,
            /** True if it can be observed instead of enforced. */
            boolean observable,
            String doc) {}

    /** The use of a limit on one broker, or of one of the whole cluster. */
    public record LimitUse(
            /** null: the limit is one of the whole cluster. */
            Long broker,
            /** Open ones, or new ones a second over the quota window. */
            String what,
            /** broker, broker:all, listener:NAME, ssl, ip:ADDRESS, user:NAME or cluster. */
            String of,
            double used,
            double limit,
            /** The setting or quota that gives the limit. */
            String by) {}

    /** Nothing is asked. */
    public record ListBrokersBody() {}

    /** The connections that are asked for, and their order. */
    public record ListConnectionsBody(
            /** The most connections to return; 0, or more than 1000: 1000. */
            Long pageSize,
            /** Conditions joined by AND, such as `client_id = "app" AND idle_duration > 30s`. */
            String filter,
            /** Fields, each with asc or desc, such as `idle_duration desc, source.port`. */
            String orderBy) {}

    /** Every broker. */
    public record ListedBrokers(
            List<RedpandaBroker> brokers) {}

    /** An open connection. The other members of Redpanda's KafkaConnection are not kept. */
    public record ListedConnection(
            long nodeId,
            long shardId,
            /** Incarnation of the shard, broker, shard, and the connection's number in the journal, as a UUID. */
            String uid,
            String state,
            String openTime,
            AuthenticationInfo authenticationInfo,
            String listenerName,
            TlsInfo tlsInfo,
            ConnectionSource source,
            /** The client id; empty: the client has not sent one yet. */
            String clientId,
            String clientSoftwareName,
            String clientSoftwareVersion,
            /** Since its last request was read; 0s while one is under way. */
            String idleDuration,
            InFlightRequests inFlightRequests,
            RequestStatistics totalRequestStatistics) {}

    /** The connections that match. */
    public record ListedConnections(
            List<ListedConnection> connections,
            /** The number of matches, a whole number; `connections` may have fewer. */
            String totalSize) {}

    /** A listener of one broker. */
    public record ListenerRow(
            long broker,
            String name,
            /** host:port that it is bound to. */
            String address,
            List<String> options) {}

    /**
     * Everything that a display refreshes. The rates of `shards` are over the last second that was sampled; new
     * connections in `uses`, and the values of quotas, are over the quota window.
     */
    public record LiveAnswer(
            /** Unix seconds. */
            double at,
            double uptimeS,
            double windowS,
            long version,
            long brokers,
            List<String> listeners,
            LiveTotals totals,
            JournalAnswer journal,
            List<LiveShard> shards,
            List<SeriesPoint> series,
            /** The fullest first. */
            List<LimitUse> uses,
            /** The numbers of limits that are close to being reached. */
            List<CloseRow> close,
            List<RefusedAddress> topRefused,
            RefusedAddresses refusedAddresses,
            /** Clients that are throttled by a quota, the longest throttle time first. */
            List<QuotaClient> throttled,
            /** Other clients with a quota that they use, the fullest first. */
            List<QuotaClient> withinQuota,
            List<LimitRow> limits,
            /** null: no limit and no quota is observed. */
            ObservedAnswer observed) {}

    /** The process of one shard, and its work. */
    public record LiveShard(
            long broker,
            long shard,
            long pid,
            /** The number of this incarnation of the process; it only rises. */
            long epoch,
            String state,
            long connections,
            long configVersion,
            /** The number of times that its event loop was held up. */
            long stalls,
            double longestCallbackMs,
            long restarts,
            /** The number of times that the system killed it for want of memory. */
            long memoryKills,
            /** Seconds until a shard that keeps ending is started again; null: it does not wait for that. */
            Double restartInS,
            double admittedPerS,
            double refusedPerS,
            long admitted,
            long refused,
            TokenTotals tokens,
            /**
             * Decisions about connections: home (at once, without a token of another shard), cached (at once, with
             * tokens that another shard had granted before), rpc (later: it waited for a home's answer).
             */
            Map<String, Long> decisions) {}

    /** Gauges, and counts since the cluster started. */
    public record LiveTotals(
            long connections,
            long admitted,
            long closed,
            long lost,
            /** Connections, by the reason of the refusal. */
            Map<String, Long> refused,
            /**
             * Decisions about connections: home (at once, without a token of another shard), cached (at once, with
             * tokens that another shard had granted before), rpc (later: it waited for a home's answer).
             */
            Map<String, Long> decisions,
            TokenTotals tokens,
            long waiting,
            long held,
            long muted,
            long borrows,
            long reclaims,
            long malformed,
            long requests,
            long bytesIn,
            long bytesOut,
            /** By the quota's kind. */
            Map<String, Throttles> throttled) {}

    /** A point of a metric; empty members are left out. */
    public record MetricPoint(
            String name,
            String type,
            String unit,
            String temporality,
            Map<String, Object> resource,
            Map<String, Object> attributes,
            /** Unix milliseconds. */
            Long atMs,
            Double value,
            Long count,
            Double sum,
            List<Long> bucketCounts,
            List<Double> explicitBounds,
            List<List<Object>> quantiles) {}

    /** A fault to add. */
    public record NewFault(
            /** * and ? stand for other characters. */
            String clientId,
            String ip,
            /** The client's IP:PORT. */
            String connection,
            /** The name of a Kafka error, for the kind error. */
            String error,
            /** For the kind delay. */
            Long delayMs,
            /** For the kind throttle. */
            Long throttleMs,
            /** For the kind disconnect: close by RST. */
            Boolean reset,
            /** For the kind throttle: the connection is muted, too. */
            Boolean mute,
            Boolean once,
            /** Fires at this call only, counted from 1. */
            Long onCall,
            /** The number of calls at which it fires, from the first on. */
            Long times,
            /** Fires if it last fired so many milliseconds ago or longer. */
            Long everyMs,
            /** The share of calls at which it fires, from 0 to 1. */
            Double probability,
            /** The seed that chooses these calls. */
            Long seed,
            /** Left out: the fault gets one, such as fault-1. */
            String name,
            String kind,
            /** Names of Kafka's APIs; none: all. */
            Object api) {}

    /** Warnings about the limits in force: those that admit no connection, and the bursts that rates let through. */
    public record NotesAnswer(
            List<String> notes) {}

    /**
     * The refusals and waits that observed caps and creation rates would have caused since one of these limits was
     * last changed; a shard that was started again has forgotten its part.
     */
    public record ObservedAnswer(
            long refused,
            long waited,
            long undecided,
            /** The number of addresses of these connections that were counted one by one. */
            long addresses,
            /** True: at least one shard's table of addresses was full, so there may be more. */
            boolean more,
            List<ObservedCapRow> caps,
            /** Values by name; null: no value. */
            Map<String, Object> set,
            /** The observed values that are set for single brokers, by broker id. */
            Map<String, Map<String, Object>> brokers,
            /** null: no client quota is observed. */
            ObservedQuotasAnswer quotas) {}

    /** A cap or a creation rate that is observed instead of enforced. */
    public record ObservedCapRow(
            /** The setting. */
            String limit,
            double value,
            /** Connections would have waited, for a slot or for a rate. */
            boolean waits,
            /** Connections that it would have refused, or made wait. */
            long count) {}

    /** A client that observed quotas would have throttled. */
    public record ObservedClientRow(
            String user,
            String clientId,
            long requests,
            /** `requests` may be too high by this. */
            long error,
            /** Requests, by the quota with the longest throttle time. */
            Map<String, Long> quotas) {}

    /** A client quota that is observed instead of enforced, at one value. */
    public record ObservedQuotaRow(
            /** The kind of quota. */
            String quota,
            double value,
            /** Requests that it would have throttled. */
            long requests,
            /** The sum of their throttle times. */
            long throttleMs,
            /** Mutations that it would have refused. */
            long refused) {}

    /**
     * Requests that the observed client quotas would have throttled since one of these quotas was last changed. A
     * shard that was started again counts anew.
     */
    public record ObservedQuotasAnswer(
            /** The observed quotas. */
            List<EntityQuotas> set,
            /** Requests that at least one of them would have throttled. */
            long requests,
            /** The sum of the throttle times; of each request the longest. */
            long throttleMs,
            /** True: there are more clients than `clients` has. */
            boolean more,
            List<ObservedQuotaRow> quotas,
            List<ObservedClientRow> clients) {}

    /** An observed cap, and its use. */
    public record ObservedUse(
            String limit,
            Long value,
            boolean waits,
            long inUse) {}

    /** A broker. */
    public record OneBroker(
            RedpandaBroker broker) {}

    /** The reason why a request was refused, or can't be answered now. */
    public record Problem(
            /** One sentence. */
            String message,
            /** The HTTP status. */
            long code) {}

    /** The proxies of the open connections; the proxy with the most comes first. */
    public record ProxiesAnswer(
            List<ProxyRow> proxies) {}

    /** A proxy that announced connections (PROXY protocol). */
    public record ProxyRow(
            /** The address of the proxy. */
            String proxy,
            /** The private endpoint of a cloud by which the connections came. */
            String endpoint,
            long open) {}

    /** The quotas of one entity that change. */
    public record QuotaChange(
            /**
             * The entity of a quota: its name by type (user, client-id, client-id-prefix or ip). null: the default of
             * that type.
             */
            Map<String, String> entity,
            /** By the quota's key: bytes a second, percent of a thread, mutations or connections a second. */
            Map<String, Double> set,
            /** Keys of quotas. */
            List<String> remove) {}

    /** A client with a quota, on one broker. */
    public record QuotaClient(
            long broker,
            /** Empty: the quota does not tell users apart. */
            String user,
            /** Empty: the quota does not tell client ids apart. */
            String clientId,
            /** The quota's key. */
            String quota,
            /** The average throttle time within the quota window, in milliseconds. */
            double throttleMs,
            /** Bytes a second, percent, or mutations a second. */
            double value,
            /** The quota, in the same unit; null: it is no longer set. */
            Double limit) {}

    /** Every entity that has a quota. */
    public record QuotasAnswer(
            List<EntityQuotas> quotas) {}

    /** Quotas that change: all of them or none. */
    public record QuotasChange(
            List<QuotaChange> alter) {}

    /** A version of the configuration, and what it changed: of a setting the values that were in force. */
    public record RecordedChange(
            long version,
            /** Unix seconds. */
            double at,
            /** The caller as it names itself, and the address it called from. */
            String who,
            /** Kind, such as setting or quota; key; old and new value, null: none. */
            List<List<Object>> changes) {}

    /** A broker. */
    public record RedpandaBroker(
            long nodeId,
            BuildInfo buildInfo) {}

    /**
     * Counts since the cluster started. By ip there are only the most refused addresses, counted since their shard
     * started. If `observed`, the counts by ip and by limit are those since an observed limit was last changed.
     */
    public record RefusalsAnswer(
            String by,
            long total,
            long admitted,
            List<RefusedRow> refusals,
            /** True: these are observed limits, which have refused nothing. */
            Boolean observed,
            ObservedAnswer summary) {}

    /** One of the addresses that were refused most. */
    public record RefusedAddress(
            String ip,
            long count,
            /** `count` may be too high by this. */
            long error,
            /** Connections, by the reason of the refusal. */
            Map<String, Long> reasons,
            /** The open connections of the address. */
            long open,
            List<LimitUse> uses) {}

    /** The number of addresses that were refused. */
    public record RefusedAddresses(
            /** The number of addresses that have a count of their own. */
            long known,
            /** Refusals of the addresses that `top_refused` leaves out. */
            long othersRefused,
            /** True: at least one shard's table of addresses was full, so there may be more. */
            boolean more) {}

    /**
     * The refusals of one address, listener, reason, shard or observed limit. Besides `count`, only the members that
     * belong to `by` are there.
     */
    public record RefusedRow(
            long count,
            String ip,
            /** By ip: `count` may be too high by this. */
            Long error,
            String listener,
            Long broker,
            Long shard,
            String reason,
            /** Connections, by the reason of the refusal. */
            Map<String, Long> reasons,
            String limit,
            /** The value of the limit. */
            Double value,
            /** True: at the limit, connections would have waited. */
            Boolean waits) {}

    /** The counts of a connection since it was opened. */
    public record RequestStatistics(
            /** A whole number. */
            String requestCount) {}

    /** The counts over time. */
    public record SeriesAnswer(
            /** Seconds from one point to the next; each is an average over the time since the last. */
            double stepS,
            List<SeriesPoint> series) {}

    /**
     * One step of time: gauges at its end, and rates a second within it. Reasons and quotas without a count are left
     * out.
     */
    public record SeriesPoint(
            /** Unix seconds. */
            double at,
            long connections,
            double admitted,
            double closed,
            Map<String, Double> refused,
            long inUse,
            long cached,
            Map<String, Double> decisions,
            double requests,
            Map<String, Double> throttled) {}

    /** The last changes, the latest first. */
    public record SettingHistory(
            List<RecordedChange> history) {}

    /** The entries of a setting that is a list. */
    public record SettingItems(
            String type) {}

    /** A setting, in the format of Redpanda's schema. */
    public record SettingProperty(
            /** integer, number, boolean, string or array. */
            String type,
            String description,
            /** False: the setting is stored and shown, but has no effect. */
            boolean emulated,
            boolean nullable,
            /** True: it can't be changed while the cluster runs. */
            boolean needsRestart,
            String visibility,
            boolean isSecret,
            /** The origin of the name: kafka, redpanda or turnstile. */
            String vocabulary,
            @JsonProperty("default") Object default_,
            SettingItems items,
            List<String> enumValues,
            Double minimum,
            Double maximum) {}

    /** Settings to set, and to take back: all of them or none. */
    public record SettingsChange(
            /** A value, or its text as `turnstile config set` takes it, by name. */
            Map<String, Object> upsert,
            List<String> remove) {}

    /** Every setting, by name. */
    public record SettingsSchema(
            Map<String, SettingProperty> properties) {}

    /** The process of one shard. */
    public record ShardRow(
            long broker,
            long shard,
            long pid,
            /** The number of this incarnation of the process; it only rises. */
            long epoch,
            String state,
            long connections,
            long configVersion,
            /** The number of times that its event loop was held up. */
            long stalls,
            double longestCallbackMs,
            long restarts,
            /** The number of times that the system killed it for want of memory. */
            long memoryKills,
            /** Seconds until a shard that keeps ending is started again; null: it does not wait for that. */
            Double restartInS) {}

    /** Every shard. */
    public record ShardsAnswer(
            List<ShardRow> shards) {}

    /**
     * The admitted and refused connections of each address, since its shard started. Two answers can be subtracted if
     * `shards`, `forgotten` and the shards' epochs are the same in both.
     */
    public record SourcesAnswer(
            /** The number of shards that answered. */
            long shards,
            /** The number of times that a shard had too many addresses and began anew. */
            long forgotten,
            /** Counts by address and by outcome: `admitted`, or the reason of the refusal. */
            Map<String, Map<String, Long>> sources) {}

    /** The configs of a client metrics resource (KIP-714) that change. */
    public record SubscriptionConfigs(
            String name,
            /** null: back to the default. */
            Map<String, String> configs) {}

    /** The client instances that were active last. One that is connected to several shards has a row for each. */
    public record TelemetryAnswer(
            List<ClientInstance> clientInstances) {}

    /** The last push of a client instance. */
    public record TelemetryPush(
            String clientInstanceId,
            /** Unix milliseconds. */
            long pushedAtMs,
            List<MetricPoint> metrics,
            /** The reason why the push can't be read. */
            String error) {}

    /** The requests that a kind of quota has slowed down since the start. */
    public record Throttles(
            long requests,
            /** The sum of their throttle times, in milliseconds. */
            long throttleMs) {}

    /** The TLS state of a connection. */
    public record TlsInfo(
            boolean enabled) {}

    /** A pool of tokens, one for each connection: the state at its home, and the tokens of every shard. */
    public record TokenPool(
            /** null: of all brokers; its shards are then numbered over all of them, those of broker 0 first. */
            Long broker,
            /** broker, listener, ssl, ip, user or cluster; `observed/` before it: the cap is observed, not enforced. */
            String kind,
            /**
             * The listener's name, the address or the user's name; `all`: of the broker with its inter-broker
             * listener; else empty.
             */
            String key,
            /** The home of the pool, the shard that decides; null: it did not answer. */
            Long home,
            /** null: unlimited. */
            Long cap,
            /** The setting that gives the cap. */
            String limit,
            /** open, reclaiming or tight. */
            String mode,
            Long free,
            /** Connections that wait for a token. */
            long waiting,
            long inUse,
            long cached,
            List<HeldTokens> holders) {}

    /** Tokens of all pools. */
    public record TokenTotals(
            long inUse,
            long cached,
            long pools) {}

    /** The pools most in use. */
    public record TokensAnswer(
            List<TokenPool> pools,
            /** True: there are more pools. */
            boolean truncated,
            TokenTotals totals) {}

    /** A user that is added, gets another password, or is removed. */
    public record UserChange(
            String name,
            /** null: the user is removed. */
            String password) {}

    /** The cap of a user's connections on one broker, and the rate of new ones if that is limited. */
    public record UserConnections(
            /** broker, listener:NAME, ssl, ip:ADDRESS, user:NAME or cluster. */
            String pool,
            /** The setting; empty: unlimited. */
            String limit,
            /** null: unlimited. */
            Long value,
            /** True: over the cap a connection waits instead of being refused. */
            boolean waits,
            Long home,
            long inUse,
            long cached,
            List<HeldTokens> holders,
            long broker,
            /** The cap that is observed beside it; null: none is. */
            ObservedUse observed,
            AddressRate rate) {}

    /** A user that may log in on listeners with SASL. */
    public record UserRow(
            String name,
            /** The SASL mechanisms that the user can log in with, besides PLAIN. */
            List<String> mechanisms) {}

    /** Every user. */
    public record UsersAnswer(
            List<UserRow> users) {}

    /** The use of a limit on one broker, or of one of the whole cluster. */
    public record Utilisation(
            /** null: the limit is one of the whole cluster. */
            Long broker,
            /** connections: open ones; new_connections: a second, over the quota window; or a client quota's key. */
            String what,
            /** broker, broker:all, listener:NAME, ssl, ip:ADDRESS, user:NAME, cluster, or client. */
            String of,
            /** The user; empty: the quota does not tell users apart; null: the limit is not of a client. */
            String user,
            /** The client id; empty: the quota does not tell client ids apart; null: the limit is not of a client. */
            String clientId,
            /** Connections, or in the quota's unit: bytes a second, percent, mutations a second. */
            double used,
            double limit,
            /** null: the limit is 0, and something is used. */
            Double percent,
            /** Below 80 % of the limit, from 80 %, from 90 %, from 100 % on. */
            String level,
            /** The setting or quota that gives the limit. */
            String by) {}

    /**
     * The use of each limit, the closest to being reached first. Each figure is of the moment at which its shards
     * answered this request. Where a shard is home to more than 2,000 pools or 500 metered clients, the choice of the
     * closest, and `close`, may be ten seconds old.
     */
    public record UtilisationAnswer(
            /** Unix seconds. */
            double at,
            /** All limits of brokers and listeners, and the fullest of addresses and clients. */
            List<Utilisation> limits,
            List<CloseRow> close) {}

    /** The volume of the data directory. Sizes are -1 if the system does not tell them. */
    public record VolumeAnswer(
            long totalBytes,
            long freeBytes,
            List<BrokerDisk> brokers) {}

    /**
     * One address or client on one broker. It is watched from the first request on, until half an hour after the last
     * one.
     */
    public record WatchAnswer(
            long broker,
            String ip,
            String user,
            String clientId,
            /** The time from which it is watched, in Unix seconds. */
            double began,
            /** Seconds from one point to the next. */
            double stepS,
            List<WatchPoint> points,
            /**
             * Admitted connections since the shards started, or last forgot the counts of too many addresses; null
             * for a client.
             */
            Long admitted,
            /** Refused connections, counted since the same time; null for a client. */
            Map<String, Long> refused) {}

    /** A point in time: the use at that time, and the events since the point before. */
    public record WatchPoint(
            /** Unix seconds. */
            double at,
            /**
             * By limit: connections that are open, new_connections a second over the quota window, or the use of a
             * quota by its key.
             */
            Map<String, Double> used,
            /** The limits that hold, in the same units. */
            Map<String, Double> limits,
            /** The average throttle time within the quota window, by the quota's key. */
            Map<String, Double> throttleMs,
            /** Admitted connections a second, for an address. */
            double admitted,
            /** Refused connections a second by reason, for an address. */
            Map<String, Double> refused) {}
}
