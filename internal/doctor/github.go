package doctor

import (
	"cmp"
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"strings"
	"time"

	"golang.org/x/mod/semver"

	"github.com/errand-bot/errand/handlers"
	"github.com/errand-bot/errand/internal/forge"
	"github.com/errand-bot/errand/internal/words"
	"github.com/errand-bot/errand/state"
)

// GitHub is the part of the client of GitHub that the checks use.
type GitHub interface {
	ClockSkew(ctx context.Context) (time.Duration, error)
	ReadApp(ctx context.Context) (forge.App, error)
	Webhook(ctx context.Context) (forge.WebhookSettings, error)
	RecentDeliveries(ctx context.Context) ([]forge.Delivery, error)
	Installations(ctx context.Context) ([]forge.Installation, error)
	InstallationRepos(ctx context.Context, installation int64) ([]state.Repo, error)
	RateLeft(ctx context.Context, installation int64) (forge.Rate, error)
	LatestRelease(ctx context.Context, owner, name string) (string, error)
	CanBeAssigned(ctx context.Context, r forge.Repo, login string) (bool, error)
	TeamExists(ctx context.Context, installation int64, organization, team string) (bool, error)
}

// GitHubConfig is the part of the configuration that concerns GitHub.
type GitHubConfig struct {
	API    string // the address of the REST API
	AppID  int64
	AppURL string // the page on which people install the App, without its slug and what follows
	// PublicURL is errand's own address for webhooks, without the path; empty if it is not configured.
	PublicURL string
	Assignee  string // trigger.assignee
	// Events returns those that the App has to send; nil: none. It is called after the App was read, when GitHub's version is known.
	Events func() []string
	// ReadsWebhooks is set if errand reads webhooks from GitHub's log, and GitHub cannot send them.
	ReadsWebhooks bool
	// Stopped is set if errand does not run, so that it cannot receive webhooks.
	Stopped bool
	SignIn  SignIn
	// Version is errand's own. It is compared with the latest release if ReleasesThere is set: errand's releases are on github.com.
	Version       string
	ReleasesThere bool
	Now           func() time.Time
}

const (
	maxSkew     = time.Minute      // GitHub refuses the App's credentials beyond it
	noticedSkew = 20 * time.Second // the clock is not synchronized
	maxRepos    = 50               // whose assignees are checked, over all installations
	maxNamed    = 5                // repositories in a sentence
	maxExamined = 20               // installations whose rate limit and repositories are read
)

type githubCheck struct {
	GitHubConfig
	api  GitHub
	app  forge.App
	list []Finding
}

// GitHubCheck checks the clock, the App's credentials, permissions and webhook, and each installation with its rate limit and
// assignee. Without valid credentials it stops there.
func GitHubCheck(api GitHub, cfg GitHubConfig) Check {
	if cfg.Events == nil {
		cfg.Events = func() []string { return nil }
	}
	return func(ctx context.Context) []Finding {
		c := &githubCheck{GitHubConfig: cfg, api: api}
		if c.clock(ctx) && c.credentials(ctx) {
			c.webhook(ctx)
			c.signIn()
			c.deliveries(ctx)
			c.release(ctx)
			c.installations(ctx)
		}
		return c.list
	}
}

func (c *githubCheck) add(f Finding) { c.list = append(c.list, f) }

// unreadable adds that something could not be read from GitHub.
func (c *githubCheck) unreadable(check string, err error) {
	reason, hint := forge.Explain(err)
	c.add(Finding{Check: check, Status: Skipped, Found: fmt.Sprintf("could not be checked: %v", err), Meaning: reason, Fix: hint})
}

func (c *githubCheck) clock(ctx context.Context) bool {
	skew, err := c.api.ClockSkew(ctx)
	if err != nil {
		c.unreached(err)
		return false
	}
	c.add(Finding{Check: "github.reachable", Status: OK, Found: c.API + " answers."})
	f := Finding{Check: "host.clock", Status: OK, Found: "The clock agrees with GitHub's."}
	if skew.Abs() > noticedSkew {
		way := "ahead of"
		if skew < 0 {
			way = "behind"
		}
		f.Status, f.Found = Warning, fmt.Sprintf("The clock is %s %s GitHub's.", skew.Abs(), way)
		f.Meaning, f.Fix = "If it drifts further, GitHub refuses the App's credentials.", "Synchronize the clock: `timedatectl set-ntp true`."
		if skew.Abs() > maxSkew {
			f.Status, f.Meaning = Failed, "GitHub refuses the App's credentials if the clock is wrong by more than a minute."
		}
	}
	c.add(f)
	return true
}

