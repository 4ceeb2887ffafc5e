package setup

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/errand-bot/errand/internal/config"
	"github.com/errand-bot/errand/internal/forge"
	"github.com/errand-bot/errand/internal/forge/manifest"
	"github.com/errand-bot/errand/internal/selfclient"
)

const (
	githubTimeout  = time.Minute      // of each step that only asks GitHub
	deliveryWait   = 30 * time.Second // for a redelivered webhook
	maxRepos       = 50               // whose label and assignee are checked
	labelPurpose   = "errand works on issues with this label"
	maxAnswerWaits = 100000 // polls, a bound that is never reached before the time is over
)

// installed is a repository with the App.
type installed struct{ forge.Repo }

// client returns a client of GitHub with the configured App.
func (r *run) client() (*forge.Forge, error) {
	return r.forge(r.cfg.GitHub, []byte(r.cfg.GitHub.PrivateKey.Reveal()))
}

// waitForInstallation waits until the App is installed on an account.
func (r *run) waitForInstallation(ctx context.Context) error {
	f, err := r.client()
	if err != nil {
		return err
	}
	wait, cancel := context.WithTimeout(ctx, r.Wait)
	defer cancel()
	for n := range maxAnswerWaits {
		list, err := f.Installations(wait)
		if err != nil && wait.Err() == nil {
			return err
		}
		if err == nil && len(list) > 0 {
			for _, in := range list {
				r.say("The App is installed on %s.\n", in.Account.Login)
			}
			return nil
		}
		if n == 0 {
			if err := r.askForInstallation(ctx, f); err != nil {
				return err
			}
		}
		if err := pause(wait, r.Poll); err != nil {
			break
		}
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return fmt.Errorf("the App is not installed on any account. Install it and %s, or %s", r.front.again(), r.front.skip("installation"))
}

// askForInstallation prints where to install the App. The read has its own time limit, because a wait that ends meanwhile is no failure.
func (r *run) askForInstallation(ctx context.Context, f *forge.Forge) error {
	read, cancel := context.WithTimeout(ctx, githubTimeout)
	defer cancel()
	app, err := f.ReadApp(read)
	if err != nil {
		return err
	}
	r.say("Install the App on your repositories (waiting up to %s):\n\n  %s\n\n", config.FormatDuration(r.Wait),
		manifest.InstallPage(r.cfg.GitHub.URL, app.Slug))
	return nil
}

// pause waits for a time, or until ctx ends.
func pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// checkWebhook proves that GitHub's webhooks arrive, by having GitHub deliver one again. errand has to be running for that.
func (r *run) checkWebhook(ctx context.Context) error {
	if r.cfg.GitHub.Webhooks == config.WebhooksPoll {
		r.say("errand reads webhooks from GitHub's log (github.webhooks: poll), so GitHub need not reach it.\n")
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, githubTimeout)
	defer cancel()
	f, err := r.client()
	if err != nil {
		return err
	}
	list, err := f.RecentDeliveries(ctx)
	if err != nil {
		return err
	}
	if len(list) > 0 && list[0].OK {
		r.say("GitHub's latest webhook (%s) arrived at %s.\n", list[0].Event, list[0].At.UTC().Format("2006-01-02 15:04 MST"))
		return nil
	}
	if !r.serving(ctx) {
		how, err := r.howToRepeat()
		if err != nil {
			return err
		}
		r.say("errand is not running yet, so no webhook can arrive. Start it as shown below. To prove then that webhooks arrive, %s.\n"+
			"This has GitHub repeat one.\n", how)
		return nil
	}
	var ping *forge.Delivery
	for i := range list {
		if ping == nil || list[i].Event == "ping" && ping.Event != "ping" {
			ping = &list[i]
		}
	}
	if ping == nil {
		r.say("GitHub has sent no webhook yet. Comment on an issue of a repository with the App, and run `errand doctor`.\n")
		return nil
	}
	wait, cancel := context.WithTimeout(ctx, deliveryWait)
	defer cancel()
	got, err := f.Repeat(wait, *ping, r.Poll)
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.Is(err, forge.ErrNotRepeated):
		return fmt.Errorf("GitHub did not repeat the webhook within %s; %s, or %s", deliveryWait, r.front.again(), r.front.skip("webhook"))
	case err != nil:
		return err
	case !got.OK:
		return fmt.Errorf("GitHub repeated the webhook %q, but it failed: %s (status %d). `errand doctor -c %s` says how to correct this",
			got.Event, got.Status, got.StatusCode, r.configFile())
	}
	r.say("GitHub repeated the webhook %q, and it arrived.\n", got.Event)
	return nil
}

