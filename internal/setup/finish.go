package setup

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/errand-bot/errand/internal/durable"
)

// chooseUser chooses the user that runs errand.
func (r *run) chooseUser(ctx context.Context) error {
	if r.asked {
		return nil
	}
	err := r.askAll(ctx, "user")
	r.asked = err == nil // somebody who leaves the step has chosen nobody
	return err
}

// prepareService prints the systemd units or writes them. It never replaces another unit, unless the setup was started with --force.
func (r *run) prepareService(ctx context.Context) error {
	if err := r.chooseUser(ctx); err != nil {
		return err
	}
	r.chosen = true
	for _, home := range []string{"/home/", "/root/", "/tmp/"} {
		if strings.HasPrefix(r.Program, home) {
			r.say("A service may not be able to start %s: copy errand's programs to a folder such as /opt/errand/bin, and run setup from there.\n", r.Program)
		}
	}
	if err := r.askAll(ctx, "unit"); err != nil {
		return err
	}
	how := r.answer("unit")
	units, err := r.units()
	if err == nil {
		err = r.makeWritable()
	}
	if err != nil {
		return err
	}
	if how == printUnit {
		for _, u := range units {
			r.say("A systemd unit for this installation (%s):\n\n%s\n", u.path, u.text)
		}
		return nil
	}
	if err := r.writeUnits(units); err != nil {
		return err
	}
	if how == writeUnit {
		r.say("Enable them: %s\n", r.enableCommand())
	}
	return nil
}

// unitNames are the names by which systemctl knows the units.
func (r *run) unitNames() (service, socket string) {
	return filepath.Base(r.UnitPath), filepath.Base(r.socketPath())
}

// enableCommand starts errand, now and whenever the host starts.
func (r *run) enableCommand() string {
	service, socket := r.unitNames()
	return fmt.Sprintf("systemctl daemon-reload && systemctl enable --now %s %s", socket, service)
}

// writeUnits writes the systemd units, or none if one of them is another's.
func (r *run) writeUnits(units []unitFile) error {
	var changed []unitFile
	for _, u := range units {
		old, err := os.ReadFile(u.path)
		switch {
		case err == nil && string(old) == u.text:
			r.say("%s is up to date.\n", u.path)
			continue
		case err == nil && !r.opts.Force:
			return fmt.Errorf("%s exists and differs: move it away, replace it with --force, or choose `unit: print`", u.path)
		case err != nil && !errors.Is(err, fs.ErrNotExist):
			return fmt.Errorf("read the systemd unit: %w", err)
		}
		changed = append(changed, u)
	}
	for _, u := range changed {
		if _, err := os.Lstat(u.path); err == nil {
			if err := r.keepOld(u.path, 0o644); err != nil {
				return err
			}
		}
		if err := durable.WriteFile(u.path, []byte(u.text), 0o644); err != nil {
			return fmt.Errorf("%w; run errand setup as root, or choose `unit: print`", err)
		}
		r.rewritten = true
		r.reopened = r.reopened || u.path == r.socketPath()
		r.say("Wrote %s.\n", u.path)
	}
	return nil
}

// startWait is how long a service may take until it answers.
const startWait = time.Minute

// startService has systemd start errand, now and whenever the host starts, and waits until it answers. A running service is restarted
// only for a new unit or configuration. What root does in the folder of the setup ends here.
func (r *run) startService(ctx context.Context) error {
	service, socket := r.unitNames()
	runs := func(ctx context.Context) bool {
		return r.serving(ctx) && r.Systemctl(ctx, "is-active", "--quiet", service) == nil && r.Systemctl(ctx, "is-active", "--quiet", socket) == nil
	}
	switch {
	case r.answer("unit") != startUnit:
		r.say("You start errand yourself.\n")
		return nil
	case !r.rewritten && runs(ctx):
		r.started = true
		r.say("errand is running.\n")
		return nil
	case os.Geteuid() != 0:
		r.say("Only root can start it: sudo sh -c '%s'\n", r.enableCommand())
		return nil
	}
	if err := errors.Join(r.saveProgress(), r.handOver()); err != nil { // otherwise errand cannot read its files
		return err
	}
	r.handed = true
	commands := [][]string{{"daemon-reload"}, {"enable", socket, service}, {"restart", service}} // the service requires the socket
	if r.reopened || !r.serving(ctx) {                                                           // otherwise the socket keeps its old address
		commands = slices.Insert(commands, 2, []string{"stop", service, socket})
	}
	for _, args := range commands {
		if err := r.Systemctl(ctx, args...); err != nil {
			return fmt.Errorf("%w\n%s", err, r.correctService())
		}
	}
	wait, cancel := context.WithTimeout(ctx, startWait)
	defer cancel()
	for !runs(wait) {
		if err := pause(wait, r.Poll); err != nil {
			return errors.Join(ctx.Err(), fmt.Errorf("errand was started, but does not answer at %s\n%s", r.cfg.Listen, r.correctService()))
		}
	}
	r.started = true
	r.say("errand is running, and starts when this host boots.\n")
	return nil
}