// unreached adds that GitHub could not be reached. Certificates that are not valid now are often due to this host's clock.
func (c *githubCheck) unreached(err error) {
	curl := fmt.Sprintf("`curl -v %s/rate_limit`", strings.TrimSuffix(c.API, "/"))
	f := Finding{
		Check: "github.reachable", Status: Failed, Found: fmt.Sprintf("GitHub could not be reached: %v", err), Meaning: "errand cannot read issues or comment.",
		Fix: "Run " + curl + " on this host, and check github.url, DNS, the firewall and HTTPS_PROXY.",
	}
	var invalid x509.CertificateInvalidError
	var unknown x509.UnknownAuthorityError
	switch {
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		f.Found = fmt.Sprintf("According to this host's clock (%s), GitHub's certificate is not valid: %v", c.Now().UTC().Format("2006-01-02 15:04 MST"), err)
		f.Fix = "If the clock is wrong, synchronize it: `timedatectl set-ntp true`. Otherwise GitHub's certificate has to be renewed."
	case errors.As(err, &unknown):
		f.Found = fmt.Sprintf("This host does not trust GitHub's certificate: %v", err)
		f.Fix = "Install the certificate of its authority on this host (Debian: copy it to /usr/local/share/ca-certificates/NAME.crt and run `update-ca-certificates`), and restart errand. " +
			"If it is not your GitHub's, a proxy intercepts HTTPS: " + curl + " shows whose it is."
	}
	c.add(f)
}

func (c *githubCheck) credentials(ctx context.Context) bool {
	app, err := c.api.ReadApp(ctx)
	if err != nil {
		f := Finding{Check: "github.app", Status: Failed, Found: fmt.Sprintf("The App could not be read: %v", err)}
		reason, hint := forge.Explain(err)
		f.Meaning = reason + " Until errand has read the App, it processes no webhooks."
		f.Fix = cmp.Or(hint, fmt.Sprintf("Run this again in a few minutes. If it stays, check github.url: `curl %s/app` has to print JSON.", strings.TrimSuffix(c.API, "/")))
		if class, _ := forge.Classify(err); class == forge.ClassPermanent {
			f.Found = fmt.Sprintf("GitHub does not accept the App's credentials (github.app_id %d): %v", c.AppID, err)
			f.Meaning, f.Fix = "errand does not start without it.", "Compare the App ID on the App's settings page with github.app_id, create a new private key there, and replace the file of github.private_key with it."
		}
		c.add(f)
		return false
	}
	if app.ID != c.AppID {
		c.add(Finding{
			Check: "github.app", Status: Failed, Found: fmt.Sprintf("%s does not answer like GitHub's API: it named App ID %d instead of %d.", c.API, app.ID, c.AppID),
			Meaning: "errand does not start without the App.", Fix: fmt.Sprintf("Correct github.url: `curl %s/app` has to print JSON of GitHub's.", strings.TrimSuffix(c.API, "/")),
		})
		return false
	}
	c.app = app
	c.add(Finding{Check: "github.app", Status: OK, Found: fmt.Sprintf("%s (@%s), App ID %d.", app.Name, app.Slug, app.ID)})
	own := forge.Installation{Permissions: app.Permissions, Events: app.Events, URL: app.SettingsURL + "/permissions"}
	c.grants("github.permissions", "the App's settings", own)
	return true
}

// grants adds the permissions and events that the App's settings or an installation lack.
func (c *githubCheck) grants(check, where string, in forge.Installation) {
	var required, optional []string
	for _, m := range in.MissingPermissions() {
		text := fmt.Sprintf("%s (%s)", strings.ReplaceAll(m.String(), "`", ""), m.For)
		if m.Required {
			required = append(required, text)
		} else {
			optional = append(optional, text)
		}
	}
	problem := func(s Status, found, meaning string) {
		c.add(Finding{Check: check, Status: s, Found: found, Meaning: meaning, Fix: "Open " + in.URL + ", grant it, and save."})
	}
	events := in.MissingEvents(c.Events())
	if len(required) > 0 {
		problem(Failed, fmt.Sprintf("Required permissions are missing in %s: %s.", where, strings.Join(required, "; ")), "errand starts no agent there.")
	}
	if len(optional) > 0 {
		problem(Warning, fmt.Sprintf("Optional permissions are missing in %s: %s.", where, strings.Join(optional, "; ")), "errand works without them, but sees less.")
	}
	if len(events) > 0 {
		problem(Warning, fmt.Sprintf("Webhook events are missing in %s: %s.", where, strings.Join(events, ", ")), "errand notices such changes in a sweep, up to a quarter of an hour later, or not at all.")
	}
	if len(required)+len(optional)+len(events) == 0 {
		c.add(Finding{Check: check, Status: OK, Found: "All permissions and events: " + where + "."})
	}
}

