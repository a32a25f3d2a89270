// segmentio/kafka-go: a Writer of numbered records and a Reader in a group, with their default settings but for RequiredAcks:
// by default a Writer asks for no answers, so it is told no throttle time and no error.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/segmentio/kafka-go"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	where := os.Getenv("TURNSTILE_BOOTSTRAP")
	writer := &kafka.Writer{
		Addr:         kafka.TCP(where),
		Topic:        "orders",
		RequiredAcks: kafka.RequireAll,
		Async:        true,
		BatchTimeout: 20 * time.Millisecond,
	}
	reader := kafka.NewReader(kafka.ReaderConfig{Brokers: []string{where}, GroupID: "readers", Topic: "orders"})
	go func() {
		for ctx.Err() == nil {
			reader.ReadMessage(ctx)
		}
	}()
	for number := 1; ctx.Err() == nil; number++ {
		writer.WriteMessages(ctx, kafka.Message{Value: []byte(fmt.Sprintf("%d:%d", os.Getpid(), number))})
		time.Sleep(20 * time.Millisecond)
	}
	reader.Close()
	writer.Close()
}
