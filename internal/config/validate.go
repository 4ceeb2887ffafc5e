package config

import (
	"encoding/pem"
	"fmt"
	"net"
	"net/url"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/errand-bot/errand/internal/modelapi"
	"github.com/errand-bot/errand/internal/naming"
	"github.com/errand-bot/errand/state"
	"github.com/errand-bot/errand/state/settings"
)

var (
	operator   = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_-]{0,98}(:[1-9][0-9]{0,17})?$`)
	team       = regexp.MustCompile(`^@?([A-Za-z0-9][A-Za-z0-9-]{0,98})(?::([1-9][0-9]{0,17}))?/([A-Za-z0-9_-]{1,100})$`)
	deployment = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,30}[a-z0-9])?$`)
	headerName = regexp.MustCompile(`^[A-Za-z0-9-]{1,64}$`)
	modelName  = regexp.MustCompile(`^[a-z0-9][a-z0-9-]{0,31}$`)
)

// Validate returns all problems, each with its key and correction but without lines. The error is an *Invalid.
func (c Config) Validate() error {
	return invalid(c.problems(), func(string) int { return 0 })
}

// problems returns the problems before their lines are known.
func (c Config) problems() report {
	var r report
	r.unless(deployment.MatchString(c.Deployment), "deployment", "%q: write at most 32 lower-case letters, digits and hyphens", c.Deployment)
	r.unless(c.Data != "", "data", "name a folder, such as /var/lib/errand")
	r.unless(isAddress(c.Listen), "listen", "%q: write HOST:PORT, such as 127.0.0.1:8080", c.Listen)
	r.unless(c.PublicURL == "" || isURL(c.PublicURL), "public_url", "%q is not an http(s) address", c.PublicURL)
	c.proxyProblems(&r)
	c.tlsProblems(&r)
	r.unless(slices.Contains([]string{"debug", "info", "warn", "error"}, c.Log.Level), "log.level", "%q: write debug, info, warn or error", c.Log.Level)
	r.unless(slices.Contains([]string{"json", "console"}, c.Log.Format), "log.format", "%q: write json or console", c.Log.Format)
	r.unless(c.Admin.Token.Set() || c.Admin.Listen != "", "admin.token", "write env:NAME or file:/path, or serve the pages on a separate address with admin.listen")
	r.long("admin.token", c.Admin.Token, c.Admin.Token.Reveal())
	r.unless(c.Admin.Listen == "" || isAddress(c.Admin.Listen), "admin.listen", "%q: write HOST:PORT, such as 127.0.0.1:9090", c.Admin.Listen)
	r.unless(c.Admin.Listen == "" || c.Admin.Listen != c.Listen, "admin.listen", "that is the address of listen; write another one")
	c.signInProblems(&r)
	r.unless(c.Backup.Every >= 10*time.Minute, "backup.every", "write at least 10m: a backup copies the whole store")
	r.unless(c.Backup.Keep > 0, "backup.keep", "write how many backups stay, at least 1")
	r.unless(c.Backup.Folder == "" || filepath.IsAbs(c.Backup.Folder), "backup.folder", "%q: write an absolute path, such as /var/backups/errand", cut(c.Backup.Folder))
	c.GitHub.problems(&r)
	c.modelProblems(&r)
	c.Local.problems(&r)
	c.providerProblems(&r)
	c.Limits.vmProblems(&r)
	c.Egress.problems(&r)
	c.Registries.problems(&r)
	c.Submodules.problems(&r)
	c.TestEnv.problems(&r)
	c.TestFiles.problems(&r)
	for _, text := range c.Bake.Problems() {
		key, text, _ := strings.Cut(text, ": ") // it begins with its key
		r.unless(false, "bake."+key, "%s", text)
	}
	c.limitProblems(&r)
	if err := c.Agent.Validate(); err != nil {
		key, text, _ := strings.Cut(err.Error(), ": ") // it begins with its key
		r.unless(false, key, "%s", text)
	} else {
		c.routeProblems(&r)
	}
	c.Gate.problems(&r)
	c.Repository.problems(&r)
	return r
}

// maxTeams is the maximum number of teams of operators: GitHub is asked about each of them, one after the other.
const maxTeams = 10

// Team is a team of an organization on GitHub.
type Team struct {
	Organization string
	// OrganizationID is 0 if the configuration does not name it.
	OrganizationID int64
	Slug           string
}

