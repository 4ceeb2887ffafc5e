package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net"
	"net/http"
	"os"
	"os/user"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/rs/zerolog"
	"github.com/spf13/cobra"

	"github.com/errand-bot/errand/internal/cli"
	"github.com/errand-bot/errand/internal/config"
	"github.com/errand-bot/errand/internal/doctor"
	"github.com/errand-bot/errand/internal/remote"
	"github.com/errand-bot/errand/internal/selfclient"
	"github.com/errand-bot/errand/internal/server"
	"github.com/errand-bot/errand/internal/setup"
)

// doctorTimeout bounds all checks; each has its own, shorter timeout.
const doctorTimeout = 3 * time.Minute

// answerTimeout bounds the checks of a running errand, which may first have to finish another report.
const answerTimeout = 100 * time.Second

// examination has the flags of doctor.
type examination struct {
	path     string
	asJSON   bool
	fixModes bool
}

// doctorCommand checks an installation and says how to fix its problems.
func doctorCommand(w cli.World) *cobra.Command {
	var e examination
	c := &cobra.Command{
		Use:   "doctor",
		Short: "Find out what does not work, and how to fix it",
		Long: "Check the GitHub App, its webhook and installations, the VM provider, the models and this host. Each problem is printed with its\n" +
			"meaning and the command or click that fixes it. A running errand makes the checks itself; otherwise this command makes them and\n" +
			"changes nothing. Nothing costs money. The exit code is 1 if a check failed; warnings do not count.",
		Args: cli.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			ctx, stop := cli.UntilSignal(c.Context())
			defer stop()
			ctx, cancel := context.WithTimeout(ctx, doctorTimeout)
			defer cancel()
			return e.run(ctx, w)
		},
	}
	cli.ConfigFlag(c, &e.path)
	c.Flags().BoolVar(&e.asJSON, "json", false, "print JSON")
	c.Flags().BoolVar(&e.fixModes, "fix", false, "correct the modes of the data folder and of secret files that errand's user owns, then check")
	return c
}

func (e examination) run(ctx context.Context, w cli.World) error {
	cfg, invalid := config.Load(e.path, w.Lookup) // once: a secret may come from a pipe
	if e.fixModes && invalid == nil {
		if err := e.fix(w, cfg); err != nil {
			return err
		}
	}
	report, err := e.report(ctx, w, cfg, invalid)
	if err != nil {
		return err
	}
	if errors.Is(ctx.Err(), context.Canceled) { // by Ctrl-C: what was not finished is no problem
		return errors.New("interrupted before all checks were finished")
	}
	e.adapt(w, &report)
	report.Clean()
	if e.asJSON {
		encoder := json.NewEncoder(w.Out)
		encoder.SetIndent("", "  ")
		err = encoder.Encode(report)
	} else {
		err = report.Write(w.Out)
	}
	if n := report.Count(doctor.Failed); err == nil && n > 0 {
		err = fmt.Errorf("failed checks: %d", n)
	}
	return err
}

// ownCommand is a command of errand's in a text, up to its name.
var ownCommand = regexp.MustCompile("`((?:[^`]* )?errand (?:backup|cancel|doctor|reap|restore|resume)\\b)([^`]*)`")

// adapt makes the commands that the report advises those of this installation, so that they can be copied: errand's name their configuration, and a
// container is started by its manager.
func (e examination) adapt(w cli.World, r *doctor.Report) {
	service := strings.NewReplacer()
	if inContainer(w) {
		service = strings.NewReplacer("`systemctl restart errand`", "`docker compose restart errand`", "`systemctl start errand`", "`docker compose start errand`")
	}
	for i := range r.Findings {
		for _, text := range []*string{&r.Findings[i].Found, &r.Findings[i].Fix} {
			*text = ownCommand.ReplaceAllStringFunc(service.Replace(*text), func(command string) string {
				part := ownCommand.FindStringSubmatch(command)
				path, elsewhere := e.path, strings.Contains(part[1], "cd ")
				if path == cli.DefaultConfig && !elsewhere || strings.Contains(part[2], " -c ") {
					return command
				}
				if whole, err := filepath.Abs(path); err == nil && elsewhere {
					path = whole
				}
				return "`" + part[1] + " -c " + remote.Quote(path) + part[2] + "`"
			})
		}
	}
}

