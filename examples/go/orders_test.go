// Tests of a Go client (franz-go) under limits: `go test`, with the turnstile command on the PATH.
package orders

import (
	"context"
	"net"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

func client(t *testing.T, options ...kgo.Opt) *kgo.Client {
	t.Helper()
	made, err := kgo.NewClient(append([]kgo.Opt{kgo.SeedBrokers(cluster.Bootstrap)}, options...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(made.Close)
	return made
}

func within(t *testing.T, limit time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	t.Cleanup(cancel)
	return ctx
}

func TestAnOrderArrives(t *testing.T) {
	cluster.reset(t)
	ctx := within(t, 20*time.Second)
	producer := client(t)
	if err := producer.ProduceSync(ctx, &kgo.Record{Topic: "orders", Value: []byte("one")}).FirstErr(); err != nil {
		t.Fatal(err)
	}
	consumer := client(t, kgo.ConsumeTopics("orders"), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	fetches := consumer.PollFetches(ctx)
	if err := fetches.Err(); err != nil {
		t.Fatal(err)
	}
	if got := string(fetches.Records()[0].Value); got != "one" {
		t.Fatalf("consumed %q", got)
	}
}

// A refused connection is closed before it is answered a byte.
func TestAFourthConnectionIsRefused(t *testing.T) {
	cluster.reset(t)
	cluster.set(t, "kafka_connections_max_per_ip", 3)
	closed := make(chan struct{}, 4)
	for range 4 {
		conn, err := net.Dial("tcp", cluster.Bootstrap)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { conn.Close() })
		go func() { conn.Read(make([]byte, 1)); closed <- struct{}{} }()
	}
	<-closed
	if got := cluster.refused(t); got != 1 {
		t.Fatalf("%d refused", got)
	}
}

// told is a hook of franz-go's: how long the broker has asked this client to wait.
type told struct{ most chan time.Duration }

func (told told) OnBrokerThrottle(_ kgo.BrokerMetadata, interval time.Duration, _ bool) {
	select {
	case told.most <- interval:
	default:
	}
}

func TestAProducerOverItsQuotaIsToldToWait(t *testing.T) {
	cluster.reset(t)
	cluster.quota(t, map[string]string{"client-id": "importer"}, map[string]float64{"producer_byte_rate": 1000})
	throttle := told{make(chan time.Duration, 1)}
	importer := client(t, kgo.ClientID("importer"), kgo.WithHooks(throttle), kgo.ProducerBatchCompression(kgo.NoCompression()))
	record := &kgo.Record{Topic: "orders", Value: make([]byte, 50_000)}
	if err := importer.ProduceSync(within(t, 20*time.Second), record).FirstErr(); err != nil {
		t.Fatal(err)
	}
	if interval := <-throttle.most; interval < time.Second {
		t.Fatalf("told to wait %v", interval)
	}
}
