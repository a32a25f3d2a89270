package orders

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"testing"
)

// Cluster is a `turnstile up`. It ends when its standard input does: with this process, however that ends.
type Cluster struct {
	Bootstrap, Admin string
	process          *exec.Cmd
	stdin            io.Closer
}

var cluster Cluster

func TestMain(m *testing.M) {
	if err := cluster.start("--shards", "2", "--topic", "orders:3"); err != nil {
		fmt.Fprintln(os.Stderr, "turnstile up:", err)
		os.Exit(1)
	}
	code := m.Run()
	cluster.stdin.Close()
	cluster.process.Wait()
	os.Exit(code)
}

func (c *Cluster) start(options ...string) error {
	up := append([]string{"up", "--json", "--end-with-stdin", "--port", "0", "--admin-port", "0"}, options...)
	c.process = exec.Command("turnstile", up...)
	c.process.Stderr = os.Stderr
	stdout, err := c.process.StdoutPipe()
	if err != nil {
		return err
	}
	if c.stdin, err = c.process.StdinPipe(); err != nil {
		return err
	}
	if err := c.process.Start(); err != nil {
		return err
	}
	var started struct { // its first line, once every process accepts connections
		Admin     string
		Error     string
		Listeners []struct{ Address string }
	}
	if err := json.NewDecoder(stdout).Decode(&started); err != nil {
		return err
	}
	if started.Error != "" {
		return fmt.Errorf("%s", started.Error)
	}
	c.Admin, c.Bootstrap = started.Admin, started.Listeners[0].Address
	return nil
}

// reset makes the cluster what it was when it started, in milliseconds: a test begins with nothing of those before it.
func (c *Cluster) reset(t *testing.T) { c.ask(t, "POST", "/v1/reset", nil, nil) }

// set changes a setting; when it returns, every process of the cluster enforces it.
func (c *Cluster) set(t *testing.T, name string, value any) {
	c.ask(t, "PUT", "/v1/cluster_config", map[string]any{"upsert": map[string]any{name: value}, "remove": []string{}}, nil)
}

func (c *Cluster) quota(t *testing.T, entity map[string]string, rates map[string]float64) {
	change := map[string]any{"entity": entity, "set": rates, "remove": []string{}}
	c.ask(t, "PUT", "/v1/quotas", map[string]any{"alter": []any{change}}, nil)
}

// refused is how many connections the cluster has refused since it was reset.
func (c *Cluster) refused(t *testing.T) (total int) {
	var told struct {
		Refusals []struct{ Count int }
	}
	c.ask(t, "GET", "/v1/refusals?by=ip", nil, &told)
	for _, each := range told.Refusals {
		total += each.Count
	}
	return total
}

func (c *Cluster) ask(t *testing.T, method, path string, body, answer any) {
	t.Helper()
	content, err := json.Marshal(body)
	if err != nil {
		t.Fatal(err)
	}
	request, err := http.NewRequest(method, c.Admin+path, bytes.NewReader(content))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("content-type", "application/json")
	request.Header.Set("x-turnstile-who", "go test")
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	told, _ := io.ReadAll(response.Body)
	if response.StatusCode >= 400 {
		t.Fatalf("%s %s: %s", method, path, told)
	}
	if answer != nil {
		if err := json.Unmarshal(told, answer); err != nil {
			t.Fatal(err)
		}
	}
}
