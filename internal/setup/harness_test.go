package setup_test

import (
	"context"
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/errand-bot/errand/internal/webtest"

	"github.com/errand-bot/errand/internal/config"
	"github.com/errand-bot/errand/internal/gateway"
	"github.com/errand-bot/errand/internal/rsatest"
	"github.com/errand-bot/errand/internal/setup"
	"github.com/errand-bot/errand/internal/setup/setuptest"
	"github.com/errand-bot/errand/internal/sim/simgithub"
	"github.com/errand-bot/errand/internal/sim/simgithub/web"
)

// office is a simulator of GitHub without errand's App, and an operator.
type office struct {
	t      *testing.T
	github *simgithub.Sim
	dir    string
	files  string // folder for secrets and answers
	env    setup.Env
	screen *setuptest.Screen
	// answers are written to a file; nil means none.
	answers map[string]string
	opts    setup.Options
	doctors int // number of doctor's checks
	failed  []string
}

func newOffice(t *testing.T, change ...func(*simgithub.Config)) *office {
	t.Helper()
	cfg := simgithub.Config{Dir: filepath.Join(t.TempDir(), "github"), Key: rsatest.Key(), AppSlug: "another", Pages: web.Handler, Record: t.TempDir()}
	for _, f := range change {
		f(&cfg)
	}
	sim, err := simgithub.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = sim.Close() })
	base, err := sim.Start("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	sim.AddOrg("acme")
	for _, owner := range []string{"acme", "ada"} {
		if _, err := sim.SeedRepo(simgithub.RepoSeed{
			Owner: owner, Name: "shop", Files: map[string]string{"README.md": "x"},
			Collaborators: map[string]simgithub.Role{"ada": simgithub.RoleAdmin, "worker": simgithub.RoleTriage},
		}); err != nil {
			t.Fatal(err)
		}
	}
	o := &office{t: t, github: sim, dir: filepath.Join(t.TempDir(), "errand"), files: t.TempDir(), screen: &setuptest.Screen{}}
	o.write("model", "model-key-for-tests\n")
	o.answers = map[string]string{
		"github": base, "public_url": "http://localhost:1", "listen": "127.0.0.1:1", "model_key": "file:" + o.path("model"), "assignee": "worker",
		"data": o.path("data"),
	}
	who, err := user.Current()
	if err != nil {
		t.Fatal(err)
	}
	o.answers["user"] = who.Username
	o.opts = setup.Options{Dir: o.dir, Listen: "127.0.0.1:0"}
	o.env = setup.Env{
		In: strings.NewReader(""), Out: o.screen, Lookup: func(string) (string, bool) { return "", false }, Now: time.Now,
		Transport: webtest.Transport(), Poll: 10 * time.Millisecond, Wait: 20 * time.Second,
		UnitPath: o.path("errand.service"), Program: "/opt/errand/bin/errand",
		TryModels: func(_ context.Context, cfg config.Config) map[string]error {
			out := map[string]error{}
			for name, m := range cfg.Models {
				if m.Key.Reveal()+m.Subscription.Token.Reveal() != "model-key-for-tests" {
					out[name] = gateway.ErrKeyRefused
				}
			}
			return out
		},
		TryVMs: func(_ context.Context, token string) (string, error) {
			if strings.Contains(token, "wrong") {
				return "Hetzner refuses hetzner.token.", nil
			}
			return "", nil
		},
		Doctor: func(context.Context, string) (string, []string, error) {
			o.doctors++
			return "the report\n", slices.Clone(o.failed), nil
		},
	}
	return o
}

func (o *office) path(name string) string { return filepath.Join(o.files, name) }

func (o *office) write(name, text string) {
	o.t.Helper()
	if err := os.WriteFile(o.path(name), []byte(text), 0o600); err != nil {
		o.t.Fatal(err)
	}
}

// read returns a file of the setup's folder.
func (o *office) read(name string) string {
	o.t.Helper()
	data, err := os.ReadFile(filepath.Join(o.dir, name))
	if err != nil {
		o.t.Fatal(err)
	}
	return string(data)
}

// start runs a setup in the background.
func (o *office) start(ctx context.Context) <-chan error {
	o.t.Helper()
	opts := o.opts
	if o.answers != nil {
		var b strings.Builder
		for key, value := range o.answers {
			if !strings.HasPrefix(value, "'") {
				value = "'" + value + "'"
			}
			b.WriteString(key + ": " + value + "\n")
		}
		o.write("answers.yml", b.String())
		opts.Answers = o.path("answers.yml")
	}
	done, ended := make(chan error, 1), make(chan struct{})
	env := o.env
	go func() {
		defer close(ended)
		done <- setup.Run(ctx, env, opts)
	}()
	o.t.Cleanup(func() { <-ended }) // its files are removed after that
	return done
}

// run runs a setup to its end. A browser creates and installs the App when it is asked to.
func (o *office) run() error {
	o.t.Helper()
	o.screen = &setuptest.Screen{}
	o.env.Out = o.screen
	return o.runUntil(o.t.Context())
}

// runUntil is run, interrupted when ctx ends.
func (o *office) runUntil(ctx context.Context) error {
	o.t.Helper()
	screen := o.screen
	done, ended := o.start(ctx), make(chan error, 1)
	watch, stop := context.WithTimeout(o.t.Context(), time.Minute)
	defer stop()
	go func() {
		ended <- <-done
		stop()
	}()
	setuptest.Play(watch, o.t, screen, "ada", "acme/shop", "ada/shop")
	return <-ended
}

// wantOutput checks parts of the output.
func (o *office) wantOutput(parts ...string) {
	o.t.Helper()
	for _, p := range parts {
		if !strings.Contains(o.screen.String(), p) {
			o.t.Errorf("the output lacks %q:\n%s", p, o.screen)
		}
	}
}

// load loads the configuration.
func (o *office) load() config.Config {
	o.t.Helper()
	cfg, err := config.Load(filepath.Join(o.dir, "config.yml"), func(string) (string, bool) { return "", false })
	if err != nil {
		o.t.Fatal(err)
	}
	return cfg
}
