// Package turnstile starts Turnstile for tests: in a container or, where no Docker is, as a process.
//
// Which it is, says the variable TURNSTILE_RUN: container (the default), or process, which needs the turnstile command.
// TURNSTILE_IMAGE names the image.
package turnstile

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"

	"github.com/testcontainers/testcontainers-go"
	"github.com/testcontainers/testcontainers-go/wait"
)

// Image is used where TURNSTILE_IMAGE names none.
const Image = "localhost/turnstile:latest"

// Cluster is one broker. Bootstrap is what clients connect to, Admin the URL of its admin API.
type Cluster struct {
	Bootstrap, Admin, Run string
	token                 string
	stop                  func(context.Context) error
}

// Start returns when every process of the cluster accepts connections. options are those of `turnstile up`.
func Start(ctx context.Context, options ...string) (*Cluster, error) {
	token := make([]byte, 16)
	if _, err := rand.Read(token); err != nil {
		return nil, err
	}
	c := &Cluster{Run: or(os.Getenv("TURNSTILE_RUN"), "container"), token: hex.EncodeToString(token)}
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
			Env:          map[string]string{"TURNSTILE_ADMIN_TOKEN": c.token},
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
		c.Admin, err = container.PortEndpoint(ctx, "9644/tcp", "http")
	}
	if err == nil { // The port is known only now: from here on clients are told of it.
		err = c.Ask(ctx, "PUT", "/v1/advertise", map[string]any{"addresses": c.Bootstrap}, nil)
	}
	if err != nil {
		return errors.Join(err, c.Stop(ctx))
	}
	return nil
}

func (c *Cluster) startProcess(options []string) error {
	up := append([]string{"up", "--json", "--end-with-stdin", "--port", "0", "--admin-port", "0"}, options...)
	process := exec.Command("turnstile", up...)
	process.Env = append(os.Environ(), "TURNSTILE_ADMIN_TOKEN="+c.token)
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
	c.Admin, c.Bootstrap = told.Admin, told.Listeners[0].Address
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
	body := map[string]any{"upsert": map[string]any{name: value}, "remove": []string{}}
	return c.Ask(ctx, "PUT", "/v1/cluster_config", body, nil)
}

// Quota sets quotas of an entity such as {"client-id": "app"}, likewise.
func (c *Cluster) Quota(ctx context.Context, entity map[string]string, rates map[string]float64) error {
	change := map[string]any{"entity": entity, "set": rates, "remove": []string{}}
	return c.Ask(ctx, "PUT", "/v1/quotas", map[string]any{"alter": []any{change}}, nil)
}

// Reset makes the cluster what it was when it started: no record, no group, no limit that a test has set, no connection.
func (c *Cluster) Reset(ctx context.Context) error { return c.Ask(ctx, "POST", "/v1/reset", nil, nil) }

// Refusals are the connections refused since the reset, by the limit that refused them.
func (c *Cluster) Refusals(ctx context.Context) (map[string]int, error) {
	var told struct {
		Refusals []struct{ Reasons map[string]int }
	}
	found := map[string]int{}
	err := c.Ask(ctx, "GET", "/v1/refusals?by=ip", nil, &told)
	for _, row := range told.Refusals {
		for reason, count := range row.Reasons {
			found[reason] += count
		}
	}
	return found, err
}

// Ask calls the admin API, and reads its JSON into answer, unless that is nil. A change is answered once it is in force.
func (c *Cluster) Ask(ctx context.Context, method, path string, body, answer any) error {
	content, err := json.Marshal(body)
	if err != nil {
		return err
	}
	request, err := http.NewRequestWithContext(ctx, method, c.Admin+path, bytes.NewReader(content))
	if err != nil {
		return err
	}
	request.Header.Set("authorization", "Bearer "+c.token)
	request.Header.Set("x-turnstile-who", "tests in Go")
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	told, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode >= 400 {
		return errors.New(string(told))
	}
	if err != nil || answer == nil {
		return err
	}
	return json.Unmarshal(told, answer)
}

func or(text, otherwise string) string {
	if text == "" {
		return otherwise
	}
	return text
}
