package demo

import (
	"cmp"
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

// configText is errand's configuration in the demo: an ordinary file, with short intervals unless production's are
// requested.
const configText = `# Written by errand-demo. Everything that it names is on this machine.
deployment: demo
data: {{yaml .Data}}
listen: 127.0.0.1:0
log: {level: debug}
github:
  app_id: {{.AppID}}
  private_key: {{yaml (printf "file:%s" .KeyFile)}}
{{if .Unreachable}}  webhooks: poll
{{else}}  webhook_secret: {{yaml (printf "file:%s" .SecretFile)}}
{{end}}  client_secret: {{yaml (printf "file:%s" .ClientSecretFile)}}
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
limits: {vm_hours: {{.VMHours}}, vm_creates: 100}
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

// fastTiming returns short intervals for settings that the configuration does not have.
func fastTiming() *server.Timing {
	t := server.DefaultTiming()
	t.StatusGap, t.Settle, t.SleepBefore = 5*time.Second, 0, time.Second
	t.GatherTalk, t.GatherMax = 400*time.Millisecond, 2*time.Second
	t.Backoff, t.Recheck = 500*time.Millisecond, 500*time.Millisecond
	t.JobRetry, t.ProgressEvery, t.ChecksQuiet = 300*time.Millisecond, 300*time.Millisecond, 2*time.Second
	t.PollGap, t.VMTick, t.VMQueue = 150*time.Millisecond, 200*time.Millisecond, 100*time.Millisecond
	t.WritesBurst, t.WritesEvery, t.ObjectsEvery = 200, 5*time.Millisecond, time.Millisecond
	return &t
}

// bind is a host path visible in sandboxes.
type bind struct {
	Path     string
	Writable bool
}

// writeConfig writes the configuration and its secrets.
func (w *World) writeConfig() error {
	secrets := filepath.Join(w.cfg.Dir, "secrets")
	if err := os.MkdirAll(secrets, 0o700); err != nil {
		return fmt.Errorf("create the demo's secrets: %w", err)
	}
	app := w.GitHub.App()
	names := map[string]string{"app.pem": string(app.PEM), "webhook": app.WebhookSecret, "client": app.ClientSecret, "token": AdminToken, "model": ModelKey, "cloud": CloudToken}
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
		"ClientSecretFile": filepath.Join(secrets, "client"), "TokenFile": filepath.Join(secrets, "token"), "ModelKeyFile": filepath.Join(secrets, "model"), "GitHub": w.GitHub.BaseURL(), "Machine": Machine,
		"Adapter": adapter, "Agent": w.cfg.Agent, "ModelName": model, "Env": tools.env, "Model": w.addr, "Anthropic": anthropic, "Kind": w.kind(), "Path": tools.path, "Binds": tools.binds,
		"Cloud": w.cloud, "CloudTokenFile": filepath.Join(secrets, "cloud"), "Paid": w.paid, "VMHours": cmp.Or(w.cfg.VMHours, 100),
		"Unreachable": w.cfg.Unreachable, "Fast": w.cfg.Fast, "Extra": w.cfg.Extra, "AgentMore": indented(w.cfg.AgentMore),
	})
	return errors.Join(err, f.Close())
}

// indented indents lines for a section.
func indented(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		b.WriteString("  " + line)
	}
	return b.String()
}

// inline formats a value as YAML on one line.
func inline(v any) (string, error) {
	out, err := yaml.MarshalWithOptions(v, yaml.Flow(true), yaml.JSON())
	return strings.TrimSpace(string(out)), err
}

// tools are the host paths that the agent needs: its program, Go, and a build cache shared by all sandboxes.
type tools struct {
	path  []string
	binds []bind
	env   map[string]string
}

// tools finds Go. The cache is in the user's cache folder, so that only the first demo has to compile.
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

// program returns the path that must be visible for an agent's program: for a Node.js script its whole folder.
func program(path string) string {
	if filepath.Ext(path) == ".js" {
		return filepath.Dir(path)
	}
	return path
}

// Cache returns the Go build cache shared by the demo's sandboxes, and makes their user its owner.
func Cache() (string, error) {
	dir, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("find the cache folder: %w", err)
	}
	dir = filepath.Join(dir, "errand-demo", "go-build")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", fmt.Errorf("create the build cache: %w", err)
	}
	if err := box.ChownForSandboxes(dir); err != nil {
		return "", err
	}
	return filepath.EvalSymlinks(dir)
}

// deleteBoxes ends every sandbox of the demo.
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