// String returns the team as in a mention, without the @.
func (t Team) String() string { return t.Organization + "/" + t.Slug }

// teamOf reads a team: ORG/TEAM or ORG:ID/TEAM, with or without an @.
func teamOf(text string) (Team, bool) {
	m := team.FindStringSubmatch(text)
	if m == nil {
		return Team{}, false
	}
	id, _ := strconv.ParseInt(m[2], 10, 64) // 0 without one
	return Team{Organization: m[1], OrganizationID: id, Slug: m[3]}, true
}

// Teams returns the operators that are teams.
func (a Admin) Teams() (list []Team) {
	for _, o := range a.Operators {
		if t, ok := teamOf(o); ok {
			list = append(list, t)
		}
	}
	return list
}

// Accounts returns the operators that are accounts: LOGIN or LOGIN:ID.
func (a Admin) Accounts() []string {
	return slices.DeleteFunc(slices.Clone(a.Operators), func(o string) bool { _, ok := teamOf(o); return ok })
}

// signInProblems checks that people can sign in with GitHub, if they may.
func (c Config) signInProblems(r *report) {
	listed := map[string]bool{}
	for i, o := range c.Admin.Operators {
		key := fmt.Sprintf("admin.operators[%d]", i)
		what, name := "login", o
		if t, ok := teamOf(o); ok {
			what, name = "team", t.String()
		} else if strings.ContainsAny(o, "/@") {
			r.unless(false, key, "%q: write a team as ORG/TEAM, with the names in its page's address, …/orgs/ORG/teams/TEAM, and a login without @", cut(o))
			continue
		} else {
			r.unless(operator.MatchString(o), key, "%q: write a login on GitHub, LOGIN:ID, or a team as ORG/TEAM", cut(o))
			name, _, _ = strings.Cut(o, ":")
		}
		name = strings.ToLower(name)
		r.unless(!listed[name], key, "%q: this %s is listed twice; keep one entry", cut(o), what)
		listed[name] = true
	}
	r.unless(len(c.Admin.Teams()) <= maxTeams, "admin.operators", "write at most %d teams; the members of child teams are members of their parent", maxTeams)
	r.unless(c.Admin.SignIn || len(c.Admin.Operators) == 0, "admin.operators", "they cannot sign in without admin.sign_in: true")
	if !c.Admin.SignIn {
		return
	}
	r.unless(c.GitHub.ClientSecret.Set(), "github.client_secret", "admin.sign_in needs it: create a client secret on the App's settings page, and write env:NAME or file:/path")
	r.unless(c.Admin.Token.Set(), "admin.token", "admin.sign_in needs a token next to it, for errand's program and for when GitHub is down")
	r.unless(c.Admin.Listen == "", "admin.listen", "people sign in at public_url, so the pages have to be there: remove admin.listen or admin.sign_in")
	r.unless(strings.HasPrefix(strings.ToLower(c.PublicURL), "https://") || isURL(c.PublicURL) && isLoopback(c.PublicURL), "public_url",
		"admin.sign_in needs the address at which people open the pages, with https")
}

func (g GitHub) problems(r *report) {
	r.unless(g.AppID > 0, "github.app_id", "write the App's number from its settings page")
	r.unless(g.PrivateKey.Set(), "github.private_key", "write file:/path/to/app.pem or env:NAME")
	if key := g.PrivateKey.Reveal(); key != "" {
		block, _ := pem.Decode([]byte(key))
		r.unless(block != nil && strings.HasSuffix(block.Type, "PRIVATE KEY"), "github.private_key", "%s does not contain a private key in PEM form; use the .pem file that GitHub generated", g.PrivateKey)
	}
	r.unless(g.Webhooks == WebhooksPush || g.Webhooks == WebhooksPoll, "github.webhooks", "%q: write push or poll", g.Webhooks)
	r.unless(g.WebhookSecret.Set() || g.Webhooks == WebhooksPoll, "github.webhook_secret",
		"write env:NAME or file:/path; without a secret anybody could forge webhooks")
	lines := g.WebhookSecret.Lines()
	for _, line := range lines {
		r.long("github.webhook_secret", g.WebhookSecret, line)
	}
	r.unless(len(lines) <= maxWebhookSecrets, "github.webhook_secret", "%s contains %d lines: write at most %d secrets, one per line, the newest first",
		g.WebhookSecret, len(lines), maxWebhookSecrets)
	r.unless(isURL(g.URL), "github.url", "%q is not an http(s) address", g.URL)
	r.unless(g.APIURL == "" || isURL(g.APIURL), "github.api_url", "%q is not an http(s) address", g.APIURL)
	r.unless(g.GraphQLURL == "" || isURL(g.GraphQLURL), "github.graphql_url", "%q is not an http(s) address", g.GraphQLURL)
}

