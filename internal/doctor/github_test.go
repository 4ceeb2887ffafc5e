package doctor_test

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/errand-bot/errand/handlers"
	"github.com/errand-bot/errand/internal/doctor"
	"github.com/errand-bot/errand/internal/forge"
	"github.com/errand-bot/errand/internal/forge/manifest"
	"github.com/errand-bot/errand/internal/gateway"
	"github.com/errand-bot/errand/state"
)

// hub is a GitHub that answers well, and counts the requests for installations.
type hub struct {
	app        forge.App
	readApp    error
	list       []forge.Installation
	repos      int
	deliveries []forge.Delivery
	calls      int
	skew       error
	insecure   bool                            // the webhook's certificate is not verified
	cannot     func(repo string) (bool, error) // nil: issues of every repository can be assigned
	unread     error                           // of repositories and rate limits
}

func (h *hub) ClockSkew(context.Context) (time.Duration, error) { return 0, h.skew }
func (h *hub) ReadApp(context.Context) (forge.App, error)       { return h.app, h.readApp }
func (h *hub) Webhook(context.Context) (forge.WebhookSettings, error) {
	return forge.WebhookSettings{URL: "https://errand.example.org" + handlers.HookPath, InsecureTLS: h.insecure}, nil
}
func (h *hub) RecentDeliveries(context.Context) ([]forge.Delivery, error)  { return h.deliveries, nil }
func (h *hub) Installations(context.Context) ([]forge.Installation, error) { return h.list, nil }
func (h *hub) InstallationRepos(context.Context, int64) ([]state.Repo, error) {
	h.calls++
	repos := make([]state.Repo, h.repos)
	for i := range repos {
		repos[i] = state.Repo{ID: int64(i + 1), Owner: "acme", Name: fmt.Sprint("r", i), URL: fmt.Sprint("https://github.com/acme/r", i)}
	}
	return repos, h.unread
}
func (h *hub) RateLeft(context.Context, int64) (forge.Rate, error) {
	h.calls++
	return forge.Rate{Limit: 5000, Remaining: 5000}, h.unread
}
func (h *hub) LatestRelease(context.Context, string, string) (string, error) { return "", nil }
func (h *hub) CanBeAssigned(_ context.Context, r forge.Repo, _ string) (bool, error) {
	h.calls++
	if h.cannot == nil {
		return true, nil
	}
	cannot, err := h.cannot(r.Name)
	return !cannot, err
}

func (h *hub) TeamExists(_ context.Context, _ int64, _, team string) (bool, error) {
	h.calls++
	if team == "broken" {
		return false, &forge.Error{Op: "read a team", Reason: "GitHub failed with an internal error (502).", Err: errors.New("502")}
	}
	return team == "ops", nil
}

func (h *hub) check(now time.Time) doctor.Check {
	return doctor.GitHubCheck(h, doctor.GitHubConfig{
		API: "https://api.github.com/", AppID: 7, PublicURL: "https://errand.example.org", Assignee: "worker", Version: "devel", Now: func() time.Time { return now },
	})
}

func granted() map[string]string {
	all := map[string]string{}
	for _, p := range forge.AppPermissions() {
		all[p.Permission] = p.Level
	}
	return all
}

// TestMissingEventsAreThoseOfTheServer: only events that this GitHub knows can be missing.
func TestMissingEventsAreThoseOfTheServer(t *testing.T) {
	t.Parallel()
	sent := slices.DeleteFunc(forge.Events(), func(e string) bool { return e == "sub_issues" || e == "issue_dependencies" })
	for at, want := range map[[2]string]bool{
		{"https://github.com", ""}: true, {"https://ghes.example", ""}: false, {"https://ghes.example", "3.18.9"}: false, {"https://ghes.example", "3.19.0"}: true,
	} {
		h := &hub{app: forge.App{ID: 7, Slug: "errand", Permissions: granted(), Events: sent}}
		found := doctor.GitHubCheck(h, doctor.GitHubConfig{AppID: 7, Events: func() []string { return manifest.Events(at[0], at[1]) }, Version: "devel", Now: time.Now})(t.Context())
		if got := strings.Contains(fmt.Sprint(found), "events are missing"); got != want {
			t.Errorf("%s: got a finding about events: %t, want %t: %v", at, got, want, found)
		}
	}
}

