package setup_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/errand-bot/errand/internal/agent/programs"
)

// TestProgramIsInstalled checks what the setup installs and configures for the answers about the agent's program.
func TestProgramIsInstalled(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		answers   map[string]string
		err       string
		calls     []string
		binds     bool
		hasScript string
	}{
		"a default":           {answers: map[string]string{}},
		"this host":           {answers: map[string]string{"agent_program": "install"}, calls: []string{"claude"}, binds: true},
		"npm fails":           {answers: map[string]string{"agent_program": "install", "agent": "codex", "model_url": "https://x.example"}, calls: []string{"codex"}, err: "the registry is away"},
		"errand's own agent":  {answers: map[string]string{"agent": "api", "agent_program": "install"}},
		"VMs":                 {answers: map[string]string{"vms": "hetzner", "hetzner_token": "x"}, hasScript: "npm install -g --ignore-scripts @anthropic-ai/claude-code@"},
		"VMs with an image":   {answers: map[string]string{"vms": "hetzner", "hetzner_token": "x", "agent_program": "present"}},
		"VMs with old Node":   {answers: map[string]string{"vms": "hetzner", "hetzner_token": "x", "agent": "gemini", "agent_program": "install"}, err: "too old for the program of gemini"},
		"VMs, Gemini's image": {answers: map[string]string{"vms": "hetzner", "hetzner_token": "x", "agent": "gemini"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := newOffice(t)
			o.opts.Skip = []string{"installation", "webhook", "repositories", "checks", "service"}
			for k, v := range c.answers {
				o.answers[k] = v
			}
			if o.answers["hetzner_token"] != "" {
				o.write("token", strings.Repeat("t", 64))
				o.answers["hetzner_token"] = "file:" + o.path("token")
			}
			var calls []string
			o.env.Install = func(_ context.Context, dir, agent string) error {
				calls = append(calls, agent)
				if dir != filepath.Join(o.dir, "programs") {
					t.Errorf("the program is installed in %s", dir)
				}
				if c.err != "" {
					return errors.New(c.err)
				}
				return os.MkdirAll(programs.Bin(dir), 0o755)
			}
			err := o.run()
			if os.Geteuid() == 0 && len(c.calls) > 0 { // the user of this test runs errand
				if err == nil || !strings.Contains(err.Error(), "if errand runs as root, its sandboxes run as another user") {
					t.Errorf("as root: %v", err)
				}
				return
			}
			if c.err != "" && (err == nil || !strings.Contains(err.Error(), c.err)) || c.err == "" && err != nil {
				t.Fatalf("want the error %q, not %v\n%s", c.err, err, o.screen)
			}
			if diff := cmp.Diff(c.calls, calls); diff != "" {
				t.Errorf("installed programs (-want +got):\n%s", diff)
			}
			if err != nil {
				if _, statErr := os.Stat(filepath.Join(o.dir, "config.yml")); statErr == nil || o.github.App().Owner == "ada" {
					t.Error("the App or the configuration was created although the program is missing")
				}
				return
			}
			cfg := o.load()
			bound := len(cfg.Local.Binds) == 1 && cfg.Local.Binds[0].Path == filepath.Join(o.dir, "programs") && cfg.Local.Path[0] == programs.Bin(cfg.Local.Binds[0].Path)
			if bound != c.binds || !strings.Contains(cfg.Hetzner.Setup, c.hasScript) || c.hasScript == "" && cfg.Hetzner.Setup != "" {
				t.Errorf("binds %v, path %v, script %q", cfg.Local.Binds, cfg.Local.Path, cfg.Hetzner.Setup)
			}
		})
	}
}

// TestProgramInAHomeIsInstalledAgain: sandboxes do not see a home, so a program there is no reason not to install one.
func TestProgramInAHomeIsInstalledAgain(t *testing.T) {
	o := newOffice(t)
	o.write("claude", "#!/bin/sh\n")
	if err := os.Chmod(o.path("claude"), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", filepath.Dir(o.path("claude")))
	o.env.Interactive, o.env.In = true, strings.NewReader(strings.Repeat("\n", 100)) // defaults
	o.opts.Skip = []string{"program", "installation", "webhook", "repositories", "service"}
	if err := o.run(); err != nil {
		t.Error(err)
	}
	o.wantOutput("(you have installed it) [install]: ")
}
