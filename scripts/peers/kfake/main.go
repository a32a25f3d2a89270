// kfake as a peer of the benchmarks and of the client tests: a fake cluster on free ports of loopback.
//
// Usage: kfake [-brokers N] [-partitions N]. Prints the addresses, comma-separated, on one line when it serves, and ends when its
// standard input does, so that it never outlives the process that started it.
package main

import (
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
	flag.Parse()
	cluster, err := kfake.NewCluster(
		kfake.NumBrokers(*brokers), kfake.AllowAutoTopicCreation(), kfake.DefaultNumPartitions(*partitions))
	if err != nil {
		log.Fatal(err)
	}
	defer cluster.Close()
	fmt.Println(strings.Join(cluster.ListenAddrs(), ","))
	io.Copy(io.Discard, os.Stdin)
}