// TestAppCannotBeRead: if the App cannot be read, the finding has a meaning and a fix, for every kind of answer.
func TestAppCannotBeRead(t *testing.T) {
	t.Parallel()
	for name, h := range map[string]*hub{
		"not JSON":    {readApp: errors.New("invalid character '<' looking for beginning of value")},
		"another API": {app: forge.App{}},
		"rate limit":  {readApp: &forge.LimitError{Until: time.Now().Add(time.Hour)}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := findings(t, h.check(time.Now()), "github.app")
			if len(got) != 1 || got[0].Status != doctor.Failed || got[0].Meaning == "" || got[0].Fix == "" {
				t.Errorf("got %+v", got)
			}
		})
	}
}

// TestGitHubIsNotReached: the advice tells a wrong clock, an unknown authority and everything else apart, and nothing else is asked.
func TestGitHubIsNotReached(t *testing.T) {
	t.Parallel()
	for want, err := range map[string]error{
		"timedatectl set-ntp true": x509.CertificateInvalidError{Cert: &x509.Certificate{}, Reason: x509.Expired},
		"update-ca-certificates":   x509.UnknownAuthorityError{},
		"check github.url":         errors.New("no such host"),
	} {
		h := &hub{skew: fmt.Errorf("read GitHub's clock: %w", err), readApp: errors.New("not to be asked")}
		got := doctor.Run(t.Context(), h.check(time.Now()))
		if len(got) != 1 || got[0].Check != "github.reachable" || got[0].Status != doctor.Failed || !strings.Contains(got[0].Fix, want) {
			t.Errorf("%v: got %+v", err, got)
		}
	}
}

// TestManyInstallations: the number of requests and of lines is bounded, and a missing permission is found in any installation.
func TestManyInstallations(t *testing.T) {
	t.Parallel()
	h := &hub{app: forge.App{ID: 7, Permissions: granted(), Events: forge.Events()}, repos: 5000}
	for i := range 1000 {
		h.list = append(h.list, forge.Installation{ID: int64(i + 1), Account: state.Person{Login: fmt.Sprint("a", i)}, Permissions: granted(), Events: forge.Events()})
	}
	h.list[3].Suspended = true
	h.list[700].Permissions["contents"] = "read"
	list := doctor.Run(t.Context(), h.check(time.Now()))
	if h.calls > 100 || len(list) > 100 {
		t.Errorf("got %d requests and %d findings", h.calls, len(list))
	}
	if list[0].Status != doctor.Failed || !strings.Contains(list[0].Found, "on a700") {
		t.Errorf("got first %+v", list[0])
	}
	var rest bool
	for _, f := range list {
		rest = rest || f.Status == doctor.Skipped && strings.Contains(f.Found, "Only the permissions of 979 further installations")
		if strings.Contains(f.Found, " 0 repositories") {
			t.Errorf("got %+v", f)
		}
	}
	if !rest {
		t.Error("nothing says that other installations were not examined")
	}
}

