// Two records produced, one after the other, with franz-go, sarama or kafka-go: what the library logs and returns is what its user sees.
package main

import (
	"context"
	"crypto/rand"
	"fmt"
	"log"
	"os"
	"time"

	"github.com/IBM/sarama"
	"github.com/segmentio/kafka-go"
	"github.com/twmb/franz-go/pkg/kgo"
)

const size = 50_000

func main() {
	ctx, done := context.WithTimeout(context.Background(), 10*time.Second)
	defer done()
	where := os.Getenv("TURNSTILE_BOOTSTRAP")
	value := make([]byte, size)
	rand.Read(value) // what compresses well is under the quota
	var err error
	began := time.Now()
	switch os.Args[1] {
	case "franz-go":
		client, fault := kgo.NewClient(kgo.SeedBrokers(where), kgo.ClientID("symptoms"), kgo.DefaultProduceTopic("orders"),
			kgo.WithLogger(kgo.BasicLogger(os.Stderr, kgo.LogLevelWarn, nil)))
		if err = fault; err == nil {
			for sent := 0; sent < 2 && err == nil; sent++ {
				err = client.ProduceSync(ctx, &kgo.Record{Value: value}).FirstErr()
			}
		}
	case "sarama":
		sarama.Logger = log.New(os.Stderr, "[sarama] ", 0)
		config := sarama.NewConfig()
		config.ClientID = "symptoms"
		config.Producer.Return.Successes = true
		producer, fault := sarama.NewSyncProducer([]string{where}, config)
		if err = fault; err == nil {
			for sent := 0; sent < 2 && err == nil; sent++ {
				_, _, err = producer.SendMessage(&sarama.ProducerMessage{Topic: "orders", Value: sarama.ByteEncoder(value)})
			}
		}
	case "kafka-go":
		writer := &kafka.Writer{Addr: kafka.TCP(where), Topic: "orders", RequiredAcks: kafka.RequireAll,
			Transport: &kafka.Transport{ClientID: "symptoms"}, ErrorLogger: log.New(os.Stderr, "[kafka-go] ", 0)}
		for sent := 0; sent < 2 && err == nil; sent++ {
			err = writer.WriteMessages(ctx, kafka.Message{Value: value})
		}
	}
	fmt.Printf("returned after %.1f s: %v\n", time.Since(began).Seconds(), err)
}