// howToRepeat says how to run the complete setup again, as the user that its files belong to then.
func (r *run) howToRepeat() (string, error) {
	command := fmt.Sprintf("%s setup --dir %s", r.Program, r.dir)
	who, err := r.newOwner()
	if err != nil {
		return "", err
	}
	if who != nil {
		command = "sudo -u " + who.Username + " " + command
	}
	return r.front.repeat(command, who == nil), nil
}

// serving reports whether errand answers at its address.
func (r *run) serving(ctx context.Context) bool { return selfclient.Answers(ctx, r.cfg, r.cfg.Listen) }

// checkRepositories creates the label where it is missing, and checks that issues can be assigned to the machine user.
func (r *run) checkRepositories(ctx context.Context) error {
	label, assignee := r.cfg.Trigger.Label, r.cfg.Trigger.Assignee
	if label == "" && assignee == "" {
		r.say("Tasks are started by mentioning the App in a comment.\n")
		return nil
	}
	create := "no"
	if label != "" {
		if err := r.askAll(ctx, "create_label"); err != nil {
			return err
		}
		create = r.answer("create_label")
	}
	ctx, cancel := context.WithTimeout(ctx, githubTimeout)
	defer cancel()
	f, err := r.client()
	if err != nil {
		return err
	}
	repos, err := r.repositories(ctx, f)
	if err != nil {
		return err
	}
	for _, repo := range repos {
		if label != "" {
			if err := r.label(ctx, f, repo.Repo, label, create == "yes"); err != nil {
				return err
			}
		}
		if assignee == "" {
			continue
		}
		ok, err := f.CanBeAssigned(ctx, repo.Repo, assignee)
		switch {
		case err != nil:
			return err
		case ok:
			r.say("%s: issues can be assigned to %s.\n", repo.FullName(), assignee)
		default:
			r.say("%s: issues cannot be assigned to %s. If the account does not exist, create an ordinary account for it. Add it with the\n"+
				"triage role at %s/%s/settings/access, and accept the invitation as that account.\n",
				repo.FullName(), assignee, r.cfg.GitHub.URL, repo.FullName())
		}
	}
	return nil
}

// repositories returns the repositories with the App, at most maxRepos.
func (r *run) repositories(ctx context.Context, f *forge.Forge) ([]installed, error) {
	list, err := f.Installations(ctx)
	if err != nil {
		return nil, err
	}
	var out []installed
	for _, in := range list {
		if in.Suspended || len(out) >= maxRepos {
			continue
		}
		repos, err := f.InstallationRepos(ctx, in.ID)
		if err != nil {
			return nil, err
		}
		for _, one := range repos {
			out = append(out, installed{forge.Repo{Installation: in.ID, ID: one.ID, Owner: one.Owner, Name: one.Name}})
		}
	}
	if len(out) > maxRepos {
		r.say("Only the first %d of %d repositories are checked.\n", maxRepos, len(out))
		out = out[:maxRepos]
	}
	if len(out) == 0 {
		r.say("The App is installed on no repository yet.\n")
	}
	return out, nil
}

// label creates a label in a repository that lacks it, or says that it is missing.
func (r *run) label(ctx context.Context, f *forge.Forge, repo forge.Repo, name string, create bool) error {
	has, err := f.HasLabel(ctx, repo, name)
	switch {
	case err != nil:
		return err
	case has:
		r.say("%s: has the label %q.\n", repo.FullName(), name)
		return nil
	case !create:
		r.say("%s: lacks the label %q; create it at %s/%s/labels.\n", repo.FullName(), name, r.cfg.GitHub.URL, repo.FullName())
		return nil
	}
	if err := f.CreateLabel(ctx, repo, name, labelPurpose); err != nil {
		return err
	}
	r.say("%s: created the label %q.\n", repo.FullName(), name)
	return nil
}
