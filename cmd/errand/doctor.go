package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"path/filepath"
	"time"

	"github.com/rs/zerolog"
	"github.com/spf13/cobra"

	"github.com/errand-bot/errand/internal/cli"
	"github.com/errand-bot/errand/internal/config"
	"github.com/errand-bot/errand/internal/doctor"
	"github.com/errand-bot/errand/internal/selfclient"
	"github.com/errand-bot/errand/internal/server"
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
	c.Flags().BoolVar(&e.fixModes, "fix", false, "revoke other users' access to the data folder and to secret files that errand's user owns, then check")
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

// report makes the checks, in the running errand if there is one. Invalid is why the configuration could not be loaded.
func (e examination) report(ctx context.Context, w cli.World, cfg config.Config, invalid error) (doctor.Report, error) {
	r := doctor.Report{Version: builtFrom().version}
	if err := invalid; err != nil {
		r.Findings = []doctor.Finding{{
			Check: "config", Status: doctor.Failed, Found: err.Error(), Meaning: "errand does not start, so nothing else was checked.",
			Fix: "Correct the lines above in " + e.path + ", or name another file with -c.",
		}}
		if errors.Is(err, fs.ErrPermission) {
			r.Findings[0].Meaning = "This user may not read " + e.path + ", so nothing was checked."
			r.Findings[0].Fix = "Run this as the user that runs errand: `sudo -u errand errand doctor -c " + e.path + "`."
		}
		return r, nil
	}
	served, err := served(ctx, cfg)
	switch {
	case ctx.Err() != nil:
		return r, ctx.Err()
	case err == nil:
		return served, nil
	case errors.Is(err, selfclient.ErrNotRunning):
		return e.stopped(ctx, w, cfg)
	}
	if host := cfg.TLSHost(); host != "" && cfg.Admin.Listen == "" && errors.Is(err, selfclient.ErrNoAnswer) {
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
