// kfake as a peer of the benchmarks and of the client tests: a fake cluster on free ports of loopback.
//
// Usage: kfake [-brokers N] [-partitions N] [-cert FILE -key FILE] [-user NAME=PASSWORD]. Prints the addresses, comma-separated, on
// one line when it serves, and ends when its standard input does, so that it never outlives the process that started it.
package main

import (
	"crypto/tls"
	"flag"
	"fmt"
	"io"
	"log"
	"os"
	"strings"

	"github.com/twmb/franz-go/pkg/kfake"
)

func main() {
	brokers := flag.Int("brokers", 1, "number of brokers")
	partitions := flag.Int("partitions", 10, "partitions of a topic that is created by asking for it")
	cert := flag.String("cert", "", "certificate in PEM: every connection is a TLS one")
	key := flag.String("key", "", "its key")
	user := flag.String("user", "", "every connection logs in by SASL PLAIN or SCRAM, as this user")
	flag.Parse()
	options := []kfake.Opt{
		kfake.NumBrokers(*brokers), kfake.AllowAutoTopicCreation(), kfake.DefaultNumPartitions(*partitions)}
	if *cert != "" {
		pair, err := tls.LoadX509KeyPair(*cert, *key)
		if err != nil {
			log.Fatal(err)
		}
		options = append(options, kfake.TLS(&tls.Config{Certificates: []tls.Certificate{pair}}))
	}
	if name, password, ok := strings.Cut(*user, "="); ok {
		options = append(options, kfake.EnableSASL())
		for _, mechanism := range []string{"PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"} {
			options = append(options, kfake.Superuser(mechanism, name, password))
		}
	}
	cluster, err := kfake.NewCluster(options...)
	if err != nil {
		log.Fatal(err)
	}
	defer cluster.Close()
	fmt.Println(strings.Join(cluster.ListenAddrs(), ","))
	io.Copy(io.Discard, os.Stdin)
}