// blameSetup names what an unfinished setup lacks for the missing configuration.
func (e examination) blameSetup(w cli.World, f *doctor.Finding) {
	dir := filepath.Dir(e.path)
	if e.path == cli.DefaultConfig && setup.Unfinished(dir) == "" {
		dir = setupDir(w)
	}
	if lacks := setup.Unfinished(dir); lacks != "" {
		f.Found = fmt.Sprintf("The setup in %s has not written a configuration yet. It lacks: %s.", dir, lacks)
		f.Fix = "Continue it: `errand setup --dir " + remote.Quote(dir) + "`. Earlier answers are the defaults."
	}
}

// report makes the checks, in the running errand if there is one. Invalid is why the configuration could not be loaded.
func (e examination) report(ctx context.Context, w cli.World, cfg config.Config, invalid error) (doctor.Report, error) {
	r := doctor.Report{Version: builtFrom().version}
	if err := invalid; err != nil {
		r.Findings = []doctor.Finding{{
			Check: "config", Status: doctor.Failed, Found: err.Error(), Meaning: "errand does not start with it, so nothing else was checked.",
			Fix: "Correct the lines above in " + e.path + ", or name another file with -c.",
		}}
		if errors.Is(err, fs.ErrNotExist) {
			r.Findings[0].Fix = "Run `errand setup`, which writes a configuration, or name another file with -c."
			e.blameSetup(w, &r.Findings[0])
		}
		if errors.Is(err, fs.ErrPermission) {
			r.Findings[0].Meaning = "This user may not read " + e.path + ", so nothing was checked."
			r.Findings[0].Fix = "Run this as the user that runs errand: `sudo -u " + remote.Quote(accountOf(e.path)) + " errand doctor -c " + remote.Quote(e.path) + "`."
		}
		return r, nil
	}
	served, err := served(ctx, cfg)
	switch {
	case ctx.Err() != nil:
		return r, ctx.Err()
	case err == nil:
		e.addChanged(&served, cfg)
		return served, nil
	case errors.Is(err, selfclient.ErrNotRunning):
		r, err := e.stopped(ctx, w, cfg)
		if f := notRunning(cfg); !slices.ContainsFunc(r.Findings, isInUse) {
			r.Findings = append([]doctor.Finding{f}, r.Findings...)
			doctor.Sort(r.Findings)
		}
		return r, err
	}
	if host := cfg.TLSHost(); host != "" && cfg.Admin.Listen == "" && errors.Is(err, selfclient.ErrNoAnswer) {
		if why := server.CertificateFailure(cfg); why != "" {
			err = errors.New(why)
		}
		r, stopped := e.stopped(ctx, w, cfg)
		r.Findings = append(doctor.CertificateCheck(doctor.Certificate{Host: host, Err: err, Now: time.Now})(ctx), r.Findings...)
		return r, stopped
	}
	found := doctor.Finding{
		Check: "serve", Status: doctor.Failed, Found: err.Error(),
		Meaning: "Another program uses this address, or errand runs with another version, another data folder or another admin.token than " + e.path + ".",
		Fix:     "Restart errand: `systemctl restart errand`. If another program uses the address, set listen to another one.",
	}
	if errors.Is(err, errNotOnFolder) && !filepath.IsAbs(cfg.Data) {
		found.Meaning = "The path in data is relative, so errand, if it runs in another directory, has another folder. What answers was not given the admin token, and was not asked."
		found.Fix = "Run this in errand's working directory, or make `data` an absolute path in " + e.path + ". If errand does not run, another program uses the address: set listen to another one."
	}
	r, err = e.stopped(ctx, w, cfg)
	r.Findings = append([]doctor.Finding{found}, r.Findings...)
	return r, err
}

// accountOf returns the user to whom a file belongs, or the nearest folder above it that can be examined, for the argument of a command.
func accountOf(path string) string {
	path, err := filepath.Abs(path)
	if err != nil {
		return "errand"
	}
	for {
		if info, err := os.Stat(path); err == nil {
			if st, ok := info.Sys().(*syscall.Stat_t); ok {
				id := strconv.FormatUint(uint64(st.Uid), 10)
				if who, err := user.LookupId(id); err == nil {
					return who.Username
				}
				return "#" + id
			}
		}
		if path == filepath.Dir(path) {
			return "errand"
		}
		path = filepath.Dir(path)
	}
}

// isInUse reports that an errand process has the store open, although nothing answers at its address.
func isInUse(f doctor.Finding) bool { return f.Check == "host.store" && f.Status == doctor.Failed }

