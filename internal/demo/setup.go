package demo

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"text/template"
	"time"

	"github.com/errand-bot/errand/internal/fleet"
	"github.com/errand-bot/errand/internal/fleet/local/box"
	"github.com/errand-bot/errand/internal/server"
	"github.com/goccy/go-yaml"
)

// configText is errand's configuration in the demo: an ordinary file, with short intervals unless
// production's are asked for.
const configText = `# Written by errand-demo. Everything that it names is on this machine.
deployment: demo
data: {{yaml .Data}}
listen: 127.0.0.1:0
log: {level: debug}
github:
  app_id: {{.AppID}}
  private_key: {{yaml (printf "file:%s" .KeyFile)}}
  webhook_secret: {{yaml (printf "file:%s" .SecretFile)}}
  url: {{.GitHub}}
trigger: {assignee: {{.Machine}}, label: errand}
admin: {token: {{yaml (printf "file:%s" .TokenFile)}}}
agent:
  adapter: {{.Adapter}}
  command: {{yaml .Agent}}
  model: {{yaml .ModelName}}
  env: {{yaml .Env}}
{{.AgentMore}}
models:
  anthropic: {url: {{.Model}}, {{.Anthropic}}}
  openai: {url: {{.Model}}, key: {{yaml (printf "file:%s" .ModelKeyFile)}}, header: Authorization}
  gemini: {url: {{.Model}}, key: {{yaml (printf "file:%s" .ModelKeyFile)}}, header: X-Goog-Api-Key}
local:
  kind: {{.Kind}}
  path: {{yaml .Path}}
  binds:
{{- range .Binds}}
    - {path: {{yaml .Path}}, writable: {{.Writable}}}
{{- end}}
{{- if .Cloud}}
provider: hetzner
hetzner:
  token: {{yaml (printf "file:%s" .CloudTokenFile)}}
  endpoint: {{.Cloud}}
  billing_period: {{.Paid}}
limits: {vm_hours: 100, vm_creates: 100}
{{- end}}
{{- if .Fast}}
timing:
  gather: 400ms
  poll_fast: 300ms
  poll_slow: 1s
  deliveries: 5s
  sweep: 10s
{{- end}}
{{.Extra}}
`

// fastTiming is how quick the demo is in what the configuration does not set.
func fastTiming() *server.Timing {
	t := server.DefaultTiming()
	t.StatusGap, t.Settle, t.SleepBefore = 5*time.Second, 0, time.Second
	t.Backoff, t.Recheck, t.JobRetry, t.ProgressEvery = 500*time.Millisecond, 500*time.Millisecond, 300*time.Millisecond, 300*time.Millisecond
	t.PollGap, t.VMTick = 150*time.Millisecond, 200*time.Millisecond
	t.WritesBurst, t.WritesEvery, t.ObjectsEvery = 200, 5*time.Millisecond, time.Millisecond
	return &t
}

// bind is a host path that boxes see.
type bind struct {
	Path     string
	Writable bool
}

