package turnstile

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"os"
	"reflect"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

var cluster *Cluster

func TestMain(m *testing.M) {
	var err error
	ctx := context.Background()
	if cluster, err = Start(ctx, "--topic", "orders:1"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Println("Turnstile runs as", cluster.Run)
	code := m.Run()
	if err := cluster.Stop(ctx); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

func TestACapRefusesAndSaysWhy(t *testing.T) {
	must(t, cluster.Reset(t.Context()))
	must(t, cluster.Set(t.Context(), "kafka_connections_max_per_ip", 3))
	connections(t, 4)
	if found := refused(t); !reflect.DeepEqual(found, map[string]int64{"ip_cap": 1}) {
		t.Fatal(found)
	}
}

func TestAQuotaThrottlesAlwaysAlike(t *testing.T) {
	var told []time.Duration
	for range 2 {
		must(t, cluster.Reset(t.Context()))
		must(t, cluster.Quota(t.Context(), map[string]string{"client-id": "importer"}, map[string]float64{"producer_byte_rate": 1000}))
		client, err := kgo.NewClient(
			kgo.SeedBrokers(cluster.Bootstrap), kgo.ClientID("importer"), kgo.ProducerBatchCompression(kgo.NoCompression()),
			kgo.WithHooks(throttles{&told}),
		)
		must(t, err)
		record := &kgo.Record{Topic: "orders", Value: bytes.Repeat([]byte("x"), 20_000)}
		must(t, client.ProduceSync(t.Context(), record).FirstErr())
		client.Close()
	}
	if len(told) != 2 || told[0] != told[1] || told[0] <= 0 {
		t.Fatal(told)
	}
}

func TestAResetForgetsWhatATestHasDone(t *testing.T) {
	must(t, cluster.Reset(t.Context()))
	must(t, cluster.Set(t.Context(), "kafka_connections_max_per_ip", 1))
	held := connections(t, 3)
	refused(t)
	must(t, cluster.Reset(t.Context()))
	if found, err := cluster.Refusals(t.Context()); err != nil || len(found) > 0 {
		t.Fatal(found, err)
	}
	for _, each := range held {
		if _, err := each.Read(make([]byte, 1)); err == nil {
			t.Fatal("a reset closes every connection")
		}
	}
}

type throttles struct{ told *[]time.Duration }

func (hook throttles) OnBrokerThrottle(_ kgo.BrokerMetadata, interval time.Duration, _ bool) {
	*hook.told = append(*hook.told, interval)
}

func connections(t *testing.T, count int) (held []net.Conn) {
	for range count {
		connection, err := net.DialTimeout("tcp", cluster.Bootstrap, 10*time.Second)
		must(t, err)
		t.Cleanup(func() { connection.Close() })
		held = append(held, connection)
	}
	return held
}

// refused waits until there are any: a connection is refused a moment after it was opened.
func refused(t *testing.T) map[string]int64 {
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		found, err := cluster.Refusals(t.Context())
		must(t, err)
		if len(found) > 0 {
			return found
		}
		if time.Now().After(deadline) {
			t.Fatal("no connection was refused")
		}
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
