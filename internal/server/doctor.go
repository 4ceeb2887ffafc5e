package server

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"github.com/errand-bot/errand/internal/admin"
	agents "github.com/errand-bot/errand/internal/agent/programs"
	"github.com/errand-bot/errand/internal/config"
	"github.com/errand-bot/errand/internal/doctor"
	"github.com/errand-bot/errand/internal/egress"
	"github.com/errand-bot/errand/internal/fleet"
	"github.com/errand-bot/errand/internal/fleet/local"
	"github.com/errand-bot/errand/internal/forge"
	"github.com/errand-bot/errand/internal/forge/manifest"
	"github.com/errand-bot/errand/internal/gateway"
	"github.com/errand-bot/errand/internal/remote"
	"github.com/errand-bot/errand/state"
	"github.com/errand-bot/errand/state/kv/boltkv"
)

// Doctor checks the installation from within the running server.
func (s *Server) Doctor(ctx context.Context) doctor.Report {
	vms := s.vmsToCheck()
	vms.Alarms = s.fleet.Alarms
	if _, orders := s.provider.(fleet.Market); orders {
		vms.LastRefusal = s.fleet.LastRefusal
	}
	vms.InUse = func(ctx context.Context) (int, error) {
		rows, err := s.store.VMs.List(ctx)
		n := 0
		for _, r := range rows {
			if r.EndedAt.IsZero() {
				n++
			}
		}
		return n, err
	}
	host := hostToCheck(s.cfg)
	if db, ok := s.db.(interface{ Check(context.Context) error }); ok {
		host.Integrity = db.Check
	}
	r := doctor.Report{Version: s.opts.Version, Serving: true, Started: s.started, Findings: s.examine(ctx, host, vms, doctor.PauseCheck(s.pause.List, s.opts.Now), s.restoredCheck, backupCheck(s.backups, true))}
	r.Clean()
	return r
}

// IsServing reports whether an errand runs on the data folder of a configuration. What answers at its address is another program if none does.
// The error is fs.ErrPermission if this user may not look.
func IsServing(cfg config.Config) (bool, error) {
	return boltkv.IsOpen(filepath.Join(cfg.Data, "errand.db"))
}

// DoctorStopped checks the installation while no server runs. It opens the store read-only, and everything else in a temporary
// folder, so that nothing is changed.
func DoctorStopped(ctx context.Context, cfg config.Config, opts Options) (doctor.Report, error) {
	host, backups := hostToCheck(cfg), backupSchedule(cfg, opts.withDefaults())
	file := filepath.Join(cfg.Data, "errand.db")
	if _, err := os.Stat(file); !errors.Is(err, fs.ErrNotExist) {
		host.Integrity = func(ctx context.Context) error {
			err := boltkv.CheckFile(ctx, file)
			if errors.Is(err, boltkv.ErrLocked) {
				return doctor.ErrInUse
			}
			return err
		}
	}
	tmp, err := os.MkdirTemp("", "errand-doctor-")
	if err != nil {
		return unstarted(ctx, opts.Version, host, fmt.Errorf("make a temporary folder: %w", err)), nil
	}
	defer func() { _ = os.RemoveAll(tmp) }()
	cfg.Data = tmp
	s := &Server{cfg: cfg, opts: opts.withDefaults(), metrics: admin.NewMetrics(opts.Version)}
	for _, part := range []func(context.Context) error{s.openStore, s.makeSecrets, s.makeForge, s.makeFleet} {
		if err := part(ctx); err != nil {
			return unstarted(ctx, opts.Version, host, err), s.Close()
		}
	}
	vms := s.vmsToCheck()
	if _, orders := s.provider.(fleet.Market); orders {
		vms.InUse = func(ctx context.Context) (int, error) {
			list, err := s.provider.List(ctx)
			return len(list), err
		}
	}
	r := doctor.Report{Version: opts.Version, Findings: s.examine(ctx, host, vms, backupCheck(backups, false))}
	return r, s.Close()
}

// unstarted returns the report about an errand of which a part could not be made.
func unstarted(ctx context.Context, version string, host doctor.Host, err error) doctor.Report {
	f := doctor.Finding{
		Check: "start", Status: doctor.Failed, Found: err.Error(), Meaning: "errand does not start, so nothing else was checked.", Fix: "Correct this, and run errand doctor again for the other checks.",
	}
	var path *fs.PathError
	switch temporary := errors.As(err, &path) && strings.HasPrefix(path.Path, os.TempDir()); {
	case errors.Is(err, ErrNoRunner):
		f.Fix = "Unpack errand's archive again, or run `make build`: `errand` and its `errand-runner` programs have to be in one folder."
	case temporary && errors.Is(err, fs.ErrNotExist):
		mode := "0700"
		if os.TempDir() == "/tmp" {
			mode = "1777"
		}
		f.Fix = fmt.Sprintf("Create the folder for temporary files, `mkdir -m %s %s`, or set TMPDIR to another one.", mode, remote.Quote(os.TempDir()))
	case temporary:
		f.Fix = fmt.Sprintf("Let this user write to %s and free space there, or set TMPDIR to another folder.", os.TempDir())
	}
	r := doctor.Report{Version: version, Findings: append([]doctor.Finding{f}, doctor.Run(ctx, doctor.HostCheck(host))...)}
	doctor.Sort(r.Findings)
	return r
}