func (c Config) modelProblems(r *report) {
	for name, m := range c.Models {
		key := "models." + name
		r.unless(modelName.MatchString(name), key, "write a name of at most 32 lower-case letters, digits and hyphens")
		r.unless(m.Header == "" || headerName.MatchString(m.Header), key+".header", "%q: write the name of a header, such as X-Api-Key", m.Header)
		r.unless(isURL(m.URL), key+".url", "%q is not an http(s) address", m.URL)
		if m.Subscription.Set() {
			m.Subscription.problems(r, name, m)
		} else {
			r.unless(m.Key.Set(), key+".key", "write env:NAME or file:/path")
		}
		r.unless(m.API == "" || slices.Contains(modelapi.APIs(), modelapi.API(m.API)), key+".api", "%q: write anthropic, openai or gemini", m.API)
	}
	for name, p := range c.Prices {
		for _, n := range []float64{
			p.Input, p.Output, p.CacheRead, p.CacheWrite,
			p.LongInput, p.LongOutput, p.LongCacheRead, p.LongCacheWrite,
		} {
			r.unless(n >= 0 && n <= 1e6, "prices."+name, "write dollars per million tokens, zero or more")
		}
		r.unless(p.LongPrompt >= 0, "prices."+name+".long_prompt", "write a number of tokens, or 0 if long prompts cost the same")
		r.unless(p.LongPrompt > 0 || p.LongInput+p.LongOutput+p.LongCacheRead+p.LongCacheWrite == 0, "prices."+name+".long_prompt",
			"write the number of tokens above which the prices for long prompts apply")
	}
}

func (l Local) problems(r *report) {
	r.unless(slices.Contains([]string{"auto", state.SandboxBwrap, state.SandboxUserns, state.SandboxPlain}, l.Kind), "local.kind", "%q: write auto, bwrap, userns or plain", l.Kind)
	for i, b := range l.Binds {
		r.unless(filepath.IsAbs(b.Path), fmt.Sprintf("local.binds[%d].path", i), "%q: write a path that begins with /", b.Path)
	}
	for i, p := range l.Path {
		r.unless(filepath.IsAbs(p), fmt.Sprintf("local.path[%d]", i), "%q: write a path that begins with /", p)
	}
	r.unless(l.IdleExit > 0, "local.idle_exit", "must be greater than zero")
}

// limitProblems checks that limits and intervals are within their ranges.
func (c Config) limitProblems(r *report) {
	r.unless(c.Limits.Cost > 0 && c.Limits.Cost <= 1e6, "limits.cost", "write a number of dollars above zero, at most 1000000")
	for key, most := range map[string]float64{
		"limits.cost_per_day":   c.Limits.CostPerDay,
		"limits.cost_per_month": c.Limits.CostPerMonth,
		"limits.cost_per_run":   c.Limits.CostPerRun,
	} {
		r.unless(most >= 0 && most <= 1e6, key, "write a number of dollars, at most 1000000; 0 means no limit")
	}
	for key, most := range map[string]int64{
		"limits.tokens":           c.Limits.Tokens,
		"limits.tokens_per_run":   c.Limits.TokensPerRun,
		"limits.tokens_per_day":   c.Limits.TokensPerDay,
		"limits.tokens_per_month": c.Limits.TokensPerMonth,
	} {
		r.unless(most >= 0, key, "write a number of tokens; 0 means no limit")
	}
	r.unless(c.Limits.Remind < c.Limits.Expire, "limits.remind", "must be shorter than limits.expire")
	r.unless(c.Timing.PollFast <= c.Timing.PollSlow, "timing.poll_fast", "cannot be longer than timing.poll_slow")
	for section, v := range map[string]any{"limits": c.Limits, "timing": c.Timing, "keep": c.Keep} {
		s := reflect.ValueOf(v)
		for i := range s.NumField() {
			name, _ := Key(s.Type().Field(i))
			key := section + "." + name
			switch n := s.Field(i).Interface().(type) {
			case time.Duration:
				r.unless(n > 0 || mayBeZero(key), key, "must be greater than zero")
			case int:
				r.unless(n > 0 || n == 0 && mayBeZero(key), key, "must be greater than zero")
			}
		}
	}
}

