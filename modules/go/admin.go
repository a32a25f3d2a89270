// Code generated from the admin API's OpenAPI document by `make clients`. DO NOT EDIT.

package turnstile

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
)

// AdminAPI calls the admin API of one cluster. Who is what the history of changes names the caller.
type AdminAPI struct {
	URL, Token, Who string
}

// AdminRefused says that the API answered with an error: its Status is HTTP's, and Told its body.
type AdminRefused struct {
	Status int
	Told   string
}

func (r *AdminRefused) Error() string { return fmt.Sprintf("%d: %s", r.Status, r.Told) }

// text has the body of an answer. A nil body is not sent.
func (a *AdminAPI) text(ctx context.Context, method, path string, query url.Values, body any) ([]byte, error) {
	var content io.Reader
	if body != nil {
		encoded, err := json.Marshal(body)
		if err != nil {
			return nil, err
		}
		content = bytes.NewReader(encoded)
	}
	if len(query) > 0 {
		path += "?" + query.Encode()
	}
	request, err := http.NewRequestWithContext(ctx, method, a.URL+path, content)
	if err != nil {
		return nil, err
	}
	request.Header.Set("content-type", "application/json")
	request.Header.Set("x-turnstile-who", a.Who)
	if a.Token != "" {
		request.Header.Set("authorization", "Bearer "+a.Token)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	told, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode >= 400 {
		err = &AdminRefused{response.StatusCode, string(told)}
	}
	return told, err
}

func ask[T any](ctx context.Context, a *AdminAPI, method, path string, query url.Values, body any) (answer T, err error) {
	told, err := a.text(ctx, method, path, query, body)
	if err == nil {
		err = json.Unmarshal(told, &answer)
	}
	return answer, err
}

func put[T any](query url.Values, name string, value *T) {
	if value != nil {
		query.Set(name, fmt.Sprint(*value))
	}
}

// GetConfigQuery is the query of GetConfig; what is nil is left out.
type GetConfigQuery struct {
	// Only this setting.
	Key *string
	// Also the settings with their default values.
	IncludeDefaults *bool
	// The id of one broker; without it, the whole cluster.
	Broker *int64
	// Observed limits on connections instead of enforced ones.
	Observe *bool
}

func (q GetConfigQuery) values() url.Values {
	query := url.Values{}
	put(query, "key", q.Key)
	put(query, "include_defaults", q.IncludeDefaults)
	put(query, "broker", q.Broker)
	put(query, "observe", q.Observe)
	return query
}

// GetConfig: The settings and their values: Redpanda's, Kafka's and Turnstile's own.
func (a *AdminAPI) GetConfig(ctx context.Context, query GetConfigQuery) (map[string]any, error) {
	return ask[map[string]any](ctx, a, "GET", "/v1/cluster_config", query.values(), nil)
}

// PutConfigQuery is the query of PutConfig; what is nil is left out.
type PutConfigQuery struct {
	// Only check the change.
	DryRun *bool
	// The id of one broker; without it, the whole cluster.
	Broker *int64
	// Observed limits on connections instead of enforced ones.
	Observe *bool
}

func (q PutConfigQuery) values() url.Values {
	query := url.Values{}
	put(query, "dry_run", q.DryRun)
	put(query, "broker", q.Broker)
	put(query, "observe", q.Observe)
	return query
}

// PutConfig: Changes settings. The answer comes when every shard enforces them, or counts by them if they are
// observed limits.
func (a *AdminAPI) PutConfig(ctx context.Context, body SettingsChange, query PutConfigQuery) (ChangedConfig, error) {
	return ask[ChangedConfig](ctx, a, "PUT", "/v1/cluster_config", query.values(), body)
}

// GetConfigSchema: Every setting: its type, range, default and description.
func (a *AdminAPI) GetConfigSchema(ctx context.Context) (SettingsSchema, error) {
	return ask[SettingsSchema](ctx, a, "GET", "/v1/cluster_config/schema", nil, nil)
}

// GetConfigStatus: The configuration version of each broker, in the format of rpk.
func (a *AdminAPI) GetConfigStatus(ctx context.Context) ([]BrokerConfigStatus, error) {
	return ask[[]BrokerConfigStatus](ctx, a, "GET", "/v1/cluster_config/status", nil, nil)
}

// GetBrokerOverridesQuery is the query of GetBrokerOverrides; what is nil is left out.
type GetBrokerOverridesQuery struct {
	// Observed limits on connections instead of enforced ones.
	Observe *bool
}

func (q GetBrokerOverridesQuery) values() url.Values {
	query := url.Values{}
	put(query, "observe", q.Observe)
	return query
}

// GetBrokerOverrides: The settings that are set for single brokers.
func (a *AdminAPI) GetBrokerOverrides(ctx context.Context, query GetBrokerOverridesQuery) (BrokerOverrides, error) {
	return ask[BrokerOverrides](ctx, a, "GET", "/v1/cluster_config/broker_overrides", query.values(), nil)
}

// GetConfigHistoryQuery is the query of GetConfigHistory; what is nil is left out.
type GetConfigHistoryQuery struct {
	// The most changes to return.
	Limit *int64
	// Only changes before this version.
	Before *int64
}

func (q GetConfigHistoryQuery) values() url.Values {
	query := url.Values{}
	put(query, "limit", q.Limit)
	put(query, "before", q.Before)
	return query
}

// GetConfigHistory: The history of the configuration: the changes of settings, quotas, topics and other records, with
// author and time.
func (a *AdminAPI) GetConfigHistory(ctx context.Context, query GetConfigHistoryQuery) (SettingHistory, error) {
	return ask[SettingHistory](ctx, a, "GET", "/v1/config/history", query.values(), nil)
}

// GetNotes: Warnings about the limits in force, such as a cap that refuses everything.
func (a *AdminAPI) GetNotes(ctx context.Context) (NotesAnswer, error) {
	return ask[NotesAnswer](ctx, a, "GET", "/v1/notes", nil, nil)
}

// GetAdvertised: The advertised addresses.
func (a *AdminAPI) GetAdvertised(ctx context.Context) (AdvertisedAnswer, error) {
	return ask[AdvertisedAnswer](ctx, a, "GET", "/v1/advertise", nil, nil)
}

// PutAdvertised: Sets the advertised addresses of a listener.
func (a *AdminAPI) PutAdvertised(ctx context.Context, body AddressesChange) (ChangedAdvertised, error) {
	return ask[ChangedAdvertised](ctx, a, "PUT", "/v1/advertise", nil, body)
}

// DeleteAdvertisedQuery is the query of DeleteAdvertised; what is nil is left out.
type DeleteAdvertisedQuery struct {
	// The name of a listener; without it, all listeners.
	Listener *string
	// The id of one broker; without it, the whole cluster.
	Broker *int64
}

func (q DeleteAdvertisedQuery) values() url.Values {
	query := url.Values{}
	put(query, "listener", q.Listener)
	put(query, "broker", q.Broker)
	return query
}

// DeleteAdvertised: Takes back the addresses that were set live: those of the start of the cluster are advertised
// again.
func (a *AdminAPI) DeleteAdvertised(ctx context.Context, query DeleteAdvertisedQuery) (ChangedAdvertised, error) {
	return ask[ChangedAdvertised](ctx, a, "DELETE", "/v1/advertise", query.values(), nil)
}

// GetQuotasQuery is the query of GetQuotas; what is nil is left out.
type GetQuotasQuery struct {
	// Observed client quotas instead of enforced ones.
	Observe *bool
}

func (q GetQuotasQuery) values() url.Values {
	query := url.Values{}
	put(query, "observe", q.Observe)
	return query
}

// GetQuotas: All quotas.
func (a *AdminAPI) GetQuotas(ctx context.Context, query GetQuotasQuery) (QuotasAnswer, error) {
	return ask[QuotasAnswer](ctx, a, "GET", "/v1/quotas", query.values(), nil)
}

// PutQuotasQuery is the query of PutQuotas; what is nil is left out.
type PutQuotasQuery struct {
	// Only check the change.
	DryRun *bool
	// Observed client quotas instead of enforced ones.
	Observe *bool
}

func (q PutQuotasQuery) values() url.Values {
	query := url.Values{}
	put(query, "dry_run", q.DryRun)
	put(query, "observe", q.Observe)
	return query
}

// PutQuotas: Changes quotas. The answer comes when every shard enforces them, or counts by them if they are observed.
func (a *AdminAPI) PutQuotas(ctx context.Context, body QuotasChange, query PutQuotasQuery) (ChangedConfig, error) {
	return ask[ChangedConfig](ctx, a, "PUT", "/v1/quotas", query.values(), body)
}

// GetObservedQuotas: The observed client quotas, and the requests that they would have throttled.
func (a *AdminAPI) GetObservedQuotas(ctx context.Context) (ObservedQuotasAnswer, error) {
	return ask[ObservedQuotasAnswer](ctx, a, "GET", "/v1/quotas/observed", nil, nil)
}

// ExplainQuotasQuery is the query of ExplainQuotas; what is nil is left out.
type ExplainQuotasQuery struct {
	// The name of a user.
	User *string
	// A client id.
	ClientID *string
}

func (q ExplainQuotasQuery) values() url.Values {
	query := url.Values{}
	put(query, "user", q.User)
	put(query, "client-id", q.ClientID)
	return query
}

// ExplainQuotas: The quotas that hold for a client.
func (a *AdminAPI) ExplainQuotas(ctx context.Context, query ExplainQuotasQuery) (ClientQuotas, error) {
	return ask[ClientQuotas](ctx, a, "GET", "/v1/quotas/explain", query.values(), nil)
}

// ExplainQuery is the query of Explain; what is nil is left out.
type ExplainQuery struct {
	// An IP address.
	IP *string
	// The name of a user.
	User *string
	// A client id.
	ClientID *string
}

func (q ExplainQuery) values() url.Values {
	query := url.Values{}
	put(query, "ip", q.IP)
	put(query, "user", q.User)
	put(query, "client-id", q.ClientID)
	return query
}

// Explain: The limits that hold for an address, the quotas of a client, or both.
func (a *AdminAPI) Explain(ctx context.Context, query ExplainQuery) (Explanation, error) {
	return ask[Explanation](ctx, a, "GET", "/v1/explain", query.values(), nil)
}

// GetUsers: The users that may log in on listeners with SASL.
func (a *AdminAPI) GetUsers(ctx context.Context) (UsersAnswer, error) {
	return ask[UsersAnswer](ctx, a, "GET", "/v1/users", nil, nil)
}

// PutUser: Adds a user, changes its password, or removes it.
func (a *AdminAPI) PutUser(ctx context.Context, body UserChange) (ChangedConfig, error) {
	return ask[ChangedConfig](ctx, a, "PUT", "/v1/users", nil, body)
}

// GetFaults: The faults, and how often each has fired.
func (a *AdminAPI) GetFaults(ctx context.Context) (FaultsAnswer, error) {
	return ask[FaultsAnswer](ctx, a, "GET", "/v1/faults", nil, nil)
}

// PutFaults: Adds and removes faults. The answer comes when they are in force on every shard.
func (a *AdminAPI) PutFaults(ctx context.Context, body FaultsChange) (ChangedFaults, error) {
	return ask[ChangedFaults](ctx, a, "PUT", "/v1/faults", nil, body)
}

// GetTelemetry: The clients that push telemetry (KIP-714).
func (a *AdminAPI) GetTelemetry(ctx context.Context) (TelemetryAnswer, error) {
	return ask[TelemetryAnswer](ctx, a, "GET", "/v1/telemetry", nil, nil)
}

// PutSubscription: Changes a client metrics resource: the metrics that clients push, and the interval.
func (a *AdminAPI) PutSubscription(ctx context.Context, body SubscriptionConfigs) (ChangedConfig, error) {
	return ask[ChangedConfig](ctx, a, "PUT", "/v1/telemetry", nil, body)
}

// GetLastPush: The last push of a client instance.
func (a *AdminAPI) GetLastPush(ctx context.Context, clientInstanceId string) (TelemetryPush, error) {
	return ask[TelemetryPush](ctx, a, "GET", "/v1/telemetry/"+url.PathEscape(clientInstanceId), nil, nil)
}

// GetRefusalsQuery is the query of GetRefusals; what is nil is left out.
type GetRefusalsQuery struct {
	// The field by which connections are counted; `limit` only with `observed`.
	By *string
	// Count what observed limits would have refused, not what was refused.
	Observed *bool
}

func (q GetRefusalsQuery) values() url.Values {
	query := url.Values{}
	put(query, "by", q.By)
	put(query, "observed", q.Observed)
	return query
}

// GetRefusals: The number of refused connections, by what `by` names.
func (a *AdminAPI) GetRefusals(ctx context.Context, query GetRefusalsQuery) (RefusalsAnswer, error) {
	return ask[RefusalsAnswer](ctx, a, "GET", "/v1/refusals", query.values(), nil)
}

// GetSources: The admitted and refused connections of each address.
func (a *AdminAPI) GetSources(ctx context.Context) (SourcesAnswer, error) {
	return ask[SourcesAnswer](ctx, a, "GET", "/v1/sources", nil, nil)
}

// GetProxies: The open connections by proxy, and by private endpoint of a cloud.
func (a *AdminAPI) GetProxies(ctx context.Context) (ProxiesAnswer, error) {
	return ask[ProxiesAnswer](ctx, a, "GET", "/v1/proxies", nil, nil)
}

// GetUtilisationQuery is the query of GetUtilisation; what is nil is left out.
type GetUtilisationQuery struct {
	// The most limits of addresses and clients to return.
	Limit *int64
}

func (q GetUtilisationQuery) values() url.Values {
	query := url.Values{}
	put(query, "limit", q.Limit)
	return query
}

// GetUtilisation: The use of each limit: caps, creation rates and client quotas. The fullest come first.
func (a *AdminAPI) GetUtilisation(ctx context.Context, query GetUtilisationQuery) (UtilisationAnswer, error) {
	return ask[UtilisationAnswer](ctx, a, "GET", "/v1/utilisation", query.values(), nil)
}

// GetWatchQuery is the query of GetWatch; what is nil is left out.
type GetWatchQuery struct {
	// An IP address.
	IP *string
	// The name of a user.
	User *string
	// A client id.
	ClientID *string
	// The id of a broker.
	Broker *int64
	// The length of `series` in minutes; beyond 5, in steps of 6 s.
	Minutes *int64
	// Points of `series` after this time, in Unix seconds.
	Since *float64
}

func (q GetWatchQuery) values() url.Values {
	query := url.Values{}
	put(query, "ip", q.IP)
	put(query, "user", q.User)
	put(query, "client-id", q.ClientID)
	put(query, "broker", q.Broker)
	put(query, "minutes", q.Minutes)
	put(query, "since", q.Since)
	return query
}

// GetWatch: The use of limits, the refusals and the throttles of one address or client over time. The first request
// starts it.
func (a *AdminAPI) GetWatch(ctx context.Context, query GetWatchQuery) (WatchAnswer, error) {
	return ask[WatchAnswer](ctx, a, "GET", "/v1/watch", query.values(), nil)
}

// GetTokens: The caps that are used most, and the number of their tokens on each shard.
func (a *AdminAPI) GetTokens(ctx context.Context) (TokensAnswer, error) {
	return ask[TokensAnswer](ctx, a, "GET", "/v1/tokens", nil, nil)
}

// GetShards: The processes of the brokers.
func (a *AdminAPI) GetShards(ctx context.Context) (ShardsAnswer, error) {
	return ask[ShardsAnswer](ctx, a, "GET", "/v1/shards", nil, nil)
}

// GetLiveQuery is the query of GetLive; what is nil is left out.
type GetLiveQuery struct {
	// Points of `series` after this time, in Unix seconds.
	Since *float64
}

func (q GetLiveQuery) values() url.Values {
	query := url.Values{}
	put(query, "since", q.Since)
	return query
}

// GetLive: Everything that the live page and `turnstile top` refresh.
func (a *AdminAPI) GetLive(ctx context.Context, query GetLiveQuery) (LiveAnswer, error) {
	return ask[LiveAnswer](ctx, a, "GET", "/v1/live", query.values(), nil)
}

// GetSeriesQuery is the query of GetSeries; what is nil is left out.
type GetSeriesQuery struct {
	// The length of `series` in minutes; beyond 5, in steps of 6 s.
	Minutes *int64
	// Points of `series` after this time, in Unix seconds.
	Since *float64
}

func (q GetSeriesQuery) values() url.Values {
	query := url.Values{}
	put(query, "minutes", q.Minutes)
	put(query, "since", q.Since)
	return query
}

// GetSeries: Connections, admissions, refusals and throttled requests of the last minutes.
func (a *AdminAPI) GetSeries(ctx context.Context, query GetSeriesQuery) (SeriesAnswer, error) {
	return ask[SeriesAnswer](ctx, a, "GET", "/v1/series", query.values(), nil)
}

// GetCluster: The cluster: its processes, listeners, topics and disk.
func (a *AdminAPI) GetCluster(ctx context.Context) (ClusterAnswer, error) {
	return ask[ClusterAnswer](ctx, a, "GET", "/v1/cluster", nil, nil)
}

// GetDamaged: Files that could not be read, and were set aside.
func (a *AdminAPI) GetDamaged(ctx context.Context) (DamagedAnswer, error) {
	return ask[DamagedAnswer](ctx, a, "GET", "/v1/damaged", nil, nil)
}

// Reset: Resets settings, topics, groups, quotas and users to what they were when the cluster started. Closes every
// connection.
func (a *AdminAPI) Reset(ctx context.Context) (ChangedConfig, error) {
	return ask[ChangedConfig](ctx, a, "POST", "/v1/reset", nil, nil)
}

// Shutdown: Ends the whole cluster, after the answer is sent.
func (a *AdminAPI) Shutdown(ctx context.Context) (EndingAnswer, error) {
	return ask[EndingAnswer](ctx, a, "POST", "/v1/shutdown", nil, nil)
}

// GetMetrics: Metrics for Prometheus, under three kinds of names: those of Redpanda's `/metrics` (without `_total`),
// Kafka's as in the example rules of the JMX exporter, and `turnstile_*`.
func (a *AdminAPI) GetMetrics(ctx context.Context) ([]byte, error) {
	return a.text(ctx, "GET", "/metrics", nil, nil)
}

// GetPublicMetrics: Metrics for Prometheus, under the names of Redpanda's `/public_metrics` (`redpanda_rpc_*`,
// `redpanda_storage_disk_*`).
func (a *AdminAPI) GetPublicMetrics(ctx context.Context) ([]byte, error) {
	return a.text(ctx, "GET", "/public_metrics", nil, nil)
}

// GetHealth: The health of the cluster: ok if every shard is up and the supervisor, which restarts shards, runs.
// Needs no token.
func (a *AdminAPI) GetHealth(ctx context.Context) (HealthAnswer, error) {
	return ask[HealthAnswer](ctx, a, "GET", "/healthz", nil, nil)
}

// GetPage: The live page: connections, refusals, and the use of limits and quotas, which it can change.
func (a *AdminAPI) GetPage(ctx context.Context) ([]byte, error) {
	return a.text(ctx, "GET", "/", nil, nil)
}

// GetPageFile: A file of the live page.
func (a *AdminAPI) GetPageFile(ctx context.Context, name string) ([]byte, error) {
	return a.text(ctx, "GET", "/page/"+url.PathEscape(name), nil, nil)
}

// ListKafkaConnections: The open connections that match a filter, in an order (Redpanda's ListKafkaConnections).
func (a *AdminAPI) ListKafkaConnections(ctx context.Context, body ListConnectionsBody) (ListedConnections, error) {
	return ask[ListedConnections](ctx, a, "POST", "/redpanda.core.admin.v2.ClusterService/ListKafkaConnections", nil, body)
}

// ListBrokers: The brokers, in the format of rpk.
func (a *AdminAPI) ListBrokers(ctx context.Context, body ListBrokersBody) (ListedBrokers, error) {
	return ask[ListedBrokers](ctx, a, "POST", "/redpanda.core.admin.v2.BrokerService/ListBrokers", nil, body)
}

// GetBroker: A broker and its release, in the format of rpk.
func (a *AdminAPI) GetBroker(ctx context.Context, body GetBrokerBody) (OneBroker, error) {
	return ask[OneBroker](ctx, a, "POST", "/redpanda.core.admin.v2.BrokerService/GetBroker", nil, body)
}

// GetOpenapi: This document.
func (a *AdminAPI) GetOpenapi(ctx context.Context) (map[string]any, error) {
	return ask[map[string]any](ctx, a, "GET", "/v1/openapi.json", nil, nil)
}

// AddressLimits: The limits of one broker for an address.
type AddressLimits struct {
	Broker      int64         `json:"broker"`
	IP          string        `json:"ip"`
	Connections []AddressPool `json:"connections"`
	Rates       []AddressRate `json:"rates"`
}

// AddressPool: A limit on open connections that a connection of the address counts for.
type AddressPool struct {
	// broker, listener:NAME, ssl, ip:ADDRESS, user:NAME or cluster.
	Pool string `json:"pool"`
	// The setting; empty: unlimited.
	Limit string `json:"limit"`
	// null: unlimited.
	Value *int64 `json:"value"`
	// True: over the cap a connection waits instead of being refused.
	Waits   bool         `json:"waits"`
	Home    *int64       `json:"home"`
	InUse   int64        `json:"in_use"`
	Cached  int64        `json:"cached"`
	Holders []HeldTokens `json:"holders"`
	// The cap that is observed beside it; null: none is.
	Observed *ObservedUse `json:"observed"`
}

// AddressRate: A limit on new connections a second that holds for the address or user.
type AddressRate struct {
	// broker, ip, core, user, listener:NAME or cluster.
	Of string `json:"of"`
	// The setting or quota.
	Limit string `json:"limit"`
	// Connections a second.
	Value float64 `json:"value"`
	// Connections that pass at once after a pause.
	Burst float64 `json:"burst"`
	// Connections a second, over the quota window; null: not known.
	Used *float64 `json:"used"`
}

// AddressesChange: The advertised addresses of a listener.
type AddressesChange struct {
	// May be left out where there is only one.
	Listener *string `json:"listener,omitempty"`
	// This broker alone; without it, `addresses` has one for each.
	Broker *int64 `json:"broker,omitempty"`
	// host:port, or `auto`: the address that a client reached.
	Addresses any `json:"addresses"`
}

// AdvertisedAddress: The advertised address of a listener of one broker, for the admin API.
type AdvertisedAddress struct {
	Broker   int64  `json:"broker"`
	Listener string `json:"listener"`
	// host:port; `auto`: the address that the client reached.
	Address string `json:"address"`
	Port    int64  `json:"port"`
	// live: set live; start: as the cluster was started; listener: where it listens.
	Source string `json:"source"`
	// It follows from where the cluster listens, not from what was said.
	Guess bool `json:"guess"`
}

// AdvertisedAnswer: Each listener of each broker.
type AdvertisedAnswer struct {
	Advertised []AdvertisedAddress `json:"advertised"`
}

// AuthenticationInfo: The proof of its identity that a client has given, if any.
type AuthenticationInfo struct {
	State         string `json:"state"`
	UserPrincipal string `json:"userPrincipal"`
}

// BrokerConfigStatus: A broker, in the format of rpk.
type BrokerConfigStatus struct {
	NodeID  int64 `json:"node_id"`
	Restart bool  `json:"restart"`
	// The version that every shard of the broker has acknowledged.
	ConfigVersion int64    `json:"config_version"`
	Invalid       []string `json:"invalid"`
	Unknown       []string `json:"unknown"`
}

// BrokerDisk: The space that a broker needs: while less is free it is `full`, and refuses Produce.
type BrokerDisk struct {
	Broker         int64 `json:"broker"`
	LeastFreeBytes int64 `json:"least_free_bytes"`
	Full           bool  `json:"full"`
}

// BrokerOverrides: The settings that are set for single brokers.
type BrokerOverrides struct {
	// Settings by broker id.
	Overrides map[string]map[string]any `json:"overrides"`
}

// BrokerQuotaRates: The present rates of a client on one broker.
type BrokerQuotaRates struct {
	Broker int64 `json:"broker"`
	// By the quota's key: bytes a second, percent of a thread, mutations or connections a second.
	Rates map[string]float64 `json:"rates"`
}

// BuildInfo: The release of Redpanda whose calls a broker answers here.
type BuildInfo struct {
	Version  string `json:"version"`
	BuildSha string `json:"buildSha"`
}

// ChangedAdvertised: The addresses after a change, which is in force on every shard.
type ChangedAdvertised struct {
	// The version of the configuration that is in force on every shard.
	ConfigVersion int64               `json:"config_version"`
	Advertised    []AdvertisedAddress `json:"advertised"`
}

// ChangedConfig: A change that is in force on every shard.
type ChangedConfig struct {
	// The version of the configuration that is in force on every shard.
	ConfigVersion int64 `json:"config_version"`
	// Warnings about the new values, one sentence each.
	Notes []string `json:"notes,omitempty"`
}

// ChangedFaults: Faults after a change, which is in force on every shard.
type ChangedFaults struct {
	// The version of the configuration that is in force on every shard.
	ConfigVersion int64 `json:"config_version"`
	// The names of the added faults, in their order.
	Names []string `json:"names"`
}

// ClientInstance: A client that asked for subscriptions, or pushed, as one shard knows it.
type ClientInstance struct {
	ClientInstanceID      string  `json:"client_instance_id"`
	ClientID              *string `json:"client_id,omitempty"`
	ClientSoftwareName    *string `json:"client_software_name,omitempty"`
	ClientSoftwareVersion *string `json:"client_software_version,omitempty"`
	ClientSourceAddress   *string `json:"client_source_address,omitempty"`
	ClientSourcePort      *string `json:"client_source_port,omitempty"`
	Connected             bool    `json:"connected"`
	// Prefixes of the metrics that it was asked for; null: it has not asked.
	Metrics        []string `json:"metrics"`
	PushIntervalMs *int64   `json:"push_interval_ms"`
	SubscriptionID *int64   `json:"subscription_id"`
	Pushes         int64    `json:"pushes"`
	// The number of refused pushes by error.
	Refused map[string]int64 `json:"refused"`
	// The time of the last accepted push, in Unix milliseconds.
	PushedAtMs *int64 `json:"pushed_at_ms"`
	// The size of the last push, as it was sent.
	Bytes  int64 `json:"bytes"`
	Broker int64 `json:"broker"`
	Shard  int64 `json:"shard"`
}

// ClientQuotas: The quotas that hold for a client by Kafka's precedence, and its present rates.
type ClientQuotas struct {
	// The names user and client-id, and client-id-prefix for a quota of a prefix. `<default>` is the default; null: not
	// told apart.
	Matched map[string]*string `json:"matched"`
	// By the quota's key: bytes a second, percent of a thread, mutations or connections a second.
	Quotas map[string]float64 `json:"quotas"`
	// By the quota's key: bytes a second, percent of a thread, mutations or connections a second.
	Rates   map[string]float64 `json:"rates"`
	Brokers []BrokerQuotaRates `json:"brokers"`
	// The level that each quota comes from, by the quota's key.
	Levels map[string]map[string]*string `json:"levels"`
}

// CloseRow: The number of limits of a kind that are close to being reached on one broker. One that is full is near
// and high, too.
type CloseRow struct {
	// null: the limit is one of the whole cluster.
	Broker *int64 `json:"broker"`
	// connections, new_connections, or a client quota's key.
	What string `json:"what"`
	// cluster: of all brokers together; broker: of the broker and its listeners; ip: of addresses; user: of users'
	// connections; client: of clients.
	Of string `json:"of"`
	// From 80 % on.
	High int64 `json:"high"`
	// From 90 % on.
	Near int64 `json:"near"`
	// From 100 % on.
	Full int64 `json:"full"`
	// The number of limits of this kind that were in use.
	Limits int64 `json:"limits"`
}

// ClusterAnswer: The cluster: its processes, listeners, topics and disk.
type ClusterAnswer struct {
	ClusterID *string `json:"cluster_id,omitempty"`
	DataDir   *string `json:"data_dir,omitempty"`
	Brokers   *int64  `json:"brokers,omitempty"`
	// Of each broker.
	Shards    *int64        `json:"shards,omitempty"`
	Listeners []ListenerRow `json:"listeners,omitempty"`
	// The pid of the supervisor.
	Pid            int64 `json:"pid"`
	CoordinatorPid int64 `json:"coordinator_pid"`
	// The parts of the configuration that could not be read, a sentence each.
	Lost []string `json:"lost"`
	// Partitions by topic.
	Topics  map[string]int64 `json:"topics"`
	Disk    *VolumeAnswer    `json:"disk"`
	Journal JournalAnswer    `json:"journal"`
}

// ConnectError: The failure of a call of the Connect protocol.
type ConnectError struct {
	// invalid_argument, not_found, unimplemented or unavailable.
	Code string `json:"code"`
	// One sentence.
	Message string `json:"message"`
}

// ConnectionSource: The address and port that a connection comes from; those that a trusted proxy announced, if one
// did.
type ConnectionSource struct {
	IPAddress string `json:"ipAddress"`
	Port      int64  `json:"port"`
}

// DamagedAnswer: The files that were set aside.
type DamagedAnswer struct {
	Damaged []DamagedFile `json:"damaged"`
}

// DamagedFile: A file that could not be read, and was set aside.
type DamagedFile struct {
	// The path below the data directory.
	Path      string `json:"path"`
	SizeBytes int64  `json:"size_bytes"`
}

// EndingAnswer: The cluster is about to end.
type EndingAnswer struct {
	Ending bool `json:"ending"`
}

// EntityQuotas: An entity and its quotas.
type EntityQuotas struct {
	// The entity of a quota: its name by type (user, client-id, client-id-prefix or ip). null: the default of that type.
	Entity map[string]*string `json:"entity"`
	// By the quota's key: bytes a second, percent of a thread, mutations or connections a second.
	Values map[string]float64 `json:"values"`
}

// Explanation: The limits that hold for an address (`brokers`), for a client (`client`), or for both, whichever the
// request names. If it names a user, also the limits of that user's connections (`user_connections`).
type Explanation struct {
	Brokers []AddressLimits `json:"brokers,omitempty"`
	// Beside `brokers` or `user_connections`, if the whole cluster has a cap, or one is observed: its use, without home
	// and holders.
	Cluster *AddressPool `json:"cluster,omitempty"`
	// Beside `brokers` or `user_connections`, if the whole cluster has a rate of new connections.
	ClusterRate *AddressRate `json:"cluster_rate,omitempty"`
	// The same, if one is observed that is not the one in force.
	ObservedClusterRate *AddressRate      `json:"observed_cluster_rate,omitempty"`
	Client              *ClientQuotas     `json:"client,omitempty"`
	UserConnections     []UserConnections `json:"user_connections,omitempty"`
}

// FaultRow: A fault that is set.
type FaultRow struct {
	// * and ? stand for other characters.
	ClientID *string `json:"client_id,omitempty"`
	IP       *string `json:"ip,omitempty"`
	// The client's IP:PORT.
	Connection *string `json:"connection,omitempty"`
	// The name of a Kafka error, for the kind error.
	Error *string `json:"error,omitempty"`
	// For the kind delay.
	DelayMs *int64 `json:"delay_ms,omitempty"`
	// For the kind throttle.
	ThrottleMs *int64 `json:"throttle_ms,omitempty"`
	// For the kind disconnect: close by RST.
	Reset *bool `json:"reset,omitempty"`
	// For the kind throttle: the connection is muted, too.
	Mute *bool `json:"mute,omitempty"`
	Once *bool `json:"once,omitempty"`
	// Fires at this call only, counted from 1.
	OnCall *int64 `json:"on_call,omitempty"`
	// The number of calls at which it fires, from the first on.
	Times *int64 `json:"times,omitempty"`
	// Fires if it last fired so many milliseconds ago or longer.
	EveryMs *int64 `json:"every_ms,omitempty"`
	// The share of calls at which it fires, from 0 to 1.
	Probability *float64 `json:"probability,omitempty"`
	// The seed that chooses these calls.
	Seed *int64 `json:"seed,omitempty"`
	Name string `json:"name"`
	Kind string `json:"kind"`
	// Names of Kafka's APIs; none: all.
	API []string `json:"api,omitempty"`
	// The number of times it fired; a killed shard loses its part of the count.
	Fired int64 `json:"fired"`
}

// FaultsAnswer: Every fault that is set.
type FaultsAnswer struct {
	Faults []FaultRow `json:"faults"`
}

// FaultsChange: Faults to add and, by name, to remove: all of them or none.
type FaultsChange struct {
	Add    []NewFault `json:"add,omitempty"`
	Remove []string   `json:"remove,omitempty"`
}

// GetBrokerBody: The broker that is asked for.
type GetBrokerBody struct {
	NodeID *int64 `json:"nodeId,omitempty"`
}

// HealthAnswer: The health of the cluster: ok if every shard is up, and the supervisor runs.
type HealthAnswer struct {
	Status string `json:"status"`
	// The shards that are not up, and the supervisor if it is stopped.
	Missing []string `json:"missing,omitempty"`
	// The state of each of them.
	States map[string]any `json:"states,omitempty"`
}

// HeldTokens: The tokens of a pool on one shard.
type HeldTokens struct {
	Shard  int64 `json:"shard"`
	InUse  int64 `json:"in_use"`
	Cached int64 `json:"cached"`
}

// InFlightRequests: Requests under way. Their APIs are not kept.
type InFlightRequests struct {
	SampledInFlightRequests []string `json:"sampledInFlightRequests"`
	// True: a request is under way.
	HasMoreRequests bool `json:"hasMoreRequests"`
}

// JournalAnswer: The events that the journal lacks.
type JournalAnswer struct {
	// The number of events since the start that were not written.
	EventsDropped int64 `json:"events_dropped"`
	// True: events are being lost now.
	IsLosing bool `json:"is_losing"`
}

// LimitRow: A setting that limits clients.
type LimitRow struct {
	Name string `json:"name"`
	// The broker that it is set for; null: the whole cluster.
	Broker *int64 `json:"broker"`
	Value  any    `json:"value"`
	// The value as `turnstile config set` takes it.
	Text string `json:"text"`
	Set  bool   `json:"set"`
	// The origin of the name: kafka, redpanda or turnstile.
	Vocabulary string `json:"vocabulary"`
	// True if it can be observed instead of enforced.
	Observable bool   `json:"observable"`
	Doc        string `json:"doc"`
}

// LimitUse: The use of a limit on one broker, or of one of the whole cluster.
type LimitUse struct {
	// null: the limit is one of the whole cluster.
	Broker *int64 `json:"broker"`
	// Open ones, or new ones a second over the quota window.
	What string `json:"what"`
	// broker, broker:all, listener:NAME, ssl, ip:ADDRESS, user:NAME or cluster.
	Of    string  `json:"of"`
	Used  float64 `json:"used"`
	Limit float64 `json:"limit"`
	// The setting or quota that gives the limit.
	By string `json:"by"`
}

// ListBrokersBody: Nothing is asked.
type ListBrokersBody struct {
}

// ListConnectionsBody: The connections that are asked for, and their order.
type ListConnectionsBody struct {
	// The most connections to return; 0, or more than 1000: 1000.
	PageSize *int64 `json:"pageSize,omitempty"`
	// Conditions joined by AND, such as `client_id = "app" AND idle_duration > 30s`.
	Filter *string `json:"filter,omitempty"`
	// Fields, each with asc or desc, such as `idle_duration desc, source.port`.
	OrderBy *string `json:"orderBy,omitempty"`
}

// ListedBrokers: Every broker.
type ListedBrokers struct {
	Brokers []RedpandaBroker `json:"brokers"`
}

// ListedConnection: An open connection. The other members of Redpanda's KafkaConnection are not kept.
type ListedConnection struct {
	NodeID  int64 `json:"nodeId"`
	ShardID int64 `json:"shardId"`
	// Incarnation of the shard, broker, shard, and the connection's number in the journal, as a UUID.
	Uid                string             `json:"uid"`
	State              string             `json:"state"`
	OpenTime           string             `json:"openTime"`
	AuthenticationInfo AuthenticationInfo `json:"authenticationInfo"`
	ListenerName       string             `json:"listenerName"`
	TlsInfo            TlsInfo            `json:"tlsInfo"`
	Source             ConnectionSource   `json:"source"`
	// The client id; empty: the client has not sent one yet.
	ClientID              string `json:"clientId"`
	ClientSoftwareName    string `json:"clientSoftwareName"`
	ClientSoftwareVersion string `json:"clientSoftwareVersion"`
	// Since its last request was read; 0s while one is under way.
	IdleDuration           string            `json:"idleDuration"`
	InFlightRequests       InFlightRequests  `json:"inFlightRequests"`
	TotalRequestStatistics RequestStatistics `json:"totalRequestStatistics"`
}

// ListedConnections: The connections that match.
type ListedConnections struct {
	Connections []ListedConnection `json:"connections"`
	// The number of matches, a whole number; `connections` may have fewer.
	TotalSize string `json:"totalSize"`
}

// ListenerRow: A listener of one broker.
type ListenerRow struct {
	Broker int64  `json:"broker"`
	Name   string `json:"name"`
	// host:port that it is bound to.
	Address string   `json:"address"`
	Options []string `json:"options"`
}

// LiveAnswer: Everything that a display refreshes. The rates of `shards` are over the last second that was sampled;
// new connections in `uses`, and the values of quotas, are over the quota window.
type LiveAnswer struct {
	// Unix seconds.
	At        float64       `json:"at"`
	UptimeS   float64       `json:"uptime_s"`
	WindowS   float64       `json:"window_s"`
	Version   int64         `json:"version"`
	Brokers   int64         `json:"brokers"`
	Listeners []string      `json:"listeners"`
	Totals    LiveTotals    `json:"totals"`
	Journal   JournalAnswer `json:"journal"`
	Shards    []LiveShard   `json:"shards"`
	Series    []SeriesPoint `json:"series"`
	// The fullest first.
	Uses []LimitUse `json:"uses"`
	// The numbers of limits that are close to being reached.
	Close            []CloseRow       `json:"close"`
	TopRefused       []RefusedAddress `json:"top_refused"`
	RefusedAddresses RefusedAddresses `json:"refused_addresses"`
	// Clients that are throttled by a quota, the longest throttle time first.
	Throttled []QuotaClient `json:"throttled"`
	// Other clients with a quota that they use, the fullest first.
	WithinQuota []QuotaClient `json:"within_quota"`
	Limits      []LimitRow    `json:"limits"`
	// null: no limit and no quota is observed.
	Observed *ObservedAnswer `json:"observed"`
}

// LiveShard: The process of one shard, and its work.
type LiveShard struct {
	Broker int64 `json:"broker"`
	Shard  int64 `json:"shard"`
	Pid    int64 `json:"pid"`
	// The number of this incarnation of the process; it only rises.
	Epoch         int64  `json:"epoch"`
	State         string `json:"state"`
	Connections   int64  `json:"connections"`
	ConfigVersion int64  `json:"config_version"`
	// The number of times that its event loop was held up.
	Stalls            int64   `json:"stalls"`
	LongestCallbackMs float64 `json:"longest_callback_ms"`
	Restarts          int64   `json:"restarts"`
	// The number of times that the system killed it for want of memory.
	MemoryKills int64 `json:"memory_kills"`
	// Seconds until a shard that keeps ending is started again; null: it does not wait for that.
	RestartInS   *float64    `json:"restart_in_s"`
	AdmittedPerS float64     `json:"admitted_per_s"`
	RefusedPerS  float64     `json:"refused_per_s"`
	Admitted     int64       `json:"admitted"`
	Refused      int64       `json:"refused"`
	Tokens       TokenTotals `json:"tokens"`
	// Decisions about connections: home (at once, without a token of another shard), cached (at once, with tokens that
	// another shard had granted before), rpc (later: it waited for a home's answer).
	Decisions map[string]int64 `json:"decisions"`
}

// LiveTotals: Gauges, and counts since the cluster started.
type LiveTotals struct {
	Connections int64 `json:"connections"`
	Admitted    int64 `json:"admitted"`
	Closed      int64 `json:"closed"`
	Lost        int64 `json:"lost"`
	// Connections, by the reason of the refusal.
	Refused map[string]int64 `json:"refused"`
	// Decisions about connections: home (at once, without a token of another shard), cached (at once, with tokens that
	// another shard had granted before), rpc (later: it waited for a home's answer).
	Decisions map[string]int64 `json:"decisions"`
	Tokens    TokenTotals      `json:"tokens"`
	Waiting   int64            `json:"waiting"`
	Held      int64            `json:"held"`
	Muted     int64            `json:"muted"`
	Borrows   int64            `json:"borrows"`
	Reclaims  int64            `json:"reclaims"`
	Malformed int64            `json:"malformed"`
	Requests  int64            `json:"requests"`
	BytesIn   int64            `json:"bytes_in"`
	BytesOut  int64            `json:"bytes_out"`
	// By the quota's kind.
	Throttled map[string]Throttles `json:"throttled"`
}

// MetricPoint: A point of a metric; empty members are left out.
type MetricPoint struct {
	Name        *string        `json:"name,omitempty"`
	Type        string         `json:"type"`
	Unit        *string        `json:"unit,omitempty"`
	Temporality *string        `json:"temporality,omitempty"`
	Resource    map[string]any `json:"resource,omitempty"`
	Attributes  map[string]any `json:"attributes,omitempty"`
	// Unix milliseconds.
	AtMs           *int64     `json:"at_ms,omitempty"`
	Value          *float64   `json:"value,omitempty"`
	Count          *int64     `json:"count,omitempty"`
	Sum            *float64   `json:"sum,omitempty"`
	BucketCounts   []int64    `json:"bucket_counts,omitempty"`
	ExplicitBounds []*float64 `json:"explicit_bounds,omitempty"`
	Quantiles      [][]any    `json:"quantiles,omitempty"`
}

// NewFault: A fault to add.
type NewFault struct {
	// * and ? stand for other characters.
	ClientID *string `json:"client_id,omitempty"`
	IP       *string `json:"ip,omitempty"`
	// The client's IP:PORT.
	Connection *string `json:"connection,omitempty"`
	// The name of a Kafka error, for the kind error.
	Error *string `json:"error,omitempty"`
	// For the kind delay.
	DelayMs *int64 `json:"delay_ms,omitempty"`
	// For the kind throttle.
	ThrottleMs *int64 `json:"throttle_ms,omitempty"`
	// For the kind disconnect: close by RST.
	Reset *bool `json:"reset,omitempty"`
	// For the kind throttle: the connection is muted, too.
	Mute *bool `json:"mute,omitempty"`
	Once *bool `json:"once,omitempty"`
	// Fires at this call only, counted from 1.
	OnCall *int64 `json:"on_call,omitempty"`
	// The number of calls at which it fires, from the first on.
	Times *int64 `json:"times,omitempty"`
	// Fires if it last fired so many milliseconds ago or longer.
	EveryMs *int64 `json:"every_ms,omitempty"`
	// The share of calls at which it fires, from 0 to 1.
	Probability *float64 `json:"probability,omitempty"`
	// The seed that chooses these calls.
	Seed *int64 `json:"seed,omitempty"`
	// Left out: the fault gets one, such as fault-1.
	Name *string `json:"name,omitempty"`
	Kind string  `json:"kind"`
	// Names of Kafka's APIs; none: all.
	API any `json:"api,omitempty"`
}

// NotesAnswer: Warnings about the limits in force: those that admit no connection, and the bursts that rates let
// through.
type NotesAnswer struct {
	Notes []string `json:"notes"`
}

// ObservedAnswer: The refusals and waits that observed caps and creation rates would have caused since one of these
// limits was last changed; a shard that was started again has forgotten its part.
type ObservedAnswer struct {
	Refused   int64 `json:"refused"`
	Waited    int64 `json:"waited"`
	Undecided int64 `json:"undecided"`
	// The number of addresses of these connections that were counted one by one.
	Addresses int64 `json:"addresses"`
	// True: at least one shard's table of addresses was full, so there may be more.
	More bool             `json:"more"`
	Caps []ObservedCapRow `json:"caps"`
	// Values by name; null: no value.
	Set map[string]any `json:"set"`
	// The observed values that are set for single brokers, by broker id.
	Brokers map[string]map[string]any `json:"brokers"`
	// null: no client quota is observed.
	Quotas *ObservedQuotasAnswer `json:"quotas"`
}

// ObservedCapRow: A cap or a creation rate that is observed instead of enforced.
type ObservedCapRow struct {
	// The setting.
	Limit string  `json:"limit"`
	Value float64 `json:"value"`
	// Connections would have waited, for a slot or for a rate.
	Waits bool `json:"waits"`
	// Connections that it would have refused, or made wait.
	Count int64 `json:"count"`
}

// ObservedClientRow: A client that observed quotas would have throttled.
type ObservedClientRow struct {
	User     string `json:"user"`
	ClientID string `json:"client_id"`
	Requests int64  `json:"requests"`
	// `requests` may be too high by this.
	Error int64 `json:"error"`
	// Requests, by the quota with the longest throttle time.
	Quotas map[string]int64 `json:"quotas"`
}

// ObservedQuotaRow: A client quota that is observed instead of enforced, at one value.
type ObservedQuotaRow struct {
	// The kind of quota.
	Quota string  `json:"quota"`
	Value float64 `json:"value"`
	// Requests that it would have throttled.
	Requests int64 `json:"requests"`
	// The sum of their throttle times.
	ThrottleMs int64 `json:"throttle_ms"`
	// Mutations that it would have refused.
	Refused int64 `json:"refused"`
}

// ObservedQuotasAnswer: Requests that the observed client quotas would have throttled since one of these quotas was
// last changed. A shard that was started again counts anew.
type ObservedQuotasAnswer struct {
	// The observed quotas.
	Set []EntityQuotas `json:"set"`
	// Requests that at least one of them would have throttled.
	Requests int64 `json:"requests"`
	// The sum of the throttle times; of each request the longest.
	ThrottleMs int64 `json:"throttle_ms"`
	// True: there are more clients than `clients` has.
	More    bool                `json:"more"`
	Quotas  []ObservedQuotaRow  `json:"quotas"`
	Clients []ObservedClientRow `json:"clients"`
}

// ObservedUse: An observed cap, and its use.
type ObservedUse struct {
	Limit string `json:"limit"`
	Value *int64 `json:"value"`
	Waits bool   `json:"waits"`
	InUse int64  `json:"in_use"`
}

// OneBroker: A broker.
type OneBroker struct {
	Broker RedpandaBroker `json:"broker"`
}

// Problem: The reason why a request was refused, or can't be answered now.
type Problem struct {
	// One sentence.
	Message string `json:"message"`
	// The HTTP status.
	Code int64 `json:"code"`
}

// ProxiesAnswer: The proxies of the open connections; the proxy with the most comes first.
type ProxiesAnswer struct {
	Proxies []ProxyRow `json:"proxies"`
}

// ProxyRow: A proxy that announced connections (PROXY protocol).
type ProxyRow struct {
	// The address of the proxy.
	Proxy string `json:"proxy"`
	// The private endpoint of a cloud by which the connections came.
	Endpoint *string `json:"endpoint"`
	Open     int64   `json:"open"`
}

// QuotaChange: The quotas of one entity that change.
type QuotaChange struct {
	// The entity of a quota: its name by type (user, client-id, client-id-prefix or ip). null: the default of that type.
	Entity map[string]*string `json:"entity"`
	// By the quota's key: bytes a second, percent of a thread, mutations or connections a second.
	Set map[string]float64 `json:"set,omitempty"`
	// Keys of quotas.
	Remove []string `json:"remove,omitempty"`
}

// QuotaClient: A client with a quota, on one broker.
type QuotaClient struct {
	Broker int64 `json:"broker"`
	// Empty: the quota does not tell users apart.
	User string `json:"user"`
	// Empty: the quota does not tell client ids apart.
	ClientID string `json:"client_id"`
	// The quota's key.
	Quota string `json:"quota"`
	// The average throttle time within the quota window, in milliseconds.
	ThrottleMs float64 `json:"throttle_ms"`
	// Bytes a second, percent, or mutations a second.
	Value float64 `json:"value"`
	// The quota, in the same unit; null: it is no longer set.
	Limit *float64 `json:"limit"`
}

// QuotasAnswer: Every entity that has a quota.
type QuotasAnswer struct {
	Quotas []EntityQuotas `json:"quotas"`
}

// QuotasChange: Quotas that change: all of them or none.
type QuotasChange struct {
	Alter []QuotaChange `json:"alter"`
}

// RecordedChange: A version of the configuration, and what it changed: of a setting the values that were in force.
type RecordedChange struct {
	Version int64 `json:"version"`
	// Unix seconds.
	At float64 `json:"at"`
	// The caller as it names itself, and the address it called from.
	Who string `json:"who"`
	// Kind, such as setting or quota; key; old and new value, null: none.
	Changes [][]any `json:"changes"`
}

// RedpandaBroker: A broker.
type RedpandaBroker struct {
	NodeID    int64     `json:"nodeId"`
	BuildInfo BuildInfo `json:"buildInfo"`
}

// RefusalsAnswer: Counts since the cluster started. By ip there are only the most refused addresses, counted since
// their shard started. If `observed`, the counts by ip and by limit are those since an observed limit was last
// changed.
type RefusalsAnswer struct {
	By       string       `json:"by"`
	Total    int64        `json:"total"`
	Admitted int64        `json:"admitted"`
	Refusals []RefusedRow `json:"refusals"`
	// True: these are observed limits, which have refused nothing.
	Observed *bool           `json:"observed,omitempty"`
	Summary  *ObservedAnswer `json:"summary,omitempty"`
}

// RefusedAddress: One of the addresses that were refused most.
type RefusedAddress struct {
	IP    string `json:"ip"`
	Count int64  `json:"count"`
	// `count` may be too high by this.
	Error int64 `json:"error"`
	// Connections, by the reason of the refusal.
	Reasons map[string]int64 `json:"reasons"`
	// The open connections of the address.
	Open int64      `json:"open"`
	Uses []LimitUse `json:"uses"`
}

// RefusedAddresses: The number of addresses that were refused.
type RefusedAddresses struct {
	// The number of addresses that have a count of their own.
	Known int64 `json:"known"`
	// Refusals of the addresses that `top_refused` leaves out.
	OthersRefused int64 `json:"others_refused"`
	// True: at least one shard's table of addresses was full, so there may be more.
	More bool `json:"more"`
}

// RefusedRow: The refusals of one address, listener, reason, shard or observed limit. Besides `count`, only the
// members that belong to `by` are there.
type RefusedRow struct {
	Count int64   `json:"count"`
	IP    *string `json:"ip,omitempty"`
	// By ip: `count` may be too high by this.
	Error    *int64  `json:"error,omitempty"`
	Listener *string `json:"listener,omitempty"`
	Broker   *int64  `json:"broker,omitempty"`
	Shard    *int64  `json:"shard,omitempty"`
	Reason   *string `json:"reason,omitempty"`
	// Connections, by the reason of the refusal.
	Reasons map[string]int64 `json:"reasons,omitempty"`
	Limit   *string          `json:"limit,omitempty"`
	// The value of the limit.
	Value *float64 `json:"value,omitempty"`
	// True: at the limit, connections would have waited.
	Waits *bool `json:"waits,omitempty"`
}

// RequestStatistics: The counts of a connection since it was opened.
type RequestStatistics struct {
	// A whole number.
	RequestCount string `json:"requestCount"`
}

// SeriesAnswer: The counts over time.
type SeriesAnswer struct {
	// Seconds from one point to the next; each is an average over the time since the last.
	StepS  float64       `json:"step_s"`
	Series []SeriesPoint `json:"series"`
}

// SeriesPoint: One step of time: gauges at its end, and rates a second within it. Reasons and quotas without a count
// are left out.
type SeriesPoint struct {
	// Unix seconds.
	At          float64            `json:"at"`
	Connections int64              `json:"connections"`
	Admitted    float64            `json:"admitted"`
	Closed      float64            `json:"closed"`
	Refused     map[string]float64 `json:"refused"`
	InUse       int64              `json:"in_use"`
	Cached      int64              `json:"cached"`
	Decisions   map[string]float64 `json:"decisions"`
	Requests    float64            `json:"requests"`
	Throttled   map[string]float64 `json:"throttled"`
}

// SettingHistory: The last changes, the latest first.
type SettingHistory struct {
	History []RecordedChange `json:"history"`
}

// SettingItems: The entries of a setting that is a list.
type SettingItems struct {
	Type string `json:"type"`
}

// SettingProperty: A setting, in the format of Redpanda's schema.
type SettingProperty struct {
	// integer, number, boolean, string or array.
	Type        string `json:"type"`
	Description string `json:"description"`
	// False: the setting is stored and shown, but has no effect.
	Emulated bool `json:"emulated"`
	Nullable bool `json:"nullable"`
	// True: it can't be changed while the cluster runs.
	NeedsRestart bool   `json:"needs_restart"`
	Visibility   string `json:"visibility"`
	IsSecret     bool   `json:"is_secret"`
	// The origin of the name: kafka, redpanda or turnstile.
	Vocabulary string        `json:"vocabulary"`
	Default    any           `json:"default"`
	Items      *SettingItems `json:"items,omitempty"`
	EnumValues []string      `json:"enum_values,omitempty"`
	Minimum    *float64      `json:"minimum,omitempty"`
	Maximum    *float64      `json:"maximum,omitempty"`
}

// SettingsChange: Settings to set, and to take back: all of them or none.
type SettingsChange struct {
	// A value, or its text as `turnstile config set` takes it, by name.
	Upsert map[string]any `json:"upsert,omitempty"`
	Remove []string       `json:"remove,omitempty"`
}

// SettingsSchema: Every setting, by name.
type SettingsSchema struct {
	Properties map[string]SettingProperty `json:"properties"`
}

// ShardRow: The process of one shard.
type ShardRow struct {
	Broker int64 `json:"broker"`
	Shard  int64 `json:"shard"`
	Pid    int64 `json:"pid"`
	// The number of this incarnation of the process; it only rises.
	Epoch         int64  `json:"epoch"`
	State         string `json:"state"`
	Connections   int64  `json:"connections"`
	ConfigVersion int64  `json:"config_version"`
	// The number of times that its event loop was held up.
	Stalls            int64   `json:"stalls"`
	LongestCallbackMs float64 `json:"longest_callback_ms"`
	Restarts          int64   `json:"restarts"`
	// The number of times that the system killed it for want of memory.
	MemoryKills int64 `json:"memory_kills"`
	// Seconds until a shard that keeps ending is started again; null: it does not wait for that.
	RestartInS *float64 `json:"restart_in_s"`
}

// ShardsAnswer: Every shard.
type ShardsAnswer struct {
	Shards []ShardRow `json:"shards"`
}

// SourcesAnswer: The admitted and refused connections of each address, since its shard started. Two answers can be
// subtracted if `shards`, `forgotten` and the shards' epochs are the same in both.
type SourcesAnswer struct {
	// The number of shards that answered.
	Shards int64 `json:"shards"`
	// The number of times that a shard had too many addresses and began anew.
	Forgotten int64 `json:"forgotten"`
	// Counts by address and by outcome: `admitted`, or the reason of the refusal.
	Sources map[string]map[string]int64 `json:"sources"`
}

// SubscriptionConfigs: The configs of a client metrics resource (KIP-714) that change.
type SubscriptionConfigs struct {
	Name string `json:"name"`
	// null: back to the default.
	Configs map[string]*string `json:"configs"`
}

// TelemetryAnswer: The client instances that were active last. One that is connected to several shards has a row for
// each.
type TelemetryAnswer struct {
	ClientInstances []ClientInstance `json:"client_instances"`
}

// TelemetryPush: The last push of a client instance.
type TelemetryPush struct {
	ClientInstanceID string `json:"client_instance_id"`
	// Unix milliseconds.
	PushedAtMs int64         `json:"pushed_at_ms"`
	Metrics    []MetricPoint `json:"metrics"`
	// The reason why the push can't be read.
	Error *string `json:"error"`
}

// Throttles: The requests that a kind of quota has slowed down since the start.
type Throttles struct {
	Requests int64 `json:"requests"`
	// The sum of their throttle times, in milliseconds.
	ThrottleMs int64 `json:"throttle_ms"`
}

// TlsInfo: The TLS state of a connection.
type TlsInfo struct {
	Enabled bool `json:"enabled"`
}

// TokenPool: A pool of tokens, one for each connection: the state at its home, and the tokens of every shard.
type TokenPool struct {
	// null: of all brokers; its shards are then numbered over all of them, those of broker 0 first.
	Broker *int64 `json:"broker"`
	// broker, listener, ssl, ip, user or cluster; `observed/` before it: the cap is observed, not enforced.
	Kind string `json:"kind"`
	// The listener's name, the address or the user's name; `all`: of the broker with its inter-broker listener; else
	// empty.
	Key string `json:"key"`
	// The home of the pool, the shard that decides; null: it did not answer.
	Home *int64 `json:"home"`
	// null: unlimited.
	Cap *int64 `json:"cap"`
	// The setting that gives the cap.
	Limit string `json:"limit"`
	// open, reclaiming or tight.
	Mode string `json:"mode"`
	Free *int64 `json:"free"`
	// Connections that wait for a token.
	Waiting int64        `json:"waiting"`
	InUse   int64        `json:"in_use"`
	Cached  int64        `json:"cached"`
	Holders []HeldTokens `json:"holders"`
}

// TokenTotals: Tokens of all pools.
type TokenTotals struct {
	InUse  int64 `json:"in_use"`
	Cached int64 `json:"cached"`
	Pools  int64 `json:"pools"`
}

// TokensAnswer: The pools most in use.
type TokensAnswer struct {
	Pools []TokenPool `json:"pools"`
	// True: there are more pools.
	Truncated bool        `json:"truncated"`
	Totals    TokenTotals `json:"totals"`
}

// UserChange: A user that is added, gets another password, or is removed.
type UserChange struct {
	Name string `json:"name"`
	// null: the user is removed.
	Password *string `json:"password,omitempty"`
}

// UserConnections: The cap of a user's connections on one broker, and the rate of new ones if that is limited.
type UserConnections struct {
	// broker, listener:NAME, ssl, ip:ADDRESS, user:NAME or cluster.
	Pool string `json:"pool"`
	// The setting; empty: unlimited.
	Limit string `json:"limit"`
	// null: unlimited.
	Value *int64 `json:"value"`
	// True: over the cap a connection waits instead of being refused.
	Waits   bool         `json:"waits"`
	Home    *int64       `json:"home"`
	InUse   int64        `json:"in_use"`
	Cached  int64        `json:"cached"`
	Holders []HeldTokens `json:"holders"`
	Broker  int64        `json:"broker"`
	// The cap that is observed beside it; null: none is.
	Observed *ObservedUse `json:"observed"`
	Rate     *AddressRate `json:"rate"`
}

// UserRow: A user that may log in on listeners with SASL.
type UserRow struct {
	Name string `json:"name"`
	// The SASL mechanisms that the user can log in with, besides PLAIN.
	Mechanisms []string `json:"mechanisms"`
}

// UsersAnswer: Every user.
type UsersAnswer struct {
	Users []UserRow `json:"users"`
}

// Utilisation: The use of a limit on one broker, or of one of the whole cluster.
type Utilisation struct {
	// null: the limit is one of the whole cluster.
	Broker *int64 `json:"broker"`
	// connections: open ones; new_connections: a second, over the quota window; or a client quota's key.
	What string `json:"what"`
	// broker, broker:all, listener:NAME, ssl, ip:ADDRESS, user:NAME, cluster, or client.
	Of string `json:"of"`
	// The user; empty: the quota does not tell users apart; null: the limit is not of a client.
	User *string `json:"user"`
	// The client id; empty: the quota does not tell client ids apart; null: the limit is not of a client.
	ClientID *string `json:"client_id"`
	// Connections, or in the quota's unit: bytes a second, percent, mutations a second.
	Used  float64 `json:"used"`
	Limit float64 `json:"limit"`
	// null: the limit is 0, and something is used.
	Percent *float64 `json:"percent"`
	// Below 80 % of the limit, from 80 %, from 90 %, from 100 % on.
	Level string `json:"level"`
	// The setting or quota that gives the limit.
	By string `json:"by"`
}

// UtilisationAnswer: The use of each limit, the closest to being reached first. Each figure is of the moment at which
// its shards answered this request. Where a shard is home to more than 2,000 pools or 500 metered clients, the choice
// of the closest, and `close`, may be ten seconds old.
type UtilisationAnswer struct {
	// Unix seconds.
	At float64 `json:"at"`
	// All limits of brokers and listeners, and the fullest of addresses and clients.
	Limits []Utilisation `json:"limits"`
	Close  []CloseRow    `json:"close"`
}

// VolumeAnswer: The volume of the data directory. Sizes are -1 if the system does not tell them.
type VolumeAnswer struct {
	TotalBytes int64        `json:"total_bytes"`
	FreeBytes  int64        `json:"free_bytes"`
	Brokers    []BrokerDisk `json:"brokers"`
}

// WatchAnswer: One address or client on one broker. It is watched from the first request on, until half an hour after
// the last one.
type WatchAnswer struct {
	Broker   int64   `json:"broker"`
	IP       *string `json:"ip"`
	User     *string `json:"user"`
	ClientID *string `json:"client_id"`
	// The time from which it is watched, in Unix seconds.
	Began float64 `json:"began"`
	// Seconds from one point to the next.
	StepS  float64      `json:"step_s"`
	Points []WatchPoint `json:"points"`
	// Admitted connections since the shards started, or last forgot the counts of too many addresses; null for a client.
	Admitted *int64 `json:"admitted"`
	// Refused connections, counted since the same time; null for a client.
	Refused map[string]int64 `json:"refused"`
}

// WatchPoint: A point in time: the use at that time, and the events since the point before.
type WatchPoint struct {
	// Unix seconds.
	At float64 `json:"at"`
	// By limit: connections that are open, new_connections a second over the quota window, or the use of a quota by its
	// key.
	Used map[string]float64 `json:"used"`
	// The limits that hold, in the same units.
	Limits map[string]float64 `json:"limits"`
	// The average throttle time within the quota window, by the quota's key.
	ThrottleMs map[string]float64 `json:"throttle_ms"`
	// Admitted connections a second, for an address.
	Admitted float64 `json:"admitted"`
	// Refused connections a second by reason, for an address.
	Refused map[string]float64 `json:"refused"`
}
