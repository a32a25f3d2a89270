// Package turnstile starts Turnstile for tests: in a container or, where no Docker is, as a process.
//
// Which it is, says the variable TURNSTILE_RUN: container (the default), or process, which needs the turnstile command.
// TURNSTILE_IMAGE names the image.
package turnstile

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"

	"github.com/testcontainers/testcontainers-go"
	"github.com/testcontainers/testcontainers-go/wait"
)

// Image is used where TURNSTILE_IMAGE names none.
const Image = "localhost/turnstile:latest"

// Cluster is one broker. Bootstrap is what clients connect to, API calls its admin API.
type Cluster struct {
	Bootstrap, Run string
	API            AdminAPI
	stop           func(context.Context) error
}

// Start returns when every process of the cluster accepts connections. options are those of `turnstile up`.
func Start(ctx context.Context, options ...string) (*Cluster, error) {
	token := make([]byte, 16)
	if _, err := rand.Read(token); err != nil {
		return nil, err
	}
	api := AdminAPI{Token: hex.EncodeToString(token), Who: "tests in Go"}
	c := &Cluster{Run: or(os.Getenv("TURNSTILE_RUN"), "container"), API: api}
	switch c.Run {
	case "container":
		return c, c.startContainer(ctx, options)
	case "process":
		return c, c.startProcess(options)
	}
	return nil, fmt.Errorf("TURNSTILE_RUN cannot be %q: container or process", c.Run)
}

func (c *Cluster) startContainer(ctx context.Context, options []string) error {
	container, err := testcontainers.GenericContainer(ctx, testcontainers.GenericContainerRequest{
		Started: true,
		ContainerRequest: testcontainers.ContainerRequest{
			Image:        or(os.Getenv("TURNSTILE_IMAGE"), Image),
			Cmd:          append([]string{"up"}, options...),
			Env:          map[string]string{"TURNSTILE_ADMIN_TOKEN": c.API.Token},
			ExposedPorts: []string{"9092/tcp", "9644/tcp"},
			WaitingFor:   wait.ForLog("Turnstile is ready."),
		},
	})
	if container != nil {
		c.stop = func(ctx context.Context) error { return container.Terminate(ctx) }
	}
	if err != nil {
		return errors.Join(err, c.Stop(ctx))
	}
	if c.Bootstrap, err = container.PortEndpoint(ctx, "9092/tcp", ""); err == nil {
		c.API.URL, err = container.PortEndpoint(ctx, "9644/tcp", "http")
	}
	if err == nil { // The port is known only now: from here on clients are told of it.
		_, err = c.API.PutAdvertised(ctx, AddressesChange{Addresses: c.Bootstrap})
	}
	if err != nil {
		return errors.Join(err, c.Stop(ctx))
	}
	return nil
}

func (c *Cluster) startProcess(options []string) error {
	up := append([]string{"up", "--json", "--end-with-stdin", "--port", "0", "--admin-port", "0"}, options...)
	process := exec.Command("turnstile", up...)
	process.Env = append(os.Environ(), "TURNSTILE_ADMIN_TOKEN="+c.API.Token)
	process.Stderr = os.Stderr
	stdout, err := process.StdoutPipe()
	if err != nil {
		return err
	}
	stdin, err := process.StdinPipe()
	if err != nil {
		return err
	}
	if err := process.Start(); err != nil {
		return err
	}
	c.stop = func(context.Context) error { // it ends with its standard input, also if this process is killed
		stdin.Close()
		return process.Wait()
	}
	var told struct {
		Admin, Error string
		Listeners    []struct{ Address string }
	}
	if err := json.NewDecoder(stdout).Decode(&told); err != nil {
		return errors.Join(err, c.Stop(context.Background()))
	}
	if told.Error != "" {
		return errors.New(told.Error)
	}
	c.API.URL, c.Bootstrap = told.Admin, told.Listeners[0].Address
	return nil
}

// Stop ends the cluster, and everything of it.
func (c *Cluster) Stop(ctx context.Context) error {
	if c.stop == nil {
		return nil
	}
	return c.stop(ctx)
}

// Set changes a setting; when it returns, every process of the cluster enforces it.
func (c *Cluster) Set(ctx context.Context, name string, value any) error {
	_, err := c.API.PutConfig(ctx, SettingsChange{Upsert: map[string]any{name: value}}, PutConfigQuery{})
	return err
}

// Quota sets quotas of an entity such as {"client-id": "app"}, likewise.
func (c *Cluster) Quota(ctx context.Context, entity map[string]string, rates map[string]float64) error {
	names := map[string]*string{}
	for kind, name := range entity {
		names[kind] = &name
	}
	change := QuotaChange{Entity: names, Set: rates}
	_, err := c.API.PutQuotas(ctx, QuotasChange{Alter: []QuotaChange{change}}, PutQuotasQuery{})
	return err
}

// Reset makes the cluster what it was when it started: no record, no group, no limit that a test has set, no connection.
func (c *Cluster) Reset(ctx context.Context) error {
	_, err := c.API.Reset(ctx)
	return err
}

// Refusals are the connections refused since the reset, by the limit that refused them.
func (c *Cluster) Refusals(ctx context.Context) (map[string]int64, error) {
	found, by := map[string]int64{}, "ip"
	told, err := c.API.GetRefusals(ctx, GetRefusalsQuery{By: &by})
	for _, row := range told.Refusals {
		for reason, count := range row.Reasons {
			found[reason] += count
		}
	}
	return found, err
}

func or(text, otherwise string) string {
	if text == "" {
		return otherwise
	}
	return text
}
