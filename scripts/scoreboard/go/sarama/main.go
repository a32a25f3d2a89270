// sarama: an asynchronous producer of numbered records and a member of a group, with its default settings.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/IBM/sarama"
)

type reader struct{}

func (reader) Setup(sarama.ConsumerGroupSession) error   { return nil }
func (reader) Cleanup(sarama.ConsumerGroupSession) error { return nil }
func (reader) ConsumeClaim(session sarama.ConsumerGroupSession, claim sarama.ConsumerGroupClaim) error {
	for message := range claim.Messages() {
		session.MarkMessage(message, "")
	}
	return nil
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	where := []string{os.Getenv("TURNSTILE_BOOTSTRAP")}
	config := sarama.NewConfig()
	config.ClientID = "client"
	producer, err := sarama.NewAsyncProducer(where, config)
	if err != nil {
		panic(err)
	}
	go func() {
		for range producer.Errors() {
		}
	}()
	group, err := sarama.NewConsumerGroup(where, "readers", config)
	if err != nil {
		panic(err)
	}
	go func() {
		for ctx.Err() == nil {
			if err := group.Consume(ctx, []string{"orders"}, reader{}); err != nil {
				select { // the pace of what it tries again is to be the library's, not this loop's
				case <-time.After(time.Second):
				case <-ctx.Done():
				}
			}
		}
	}()
	for number := 1; ctx.Err() == nil; number++ {
		value := sarama.StringEncoder(fmt.Sprintf("%d:%d", os.Getpid(), number))
		select {
		case producer.Input() <- &sarama.ProducerMessage{Topic: "orders", Value: value}:
		case <-ctx.Done():
		}
		time.Sleep(20 * time.Millisecond)
	}
	group.Close()
	producer.Close()
}