// mayBeZero reports whether a key can be set to 0, which turns it off.
func mayBeZero(key string) bool {
	return slices.Contains([]string{"limits.checks", "limits.turns", "timing.gather", "keep.after_end"}, key)
}

func (d Repository) problems(r *report) {
	planProblem(r, "repository.plan", d.Plan)
	publishProblem(r, "repository.publish", d.Publish)
	draftProblem(r, "repository.draft", d.Draft)
	r.unless(slices.Contains([]settings.MergeMode{"", settings.MergeNever, settings.MergeAllowed, settings.MergeWhenApproved}, d.Merge), "repository.merge",
		"%q: write never, allowed or when-approved", cut(string(d.Merge)))
	d.Comments.problems(r, "repository.comments")
	sleepProblem(r, "repository.sleep", d.Sleep)
	templateProblems(r, "repository.", d.Branch, d.Commit, d.Title)
	d.Tools.problems(r, "repository.tools")
	guidanceProblems(r, "repository.guidance", d.Guidance)
}

// minSecret is the minimum length in bytes of secrets that strangers could guess.
const minSecret = 16

// maxWebhookSecrets is the maximum number of secrets that are accepted at once: the hash of each webhook is computed with each.
const maxWebhookSecrets = 2

// long reports a value of a secret that is too short.
func (r *report) long(key string, s Secret, value string) {
	r.unless(value == "" || len(value) >= minSecret, key, "%s contains fewer than %d characters; create one with `openssl rand -hex 32`", s, minSecret)
}

func planProblem(r *report, key string, p settings.PlanMode) {
	r.unless(slices.Contains([]settings.PlanMode{settings.PlanTwoStep, settings.PlanOneStep, settings.PlanNone}, p), key, "%q: write two-step, one-step or none", cut(string(p)))
}

func publishProblem(r *report, key string, m settings.PublishMode) {
	r.unless(slices.Contains([]settings.PublishMode{"", settings.PublishAtOnce, settings.PublishAfterApproval}, m), key, "%q: write at-once or after-approval", cut(string(m)))
}

func draftProblem(r *report, key string, m settings.DraftMode) {
	r.unless(slices.Contains([]settings.DraftMode{"", settings.DraftNever, settings.DraftUntilGreen, settings.DraftAlways}, m), key,
		"%q: write never, until-green or always", cut(string(m)))
}

// templateProblems expands the three templates.
func templateProblems(r *report, prefix, branch, commit, title string) {
	for _, t := range []struct{ key, text string }{{"branch", branch}, {"commit", commit}, {"title", title}} {
		if len(t.text) > 300 {
			r.unless(false, prefix+t.key, "a template has at most 300 characters")
			continue
		}
		r.unless(!strings.ContainsAny(strings.TrimSpace(t.text), "\r\n"), prefix+t.key, "write the template in one line")
		out, err := naming.Expand(t.text, naming.Values{Number: 1, Slug: "x", Task: "x", Key: "K-1"})
		r.fail(prefix+t.key, err)
		r.unless(err != nil || out != "", prefix+t.key, "write a template, such as errand/{number}-{slug}")
	}
}

// isAddress accepts HOST:PORT and :PORT.
func isAddress(s string) bool {
	_, port, err := net.SplitHostPort(s)
	return err == nil && port != ""
}

func isURL(s string) bool {
	u, err := url.Parse(s)
	return err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Host != ""
}

// isLoopback reports whether the host of a URL is this host.
func isLoopback(s string) bool {
	u, err := url.Parse(s)
	if err != nil {
		return false
	}
	ip := net.ParseIP(u.Hostname())
	return u.Hostname() == "localhost" || ip != nil && ip.IsLoopback()
}

// vmProblems checks that every limit on VMs is one.
func (l Limits) vmProblems(r *report) {
	r.unless(l.VMHours > 0, "limits.vm_hours", "must be greater than zero")
	r.unless(l.VMCreates > 0, "limits.vm_creates", "must be greater than zero")
	for key, most := range map[string]float64{"limits.vm_cost_per_day": l.VMCostPerDay, "limits.vm_cost_per_month": l.VMCostPerMonth} {
		r.unless(most >= 0 && most <= 1e6, key, "write an amount, at most 1000000; 0 means no limit")
	}
}