func (c *githubCheck) webhook(ctx context.Context) {
	const check = "github.webhook"
	hook, err := c.api.Webhook(ctx)
	if err != nil && !errors.Is(err, forge.ErrNotFound) {
		c.unreadable(check, err)
		return
	}
	if c.ReadsWebhooks {
		c.loggedWebhook(hook, err)
		return
	}
	want := ""
	if c.PublicURL != "" {
		want = strings.TrimSuffix(c.PublicURL, "/") + handlers.HookPath
	}
	shown := want
	if shown == "" {
		shown = "https://YOUR.HOST" + handlers.HookPath
	}
	fix := fmt.Sprintf("Open %s, tick “Active” under Webhook, and enter %s with the secret of github.webhook_secret.", c.app.SettingsURL, shown)
	const silent = "Without webhooks, errand notices what people do only in its sweeps, up to a quarter of an hour later."
	switch {
	case err != nil || hook.URL == "":
		c.add(Finding{Check: check, Status: Failed, Found: "The App has no webhook.", Meaning: silent, Fix: fix})
		return
	case want == "":
		c.add(Finding{
			Check: check, Status: Warning, Found: "The App sends webhooks to " + hook.URL + "; public_url is not set, so this could not be compared.",
			Meaning: "Comments also cannot link to the pages of tasks.", Fix: "Set public_url to errand's public address.",
		})
	case hook.URL != want:
		c.add(Finding{Check: check, Status: Failed, Found: fmt.Sprintf("The App sends webhooks to %s, not to %s.", hook.URL, want), Meaning: silent, Fix: fix})
	default:
		c.add(Finding{Check: check, Status: OK, Found: "The App sends webhooks to " + hook.URL + "."})
	}
	if hook.InsecureTLS {
		c.add(Finding{
			Check: check, Status: Warning, Found: "GitHub does not verify the TLS certificate of the webhook's address.",
			Meaning: "Somebody on the way can read webhooks.", Fix: "Open " + c.app.SettingsURL + " and enable SSL verification.",
		})
	}
}

func (c *githubCheck) installations(ctx context.Context) {
	list, err := c.api.Installations(ctx)
	if err != nil {
		c.unreadable("github.installations", err)
		return
	}
	if len(list) == 0 {
		c.add(Finding{
			Check: "github.installations", Status: Failed, Found: "The App is not installed on any account.",
			Meaning: "errand sees no repository.", Fix: "Open " + c.AppURL + c.app.Slug + "/installations/new and choose repositories.",
		})
		return
	}
	left, examined, suspended := maxRepos, 0, 0
	for _, in := range list {
		switch {
		case in.Suspended:
			suspended++
			c.add(Finding{
				Check: "github.installations", Status: Warning, Found: "The installation on " + in.Account.Login + " is suspended.",
				Meaning: "errand does nothing there.", Fix: "Open " + in.URL + " and unsuspend it.",
			})
		case examined < maxExamined && ctx.Err() == nil:
			examined++
			c.grants("github.installations", "the installation on "+in.Account.Login, in)
			c.rate(ctx, in)
			left -= c.repositories(ctx, in, left)
		case len(in.MissingPermissions())+len(in.MissingEvents(c.Events())) > 0:
			c.grants("github.installations", "the installation on "+in.Account.Login, in)
		}
	}
	c.teams(ctx, list)
	c.rerun(list)
	if rest := len(list) - suspended - examined; rest > 0 {
		c.add(Finding{Check: "github.installations", Status: Skipped, Found: fmt.Sprintf("Only the permissions of %s were checked, not rate limits and repositories.", words.Many(rest, "further installation"))})
	}
}