// TestRepositoriesOfAnInstallation: what concerns the repositories, and the webhook, is a finding with advice; what could not be read is no problem.
func TestRepositoriesOfAnInstallation(t *testing.T) {
	t.Parallel()
	fails := errors.New("GitHub fails")
	for name, c := range map[string]struct {
		change     func(*hub)
		check      string
		status     doctor.Status
		found, fix string
	}{
		"in order":    {func(*hub) {}, "github.assignee", doctor.OK, "acme: issues of 7 repositories can be assigned to worker.", ""},
		"one":         {func(h *hub) { h.repos = 1 }, "github.repositories", doctor.OK, "acme: 1 repository.", ""},
		"none":        {func(h *hub) { h.repos = 0 }, "github.repositories", doctor.Warning, "includes no repository that is not archived", "and choose repositories."},
		"not invited": {func(h *hub) { h.cannot = func(string) (bool, error) { return true, nil } }, "github.assignee", doctor.Failed, "acme/r0, acme/r1, acme/r2, acme/r3, acme/r4 and 2 more cannot be assigned to worker", "Open https://github.com/acme/r0/settings/access, invite worker"},
		"not invited to one": {
			func(h *hub) { h.cannot = func(repo string) (bool, error) { return repo == "r3", nil } }, "github.assignee", doctor.Warning, "Issues of acme/r3 cannot be assigned", "https://github.com/acme/r3/settings/access",
		},
		"assignees unread":    {func(h *hub) { h.cannot = func(string) (bool, error) { return false, fails } }, "github.assignee", doctor.Skipped, "could not be checked: GitHub fails", ""},
		"repositories unread": {func(h *hub) { h.unread = fails }, "github.repositories", doctor.Skipped, "could not be checked: GitHub fails", ""},
		"limits unread":       {func(h *hub) { h.unread = fails }, "github.rate", doctor.Skipped, "could not be checked: GitHub fails", ""},
		"insecure webhook":    {func(h *hub) { h.insecure = true }, "github.webhook", doctor.Warning, "does not verify the TLS certificate", "Open "},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := &hub{
				app: forge.App{ID: 7, Permissions: granted(), Events: forge.Events()}, repos: 7,
				list: []forge.Installation{{ID: 1, Account: state.Person{Login: "acme"}, Permissions: granted(), Events: forge.Events()}},
			}
			c.change(h)
			got := findings(t, h.check(time.Now()), c.check)
			i := slices.IndexFunc(got, func(f doctor.Finding) bool { return f.Status == c.status && strings.Contains(f.Found, c.found) })
			if i < 0 || !strings.Contains(got[i].Fix, c.fix) {
				t.Errorf("got %+v", got)
			}
		})
	}
}

// TestUnclearModels: only a provider that answers well is said to accept the key.
func TestUnclearModels(t *testing.T) {
	t.Parallel()
	for status, want := range map[int]doctor.Status{404: doctor.Skipped, 429: doctor.Warning, 500: doctor.Warning} {
		got := findings(t, doctor.ModelCheck(func(context.Context) map[string]error {
			return map[string]error{"a": gateway.UnclearError{Status: status}}
		}), "models.a")
		if len(got) != 1 || got[0].Status != want || !strings.Contains(got[0].Found, fmt.Sprint(status)) || (got[0].Fix == "") != (want == doctor.Skipped) {
			t.Errorf("%d: got %+v", status, got)
		}
	}
}

// TestRedelivered: a webhook counts once, and as delivered if any attempt succeeded.
func TestRedelivered(t *testing.T) {
	t.Parallel()
	now := time.Now()
	at := func(minutes int, guid string, ok bool) forge.Delivery {
		return forge.Delivery{GUID: guid, OK: ok, Status: "timed out", Event: "issues", At: now.Add(-time.Duration(minutes) * time.Minute)}
	}
	h := &hub{app: forge.App{ID: 7}, deliveries: []forge.Delivery{at(1, "b", true), at(5, "b", false), at(6, "b", false), at(7, "a", false), at(9000, "old", false)}}
	got := findings(t, h.check(now), "github.deliveries")
	if len(got) != 1 || got[0].Status != doctor.OK || !strings.Contains(got[0].Found, "1 of the last 2 failed") {
		t.Errorf("got %+v", got)
	}
	h.deliveries = h.deliveries[1:]
	got = findings(t, h.check(now), "github.deliveries")
	if len(got) != 1 || got[0].Status != doctor.Failed || !strings.Contains(got[0].Found, "timed out") || !strings.Contains(got[0].Found, "2 of the last 2 failed") {
		t.Errorf("got %+v", got)
	}
}
