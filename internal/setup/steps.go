package setup

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/errand-bot/errand/internal/config"
	"github.com/errand-bot/errand/internal/forge/manifest"
)

// A step is one part of a setup.
type step struct {
	name  string // for Options.Skip
	title string
	asks  []string          // keys of its questions
	done  func(*run) bool   // nil: never
	needs func(*run) string // what is missing for the step, or ""; nil: it needs nothing
	do    func(*run, context.Context) error
	// skip continues without the step, with what is known already and otherwise with the defaults. It returns what is left to do, or "".
	skip func(*run) (string, error)
}

// steps returns the steps in their order. The questions come first, so that nothing is missing once the App exists.
func steps() []step {
	return []step{
		{
			"address", "How GitHub and people reach errand", []string{"github", "webhooks", "tls", "public_url", "listen", "trusted_proxies", "data"},
			(*run).configured, nil, (*run).askAddress, (*run).skipAddress,
		},
		{"trigger", "How people call errand", []string{"label", "assignee"}, (*run).configured, nil, (*run).askTrigger, leavesNothing},
		{"model", "The model", []string{"agent", "model_url", "model_auth", "model_key"}, (*run).configured, nil, (*run).askModel, (*run).skipModel},
		// The token is the last answer, because it is stored after the form: an interruption before that would lose it.
		{"vms", "Where agents work", []string{"vms", "agent_program", "hetzner_token"}, (*run).configured, nil, (*run).askVMs, (*run).skipVMs},
		{"program", "The agent's program", nil, nil, nil, (*run).installProgram, (*run).skipProgram},
		{
			"app", "The GitHub App", []string{"app", "app_name", "organization", "app_code", "app_id", "private_key", "webhook_secret"},
			(*run).configured, nil, (*run).makeApp, (*run).skipApp,
		},
		{"config", "The configuration", nil, (*run).configured, (*run).missing, (*run).writeConfig, (*run).skipConfig},
		{"installation", "The App's installation", nil, nil, noConfig, (*run).waitForInstallation, (*run).skipInstallation},
		{"repositories", "The label and the machine user", []string{"create_label"}, nil, noConfig, (*run).checkRepositories, (*run).skipRepositories},
		{"service", "The service", []string{"user", "unit"}, nil, noConfig, (*run).prepareService, leavesNothing},
		{"checks", "Checks", nil, nil, noConfig, (*run).check, (*run).skipChecks},
		{"start", "The start of the service", nil, nil, noConfig, (*run).startService, leavesNothing},
		{"webhook", "The webhook", nil, nil, noConfig, (*run).checkWebhook, (*run).skipWebhook},
	}
}

// StepNames returns the names of all steps, for Options.Skip.
func StepNames() (names []string) {
	for _, s := range steps() {
		names = append(names, s.name)
	}
	return names
}

// asksOf returns the keys of the questions of a step.
func asksOf(name string) []string {
	list := steps()
	return list[slices.IndexFunc(list, func(s step) bool { return s.name == name })].asks
}

// isSkipped reports whether a step is left out.
func (r *run) isSkipped(name string) bool { return slices.Contains(r.skip, name) }

// skipsQuestion reports whether the step of a question is left out.
func (r *run) skipsQuestion(key string) bool {
	return slices.ContainsFunc(steps(), func(s step) bool { return slices.Contains(s.asks, key) && r.isSkipped(s.name) })
}

// leaveOut continues without a step.
func (r *run) leaveOut(s step) error {
	r.say("Skipped.\n")
	left, err := s.skip(r)
	if err == nil && left != "" {
		r.left = append(r.left, left)
		r.say("%s\n", left)
	}
	return err
}

func leavesNothing(*run) (string, error) { return "", nil }

// missing names what the configuration needs and does not have, or returns "".
func (r *run) missing() string {
	var list []string
	if !r.hasApp() {
		list = append(list, "the GitHub App (step app)")
	}
	if !questionOf("model_key").kept(r) {
		list = append(list, "the key of a model provider (step model)")
	}
	if q := questionOf("hetzner_token"); q.applies(r) && !q.kept(r) {
		list = append(list, "the token of Hetzner Cloud (step vms)")
	}
	return strings.Join(list, ", ")
}

// Unfinished returns what an interrupted setup in a folder lacks for its configuration, or "" if none was begun there.
func Unfinished(dir string) string {
	r := &run{dir: dir, opts: Options{Dir: dir}}
	p, err := r.readProgress()
	if err != nil || p.App == nil && len(p.Answers) == 0 {
		return "" // running it again says more
	}
	r.progress = p
	if list := r.missing(); list != "" {
		return list
	}
	return "only to be written (step config)"
}

func noConfig(r *run) string {
	if r.loaded {
		return ""
	}
	return "the configuration"
}

func (r *run) skipAddress() (string, error) {
	left := ""
	if r.publicURL() == "" && r.answer("webhooks") == pushed {
		left = "No public address of errand is known, so it reads webhooks from GitHub's log (github.webhooks: poll)."
	}
	return left, r.checkFoldersEarly()
}