// examine runs the checks that are possible with and without a running server, and more.
func (s *Server) examine(ctx context.Context, host doctor.Host, vms doctor.VMs, more ...doctor.Check) []doctor.Finding {
	g := s.cfg.GitHub.WithURLs()
	checks := []doctor.Check{
		doctor.HostCheck(host),
		doctor.GitHubCheck(s.forge, doctor.GitHubConfig{
			API: g.APIURL, AppID: g.AppID, AppURL: appPages(g.URL), PublicURL: s.cfg.PublicURL, Assignee: s.cfg.Trigger.Assignee, Now: s.opts.Now,
			Events:        func() []string { return manifest.Events(g.URL, s.forge.EnterpriseVersion()) },
			ReadsWebhooks: s.readWebhooks() != 0,
			Stopped:       s.started.IsZero(),
			SignIn: doctor.SignIn{
				On: s.cfg.Admin.SignIn, Secret: g.ClientSecret.Set(), Operators: len(s.cfg.Admin.Accounts()), Teams: s.cfg.Admin.Teams(),
				OrganizationPages: strings.TrimSuffix(g.URL, "/") + "/orgs/",
			},
			Version: s.opts.Version, ReleasesThere: strings.TrimSuffix(g.URL, "/") == publicGitHub,
		}),
		doctor.VMCheck(vms),
		doctor.ModelCheck(s.tryModels),
		doctor.RegistryCheck(s.tryRegistries),
	}
	if s.certs != nil {
		checks = append(checks, s.certs.check())
	}
	if s.cfg.Provider == config.ProviderLocal {
		checks = append(checks, doctor.ProgramCheck(programs(s.cfg)))
	}
	return doctor.Run(forge.WithPurpose(ctx, forge.ForStart), append(checks, more...)...)
}

const publicGitHub = "https://github.com"

// appPages returns the address below which GitHub has the public pages of Apps.
func appPages(web string) string {
	web = strings.TrimSuffix(web, "/")
	if web == publicGitHub {
		return web + "/apps/"
	}
	return web + "/github-apps/"
}

func hostToCheck(cfg config.Config) doctor.Host {
	data := cfg.Data
	if whole, err := filepath.Abs(data); err == nil { // for who reads the report in another folder
		data = whole
	}
	return doctor.Host{Data: data, Secrets: cfg.SecretFiles(), Warnings: cfg.Warnings(), Root: os.Geteuid() == 0}
}

// FixModes revokes other users' access to the data folder and to secret files, as doctor.Host.FixModes does, and returns the
// changes.
func FixModes(cfg config.Config) ([]doctor.Chmod, error) { return hostToCheck(cfg).FixModes() }

func (s *Server) vmsToCheck() doctor.VMs {
	v := doctor.VMs{
		Describe: s.fleet.Describe, Limit: s.cfg.Limits.VMs, Now: s.opts.Now,
		MayBeUnsandboxed: s.cfg.Local.AllowUnsandboxed || s.opts.StandInAgent, InContainer: s.opts.InContainer,
		ChosenPlain: s.cfg.Local.Kind == state.SandboxPlain,
	}
	if p, ok := s.provider.(interface {
		ImageProblem(ctx context.Context) (string, error)
		TokenProblem(ctx context.Context) (string, error)
	}); ok {
		v.ImageProblem, v.TokenProblem, v.API = p.ImageProblem, p.TokenProblem, strings.TrimSuffix(s.cfg.Hetzner.Endpoint, "/")
		if github, err := url.Parse(s.cfg.GitHub.URL); err == nil && github.Port() == "" {
			v.SSHProbe = net.JoinHostPort(github.Hostname(), "22") // it serves git by SSH
		}
	}
	return v
}

// runnerCommand stands for errand-runner in an agent's command.
const runnerCommand = "{runner}"

// programs returns the programs that agents start in sandboxes, apart from errand-runner.
func programs(cfg config.Config) doctor.Programs {
	out := doctor.Programs{Commands: map[string]string{}, Tested: map[string]string{}, Path: cfg.Local.Path}
	for _, name := range agents.Names() {
		out.Tested[name] = agents.Version(name)
	}
	if cfg.Local.Kind != local.KindPlain && !cfg.Local.AllowUnsandboxed {
		out.Visible = []string{"/usr", "/bin", "/sbin"}
		for _, b := range cfg.Local.Binds {
			out.Visible = append(out.Visible, b.Path)
		}
	}
	for adapter := range cfg.Agent.Uses() {
		if command := cfg.Agent.For(adapter).Command; len(command) > 0 && command[0] != runnerCommand {
			out.Commands[adapter] = command[0]
		}
	}
	return out
}

// tryModels asks each provider of models whether it accepts its key, by a request that costs nothing.
func (s *Server) tryModels(ctx context.Context) map[string]error {
	out := map[string]error{}
	for name, up := range s.upstreams {
		out[name] = gateway.CheckKey(ctx, http.DefaultTransport, up)
	}
	return out
}

// tryRegistries asks each private registry with its credential, and returns the results by name.
func (s *Server) tryRegistries(ctx context.Context) map[string]error {
	by := s.opts.Hooks.Internet.Upstream
	if by == nil {
		by = egress.NewUpstream()
	}
	out := map[string]error{}
	for _, r := range s.cfg.Registries.All() {
		out[r.Name] = r.Try(ctx, by)
	}
	return out
}
