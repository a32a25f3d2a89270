// franz-go: a producer of numbered records and a member of a group, with its default settings.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	seeds := kgo.SeedBrokers(os.Getenv("TURNSTILE_BOOTSTRAP"))
	producer, err := kgo.NewClient(seeds, kgo.ClientID("producer"), kgo.DefaultProduceTopic("orders"))
	if err != nil {
		panic(err)
	}
	consumer, err := kgo.NewClient(seeds, kgo.ClientID("consumer"), kgo.ConsumerGroup("readers"), kgo.ConsumeTopics("orders"))
	if err != nil {
		panic(err)
	}
	go func() {
		for ctx.Err() == nil {
			consumer.PollFetches(ctx)
		}
	}()
	for number := 1; ctx.Err() == nil; number++ {
		producer.Produce(context.Background(), kgo.StringRecord(fmt.Sprintf("%d:%d", os.Getpid(), number)), nil)
		time.Sleep(20 * time.Millisecond)
	}
	flushing, done := context.WithTimeout(context.Background(), 3*time.Second)
	defer done()
	producer.Flush(flushing)
	producer.Close()
	consumer.Close()
}