// release compares errand's version with the latest release.
func (c *githubCheck) release(ctx context.Context) {
	f := Finding{Check: "release", Status: Skipped}
	switch {
	case !semver.IsValid(c.Version):
		f.Found = fmt.Sprintf("This is no release (%s), so it was not compared with the latest one.", c.Version)
	case !c.ReleasesThere:
		f.Found = "errand's releases are on github.com, which this installation does not use."
	default:
		latest, err := c.api.LatestRelease(ctx, "errand-bot", "errand")
		switch {
		case err != nil:
			f.Found = fmt.Sprintf("The latest release could not be read: %v", err)
		case semver.Compare(latest, c.Version) > 0:
			f.Status, f.Found = Note, fmt.Sprintf("%s is available; this is %s.", latest, c.Version)
			f.Fix = "Read CHANGELOG.md, replace the programs, and restart errand."
		default:
			f.Status, f.Found = OK, c.Version+" is the latest release."
		}
	}
	c.add(f)
}

func (c *githubCheck) rate(ctx context.Context, in forge.Installation) {
	const check = "github.rate"
	r, err := c.api.RateLeft(ctx, in.ID)
	switch {
	case err != nil:
		c.unreadable(check, err)
	case r.Limit == 0:
		c.add(Finding{Check: check, Status: OK, Found: in.Account.Login + ": GitHub sets no rate limit."})
	case r.Remaining*10 < r.Limit:
		c.add(Finding{
			Check: check, Status: Warning, Found: fmt.Sprintf("%s: %d of %d requests are left until %s.", in.Account.Login, r.Remaining, r.Limit, r.Reset.UTC().Format("15:04 MST")),
			Meaning: "When none are left, errand waits until then.", Fix: "None is needed, unless it happens often: then look for another user of this App's private key.",
		})
	default:
		c.add(Finding{Check: check, Status: OK, Found: fmt.Sprintf("%s: %d of %d requests are left in this hour.", in.Account.Login, r.Remaining, r.Limit)})
	}
}

// repositories checks in at most some repositories of an installation whether the assignee can be assigned, and returns in how many
// it did.
func (c *githubCheck) repositories(ctx context.Context, in forge.Installation, most int) int {
	const check = "github.assignee"
	repos, err := c.api.InstallationRepos(ctx, in.ID)
	if err != nil {
		c.unreadable("github.repositories", err)
		return 0
	}
	if len(repos) == 0 {
		c.add(Finding{
			Check: "github.repositories", Status: Warning, Found: "The installation on " + in.Account.Login + " includes no repository that is not archived.",
			Meaning: "errand has nothing to do there.", Fix: "Open " + in.URL + " and choose repositories.",
		})
		return 0
	}
	c.add(Finding{Check: "github.repositories", Status: OK, Found: fmt.Sprintf("%s: %s.", in.Account.Login, counted(len(repos)))})
	if c.Assignee == "" {
		return 0
	}
	if repos = repos[:min(len(repos), max(most, 0))]; len(repos) == 0 {
		return 0
	}
	var not []state.Repo
	for _, r := range repos {
		ok, err := c.api.CanBeAssigned(ctx, forge.Repo{Installation: in.ID, ID: r.ID, Owner: r.Owner, Name: r.Name}, c.Assignee)
		if err != nil {
			c.unreadable(check, err)
			return len(repos)
		}
		if !ok {
			not = append(not, r)
		}
	}
	if len(not) == 0 {
		c.add(Finding{Check: check, Status: OK, Found: fmt.Sprintf("%s: issues of %s can be assigned to %s.", in.Account.Login, counted(len(repos)), c.Assignee)})
		return len(repos)
	}
	f := Finding{
		Check: check, Status: Warning, Found: fmt.Sprintf("Issues of %s cannot be assigned to %s.", names(not), c.Assignee),
		Meaning: "There, people can call errand only by the label or by a comment.",
		Fix:     fmt.Sprintf("Open %s/settings/access, invite %s with the role Triage, and accept the invitation as %s.", not[0].URL, c.Assignee, c.Assignee),
	}
	if len(not) == len(repos) {
		f.Status = Failed
	}
	c.add(f)
	return len(repos)
}

func counted(repos int) string {
	if repos == 1 {
		return "1 repository"
	}
	return fmt.Sprintf("%d repositories", repos)
}

// names lists repositories in a sentence.
func names(repos []state.Repo) string {
	var list []string
	for _, r := range repos[:min(len(repos), maxNamed)] {
		list = append(list, r.FullName())
	}
	s := strings.Join(list, ", ")
	if n := len(repos) - len(list); n > 0 {
		s += fmt.Sprintf(" and %d more", n)
	}
	return s
}