// correctService says how to continue after a failed start.
func (r *run) correctService() string {
	service, socket := r.unitNames()
	return fmt.Sprintf("`journalctl -u %[1]s -u %[2]s -n 50` shows the log. Correct the problem, and run `systemctl enable %[2]s %[1]s && systemctl restart %[1]s` as root",
		service, socket)
}

// result says how the setup has ended, and what is left to do.
func (r *run) result(ctx context.Context) (title, text string) {
	title = "The setup is complete"
	switch {
	case !r.loaded:
		title = "The setup is not complete"
		text = fmt.Sprintf("\n%s: there is no configuration, and errand does not start without one.\n", title)
	case r.started || r.serving(ctx):
		text = "\n" + title + ", and errand is running.\n" + r.howToBegin()
	default:
		text = fmt.Sprintf("\n%s. Start errand:\n\n  %s serve -c %s\n", title, r.Program, r.configFile()) + r.howToBegin()
	}
	if len(r.left) > 0 {
		text += "\nLeft out:\n\n- " + strings.Join(r.left, "\n- ") + "\n"
	}
	command := fmt.Sprintf("%s setup --dir %s", r.Program, r.dir)
	if !r.loaded {
		text += fmt.Sprintf("\nTo continue, %s. Earlier answers are the defaults.\n", r.front.repeat(command, true))
	} else if slices.ContainsFunc(steps(), func(s step) bool { return len(s.asks) > 0 && s.done != nil && r.isSkipped(s.name) }) {
		text += fmt.Sprintf("\nTo answer what was skipped, run `%s --force`: earlier answers are the defaults, and the App stays.\n", command)
	}
	return title, text
}

// howToBegin returns how a task begins, and where to watch it.
func (r *run) howToBegin() string {
	how := "mention the App in a comment on an issue"
	if r.cfg.Trigger.Label != "" {
		how = fmt.Sprintf("set the label %q on an issue", r.cfg.Trigger.Label)
	}
	if r.cfg.Trigger.Assignee != "" {
		how = "assign an issue to " + r.cfg.Trigger.Assignee
	}
	address := r.cfg.PublicURL
	if address == "" {
		address = "http://" + r.cfg.Listen
	}
	return fmt.Sprintf("\nTo begin a task, %s. The board is %s/status; log in with the token in %s.\n", how, strings.TrimSuffix(address, "/"), r.path("admin-token"))
}

// check runs the checks of `errand doctor`. Webhooks that did not arrive are no failure here: a later step has one repeated.
func (r *run) check(ctx context.Context) error {
	report, failed, err := r.Doctor(ctx, r.configFile())
	if err != nil {
		return err
	}
	const deliveries = "github.deliveries"
	if slices.Contains(failed, deliveries) && !(slices.Contains(r.skip, "webhook") && r.serving(ctx)) {
		failed = slices.DeleteFunc(failed, func(name string) bool { return name == deliveries })
		r.say("GitHub's webhooks could not be delivered while errand was not running: %s below is expected, and webhooks are checked at the end.\n\n", deliveries)
	}
	r.say("%s", report)
	if slices.Contains(r.skip, "installation") {
		failed = slices.DeleteFunc(failed, func(name string) bool { return name == "github.installations" })
	}
	if len(failed) > 0 {
		return fmt.Errorf("%s failed: correct this as described above, and %s. The configuration and the App are complete",
			strings.Join(failed, ", "), r.front.again())
	}
	return nil
}