// writeConfig writes the configuration and the secrets that it names.
func (w *World) writeConfig() error {
	secrets := filepath.Join(w.cfg.Dir, "secrets")
	if err := os.MkdirAll(secrets, 0o700); err != nil {
		return fmt.Errorf("make the demo's secrets: %w", err)
	}
	app := w.GitHub.App()
	names := map[string]string{"app.pem": string(app.PEM), "webhook": app.WebhookSecret, "token": AdminToken, "model": ModelKey, "cloud": CloudToken}
	for name, value := range names {
		if err := os.WriteFile(filepath.Join(secrets, name), []byte(value), 0o600); err != nil {
			return fmt.Errorf("write a secret of the demo: %w", err)
		}
	}
	anthropic, err := w.anthropic(secrets)
	if err != nil {
		return err
	}
	tools, err := w.tools()
	if err != nil {
		return err
	}
	adapter, model := w.cfg.Adapter, w.cfg.Model
	if adapter == "" {
		adapter = "claude"
	}
	if model == "" {
		model = "claude-sonnet-5"
	}
	f, err := os.Create(w.ConfigFile())
	if err != nil {
		return fmt.Errorf("write the configuration: %w", err)
	}
	err = template.Must(template.New("config").Funcs(template.FuncMap{"yaml": inline}).Parse(configText)).Execute(f, map[string]any{
		"Data": filepath.Join(w.cfg.Dir, "data"), "AppID": app.ID, "KeyFile": filepath.Join(secrets, "app.pem"), "SecretFile": filepath.Join(secrets, "webhook"),
		"TokenFile": filepath.Join(secrets, "token"), "ModelKeyFile": filepath.Join(secrets, "model"), "GitHub": w.GitHub.BaseURL(), "Machine": Machine,
		"Adapter": adapter, "Agent": w.cfg.Agent, "ModelName": model, "Env": tools.env, "Model": w.addr, "Anthropic": anthropic, "Kind": w.kind(), "Path": tools.path, "Binds": tools.binds,
		"Cloud": w.cloud, "CloudTokenFile": filepath.Join(secrets, "cloud"), "Paid": w.paid,
		"Fast": w.cfg.Fast, "Extra": w.cfg.Extra, "AgentMore": indented(w.cfg.AgentMore),
	})
	return errors.Join(err, f.Close())
}

// indented puts lines into a section.
func indented(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		b.WriteString("  " + line)
	}
	return b.String()
}

// inline writes a value as YAML on one line.
func inline(v any) (string, error) {
	out, err := yaml.MarshalWithOptions(v, yaml.Flow(true), yaml.JSON())
	return strings.TrimSpace(string(out)), err
}

// tools is what the agent needs of this host: itself, Go, and a build cache that all boxes share.
type tools struct {
	path  []string
	binds []bind
	env   map[string]string
}

// tools finds Go. The cache lies in the user's cache folder, so that only the first demo is cold.
func (w *World) tools() (tools, error) {
	out, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		return tools{}, fmt.Errorf("find Go, which the demo's repository is tested with: %w", err)
	}
	root, err := filepath.EvalSymlinks(strings.TrimSpace(string(out)))
	if err != nil {
		return tools{}, fmt.Errorf("find Go's folder: %w", err)
	}
	cache, err := Cache()
	if err != nil {
		return tools{}, err
	}
	t := tools{
		path:  []string{filepath.Join(root, "bin")},
		binds: []bind{{Path: root}, {Path: cache, Writable: true}},
		env:   map[string]string{"GOCACHE": cache, "GOTOOLCHAIN": "local", "GOPROXY": "off", "GOFLAGS": "-mod=mod", "GOTELEMETRY": "off"},
	}
	if w.cfg.StandIn {
		t.env["SIMAGENT_RETRY_SCALE"] = "0.05"
	}
	if len(w.cfg.Agent) > 0 && filepath.IsAbs(w.cfg.Agent[0]) {
		t.binds = append(t.binds, bind{Path: program(w.cfg.Agent[0])})
	}
	return t, nil
}

// program is what a box has to see of an agent's program: a script of Node.js is nothing without its folder.
func program(path string) string {
	if filepath.Ext(path) == ".js" {
		return filepath.Dir(path)
	}
	return path
}

// Cache returns the Go build cache that the demo's boxes share, and gives what is in it to the user that boxes run as.
func Cache() (string, error) {
	dir, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("find the cache folder: %w", err)
	}
	dir = filepath.Join(dir, "errand-demo", "go-build")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", fmt.Errorf("make the build cache: %w", err)
	}
	if err := box.GiveToBoxes(dir); err != nil {
		return "", err
	}
	return filepath.EvalSymlinks(dir)
}

// deleteBoxes ends every box of the demo.
func (w *World) deleteBoxes() error {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	return w.Server.DeleteVMs(ctx, fleet.ReasonOperator)
}

// WriteFixture writes the demo's repository into a folder.
func WriteFixture(dir string) error {
	files, err := fixture()
	if err != nil {
		return err
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			return fmt.Errorf("write the demo's repository: %w", err)
		}
	}
	return nil
}