// skipModel stores a key that is known without trying it.
func (r *run) skipModel() (string, error) {
	known, err := r.storeUntried(questionOf("model_key"))
	switch {
	case err != nil:
		return "", err
	case known:
		return "The model's key was not tried; `errand doctor` tries it.", nil
	}
	return "There is no key of a model provider, without which errand does not start.", nil
}

// skipVMs stores a token that is known without trying it. Without one, agents work on this host, unless somebody chose VMs: then no configuration
// is written.
func (r *run) skipVMs() (string, error) {
	q := questionOf("hetzner_token")
	if !q.applies(r) {
		return "", nil
	}
	known, err := r.storeUntried(q)
	if err != nil {
		return "", err
	}
	if known {
		return "Hetzner's token was not tried; `errand doctor` tries it.", nil
	}
	r.progress.Answers["vms"] = r.answer("vms") // so that the next setup, and errand doctor, name what is missing
	return "There is no Hetzner Cloud token, so no configuration can be written: set hetzner_token, or set vms to local.", nil
}

// storeUntried stores a secret if it was given, entered or stored before.
func (r *run) storeUntried(q Question) (known bool, err error) {
	_, given := r.given[q.Key]
	if !given && r.held[q.Key] == "" && !q.kept(r) {
		return false, nil
	}
	value, err := r.secret(q)
	if err != nil {
		return false, err
	}
	return true, r.storeAnswer(q, value)
}

func (r *run) skipProgram() (string, error) {
	if !r.installsProgram() {
		return "", nil
	}
	return "Install the agent's program yourself, where sandboxes see it: docs/sandboxes.md.", nil
}

func (r *run) skipApp() (string, error) {
	if app := r.progress.App; app != nil && app.PEM != "" {
		return "", r.storeApp() // an earlier setup was interrupted after the App was created
	}
	if r.hasApp() {
		return "", nil
	}
	return "There is no GitHub App, without which errand does not start. If somebody else creates it, give them the manifest that " +
		"`errand setup --print-manifest` prints; docs/install.md says how to go on.", nil
}

func (r *run) skipConfig() (string, error) {
	return "The configuration was not written, without which errand does not start.", nil
}

func (r *run) skipInstallation() (string, error) {
	if app := r.progress.App; app != nil && app.Slug != "" {
		return "Install the App on your repositories: " + manifest.InstallPage(r.cfg.GitHub.URL, app.Slug), nil
	}
	return "Install the App on your repositories, on its page on GitHub.", nil
}

func (r *run) skipRepositories() (string, error) {
	var list []string
	if label := r.cfg.Trigger.Label; label != "" {
		list = append(list, fmt.Sprintf("create the label %q", label))
	}
	if who := r.cfg.Trigger.Assignee; who != "" {
		list = append(list, fmt.Sprintf("add %s with the triage role", who))
	}
	if len(list) == 0 {
		return "", nil
	}
	return "In each repository, " + strings.Join(list, " and ") + ".", nil
}

func (r *run) skipChecks() (string, error) {
	return fmt.Sprintf("Check everything: `errand doctor -c %s`.", r.configFile()), nil
}

func (r *run) skipWebhook() (string, error) {
	if r.cfg.GitHub.Webhooks == config.WebhooksPoll {
		return "", nil
	}
	return fmt.Sprintf("Prove that webhooks arrive, once errand runs: `errand setup --dir %s`.", r.dir), nil
}

// errRefused means that a provider does not accept a secret, and errUnclear that this could not be found out.
var errRefused, errUnclear = errors.New("refused"), errors.New("not checked")

// A trial is how a secret of a step is tried.
type trial struct {
	secret string                                        // key of its question
	try    func(ctx context.Context, value string) error // its error is for people, and can be of the kind errRefused or errUnclear
	check  string                                        // what to check if the provider cannot be asked
}

// askAndTry asks the questions of a step, tries the secret among them, and stores it. A refused one can be entered again.
func (r *run) askAndTry(ctx context.Context, s string, a trial) error {
	q, keys := questionOf(a.secret), asksOf(s)
	for range maxTries {
		if err := r.askAll(ctx, keys...); err != nil || !q.applies(r) {
			return err
		}
		value, err := r.secret(q)
		if err != nil {
			return err
		}
		err = a.try(ctx, value)
		_, given := r.given[q.Key]
		switch {
		case err == nil:
			r.say("The provider accepts it.\n")
			return r.storeAnswer(q, value)
		case ctx.Err() != nil:
			return ctx.Err()
		case errors.Is(err, errUnclear):
			r.say("Not checked: %v.\n", err)
			return r.storeAnswer(q, value)
		case !errors.Is(err, errRefused):
			return fmt.Errorf("try %s: %w: check %s, and %s. To go on with it untried, %s", q.Key, err, a.check, r.front.again(), r.front.skip(s))
		case given:
			return fmt.Errorf("%w: correct %s", err, q.Key)
		case q.kept(r):
			return fmt.Errorf("%w: write another one to %s, or delete that file and %s", err, r.path(q.file), r.front.again())
		}
		r.refuse(q, err)
		keys = []string{q.Key}
	}
	return fmt.Errorf("no accepted %s was entered", a.secret)
}