// notRunning returns that errand does not run, and whether it could listen at its address.
func notRunning(cfg config.Config) doctor.Finding {
	f := doctor.Finding{
		Check: "serve", Status: doctor.Warning, Found: "errand does not run.", Meaning: "Nothing happens on GitHub until it runs.", Fix: "Start it: `systemctl start errand`.",
	}
	if _, err := os.Stat(filepath.Join(cfg.Data, "errand.db")); errors.Is(err, fs.ErrNotExist) {
		f.Status, f.Found = doctor.Note, "errand has not run yet."
	}
	for key, address := range map[string]string{"listen": cfg.Listen, "admin.listen": cfg.Admin.Listen} {
		host, port, err := net.SplitHostPort(address)
		if err != nil {
			continue // empty
		}
		ln, err := net.Listen("tcp", net.JoinHostPort(host, "0")) // errand may start just now, and need its port
		if err == nil {
			_ = ln.Close()
		}
		if errors.Is(err, syscall.EADDRNOTAVAIL) {
			f.Status, f.Found, f.Meaning = doctor.Failed, fmt.Sprintf("errand cannot listen at %s: %v", address, err), "errand does not start."
			f.Fix = "Set " + key + " to an address that this host has (`ip address` lists them) or to 127.0.0.1:" + port + ", and start errand."
		}
	}
	return f
}

// addChanged adds to the report of the running errand that files were changed since it started. errand still uses their earlier contents, and
// the rest of the report may be a consequence, so this finding comes first.
func (e examination) addChanged(r *doctor.Report, cfg config.Config) {
	if r.Started.IsZero() {
		return // another version of errand
	}
	files := map[string]string{"": e.path}
	for key, path := range cfg.SecretFiles() {
		if !strings.HasSuffix(key, ".login") { // which errand itself renews
			files[key] = path
		}
	}
	var changed []string
	for _, key := range slices.Sorted(maps.Keys(files)) {
		if info, err := os.Stat(files[key]); err == nil && info.Mode().IsRegular() && info.ModTime().After(r.Started) {
			changed = append(changed, files[key])
		}
	}
	if len(changed) == 0 {
		return
	}
	f := doctor.Finding{
		Check: "config", Status: doctor.Warning, Found: fmt.Sprintf("Changed since errand started: %s.", strings.Join(changed, ", ")),
		Meaning: "errand still uses the earlier content, and so did these checks.", Fix: "Restart errand: `systemctl restart errand`.",
	}
	if r.Count(doctor.Failed) > 0 {
		f.Status = doctor.Failed
	}
	r.Findings = append([]doctor.Finding{f}, r.Findings...)
	doctor.Sort(r.Findings)
}

// errNotOnFolder means that no errand runs on the data folder.
var errNotOnFolder = errors.New("no errand runs on the data folder")

// served returns the report of the running errand. If none runs on the data folder, what answers at its address is another program, which must
// not get the admin token.
func served(ctx context.Context, cfg config.Config) (r doctor.Report, err error) {
	serving, err := server.IsServing(cfg)
	another := err == nil && !serving // a user who may not look into the folder cannot tell
	to := cfg
	if another {
		to.Admin.Token = config.Secret{}
	}
	ctx, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	a, err := selfclient.Ask(ctx, to, http.MethodGet, "/doctor.json")
	if started, _ := server.IsServing(cfg); another && started { // meanwhile: systemd had its socket
		return served(ctx, cfg)
	}
	switch {
	case errors.Is(err, selfclient.ErrNotRunning):
		return r, err
	case another:
		data, err := filepath.Abs(cfg.Data)
		return r, errors.Join(fmt.Errorf("something answers at %s, but %w %s", a.Address, errNotOnFolder, data), err)
	case ctx.Err() != nil:
		return r, fmt.Errorf("errand at %s did not answer within %s", a.Address, answerTimeout)
	case err != nil:
		return r, err
	case a.Status != http.StatusOK:
		return r, a.Unexpected()
	}
	if err := json.Unmarshal(a.Body, &r); err != nil || !r.Serving || len(r.Findings) == 0 {
		return doctor.Report{}, fmt.Errorf("what answers at %s sent no report of errand doctor", a.Address)
	}
	return r, nil
}

// stopped makes the checks without a running errand.
func (e examination) stopped(ctx context.Context, w cli.World, cfg config.Config) (doctor.Report, error) {
	return server.DoctorStopped(ctx, cfg, server.Options{Log: zerolog.Nop(), Version: builtFrom().version, BinDir: w.BinDir, InContainer: inContainer(w)})
}

// fix corrects the modes of errand's own files that other users can access. It looks at the files itself: what answers at errand's
// address may be another program.
func (e examination) fix(w cli.World, cfg config.Config) error {
	done, err := server.FixModes(cfg)
	for _, c := range done {
		if _, err := fmt.Fprintf(w.Err, "fixed: mode %04o for %s\n", c.Mode, c.Path); err != nil {
			return err
		}
	}
	return err
}
