package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/errand-bot/errand/internal/agent/programs"
	"github.com/errand-bot/errand/internal/cli"
	"github.com/errand-bot/errand/internal/config"
	"github.com/errand-bot/errand/internal/doctor"
	"github.com/errand-bot/errand/internal/forge/manifest"
	"github.com/errand-bot/errand/internal/server"
	"github.com/errand-bot/errand/internal/setup"
)

// setting has the flags of setup.
type setting struct {
	setup.Options
	printManifest bool
	manifest      manifest.Options
}

// setupCommand guides through the creation of an installation.
func setupCommand(w cli.World) *cobra.Command {
	var s setting
	c := &cobra.Command{
		Use:   "setup",
		Short: "Create the GitHub App, the secrets and the configuration, and check them",
		Long: "Guide from nothing to a running errand: questions in the terminal (or on a local page with --web, or in a file with --answers), the\n" +
			"GitHub App on a local page, and checks. What exists is kept, so the command can be interrupted and repeated at any time. Questions, as keys of the file:\n\n" + questionList(),
		Args: cli.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			s.Given = map[string]string{}
			for flag, key := range map[string]string{"github": "github", "public-url": "public_url", "name": "app_name"} {
				if f := c.Flags().Lookup(flag); f.Changed {
					s.Given[key] = f.Value.String()
				}
			}
			// A further signal does not terminate the program: GitHub shows the App's private key only once, and setup stores it first.
			ctx, stop := signal.NotifyContext(c.Context(), syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
			defer stop()
			return s.run(ctx, w)
		},
	}
	f := c.Flags()
	f.StringVar(&s.Dir, "dir", setupDir(w), "folder for the configuration and the secrets")
	f.StringVar(&s.Answers, "answers", "", "YAML file with answers, so that nothing is asked; secrets are env:NAME or file:/path")
	f.BoolVar(&s.Web, "web", false, "ask on a local page instead of in the terminal; a browser elsewhere reaches it through SSH")
	f.StringVar(&s.Listen, "listen", "127.0.0.1:0", "address of the local page, on this host only")
	f.BoolVar(&s.Force, "force", false, "replace the configuration, secrets and unit that exist; the old ones are kept beside them")
	f.StringSliceVar(&s.Skip, "skip", nil, "steps to leave out: "+strings.Join(setup.StepNames(), ", "))
	f.BoolVar(&s.printManifest, "print-manifest", false, "print the App's manifest as JSON, and do nothing else")
	f.StringVar(&s.manifest.Name, "name", "errand", "answer to app_name: name of the App")
	f.StringVar(&s.manifest.GitHub, "github", "https://github.com", "answer to github: address of GitHub, or of your Enterprise Server")
	f.StringVar(&s.manifest.PublicURL, "public-url", "", "answer to public_url: errand's address")
	f.StringVar(&s.manifest.RedirectURL, "redirect", "http://127.0.0.1:8099/created",
		"where GitHub sends the browser with the App's code, for --print-manifest")
	return c
}

// questionList lists the questions for --help.
func questionList() string {
	var b strings.Builder
	for _, q := range setup.Questions() {
		fmt.Fprintf(&b, "  %-16s %s\n", q.Key, q.Text)
	}
	return b.String()
}

// setupDir returns the default folder of a setup.
func setupDir(w cli.World) string {
	if os.Geteuid() == 0 {
		return "/etc/errand"
	}
	for _, base := range []struct{ env, below string }{{"XDG_CONFIG_HOME", "errand"}, {"HOME", ".config/errand"}} {
		if dir, ok := w.Lookup(base.env); ok && filepath.IsAbs(dir) {
			return filepath.Join(dir, base.below)
		}
	}
	return "errand"
}

func (s setting) run(ctx context.Context, w cli.World) error {
	if s.printManifest {
		return s.print(ctx, w)
	}
	program, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find the errand program: %w", err)
	}
	return setup.Run(ctx, setup.Env{
		In: w.In, Out: w.Out, Interactive: w.Terminal && s.Answers == "", Lookup: w.Lookup, Now: time.Now, Transport: http.DefaultTransport,
		Poll: 3 * time.Second, Wait: 15 * time.Minute, UnitPath: "/etc/systemd/system/errand.service", Program: program,
		TryModels: server.TryModels, TryVMs: server.TryVMs, Install: programs.Install, Systemctl: findSystemctl(), Doctor: func(ctx context.Context, path string) (string, []string, error) { return examined(ctx, w, path) },
	}, s.Options)
}

// systemctlTimeout is how long systemd may take to start errand.
const systemctlTimeout = 2 * time.Minute

// findSystemctl returns a function that runs systemctl, or nil if this host has none.
func findSystemctl() func(context.Context, ...string) error {
	if _, err := exec.LookPath("systemctl"); err != nil {
		return nil
	}
	return systemctl
}

// systemctl runs systemctl.
func systemctl(ctx context.Context, args ...string) error {
	ctx, cancel := context.WithTimeout(ctx, systemctlTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, "systemctl", args...)
	cmd.WaitDelay = time.Second
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("systemctl %s: %w\n%s", strings.Join(args, " "), err, strings.TrimSpace(string(out)))
	}
	return nil
}

// print prints the manifest. It asks an Enterprise Server for its version, because older ones refuse some events.
func (s setting) print(ctx context.Context, w cli.World) error {
	if err := setup.CheckManifest(s.manifest); err != nil {
		return cli.Usage(err)
	}
	if manifest.IsEnterpriseServer(s.manifest.GitHub) {
		version, err := manifest.ServerVersion(ctx, http.DefaultTransport, config.GitHub{URL: s.manifest.GitHub}.WithURLs().APIURL)
		if errors.Is(err, manifest.ErrNotGitHub) {
			return fmt.Errorf("--github: %w", err)
		}
		if err != nil {
			_, _ = fmt.Fprintf(w.Err, "%v\n", err)
		}
		s.manifest.Version = version
		_, _ = io.WriteString(w.Err, setup.WithoutEvents(s.manifest.GitHub, version))
	}
	e := json.NewEncoder(w.Out)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	return e.Encode(manifest.New(s.manifest))
}

// examined makes the checks of doctor for a setup.
func examined(ctx context.Context, w cli.World, path string) (text string, failed []string, err error) {
	ctx, cancel := context.WithTimeout(ctx, doctorTimeout)
	defer cancel()
	e := examination{path: path}
	cfg, invalid := config.Load(path, w.Lookup)
	report, err := e.report(ctx, w, cfg, invalid)
	if err != nil {
		return "", nil, err
	}
	if errors.Is(ctx.Err(), context.Canceled) {
		return "", nil, ctx.Err()
	}
	for i, f := range report.Findings {
		if f.Check == "github.deliveries" && f.Status == doctor.Failed && !report.Serving {
			report.Findings[i] = doctor.Finding{
				Check: f.Check, Status: doctor.Skipped, Found: "GitHub's webhooks could not arrive while errand was not running; errand fetches them when it starts.",
			}
		}
	}
	report.Clean()
	var b bytes.Buffer
	err = report.Write(&b)
	for _, f := range report.Findings {
		if f.Status == doctor.Failed {
			failed = append(failed, f.Check)
		}
	}
	return b.String(), failed, err
}
