package server_test

import (
	"io"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/errand-bot/errand/internal/config"
	"github.com/errand-bot/errand/internal/forge/oauth"
	"github.com/errand-bot/errand/internal/server"
	"github.com/errand-bot/errand/internal/sim/simgithub"
	"github.com/errand-bot/errand/internal/webtest"
)

// teamPlace is an errand where people sign in with GitHub. Its operators are ada and the team ops of acme, above the team night.
type teamPlace struct {
	*place
	ahead atomic.Int64 // of errand's clock, a time.Duration
}

func newTeamPlace(t *testing.T) *teamPlace {
	t.Helper()
	p := &teamPlace{place: newPlace(t)}
	p.sim.AddOrg("acme")
	_, err := p.sim.SeedRepo(simgithub.RepoSeed{Owner: "acme", Name: "shop", Collaborators: map[string]simgithub.Role{"wes": simgithub.RoleWrite}, Empty: true})
	check(t, err)
	check(t, p.sim.AddTeam("acme", "ops", ""))
	check(t, p.sim.AddTeam("acme", "night", "ops"))
	check(t, p.sim.AddTeam("acme", "sales", ""))
	for login, where := range map[string][2]string{
		"Olga": {"ops", "active"}, "nils": {"night", "active"}, "otto": {"ops", "pending"}, "sal": {"sales", "active"}, "fred": {"ops", "active"}, "wes": {}, "ada": {}, "zoe": {},
	} {
		if p.sim.AddUser(login); where[0] != "" {
			check(t, p.sim.SetTeamMember("acme", where[0], login, where[1]))
		}
	}
	check(t, p.sim.SetTeamMember("acme", "ops", "fred", ""))
	p.grant("read")
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	check(t, err)
	public := "http://" + ln.Addr().String()
	p.sim.SetCallbackURLs(oauth.CallbackURL(public))
	p.config("127.0.0.1:0", "public_url: "+public)
	text, err := os.ReadFile(filepath.Join(p.dir, "config.yml"))
	check(t, err)
	p.write("config.yml", strings.NewReplacer(`"env:HOOK"`, `"env:HOOK", client_secret: "env:CLIENT"`, `"env:TOKEN"`, `"env:TOKEN", sign_in: true, operators: [ada, ACME/ops]`).Replace(string(text)))
	env := map[string]string{"HOOK": secret, "TOKEN": token, "MODEL": "sk-model-81c0aa93", "CLIENT": p.sim.App().ClientSecret}
	cfg, err := config.Load(filepath.Join(p.dir, "config.yml"), func(name string) (string, bool) { v, ok := env[name]; return v, ok })
	check(t, err)
	p.run(cfg, func(o *server.Options) {
		o.Listener, o.Now = ln, func() time.Time { return time.Now().Add(time.Duration(p.ahead.Load())) }
	})
	until(t, "readiness", func() bool { status, _ := p.get("/readyz"); return status == http.StatusOK })
	return p
}

// grant gives the App a permission for the members of acme.
func (p *teamPlace) grant(level string) {
	all := p.sim.App().Permissions
	all["members"] = level
	p.sim.GrantPermissions("acme", all)
}

// browser is that of somebody who has signed in.
type browser struct {
	p      *teamPlace
	client http.Client
}

func (p *teamPlace) signIn(person string) *browser {
	p.t.Helper()
	jar, err := cookiejar.New(nil)
	check(p.t, err)
	b := &browser{p: p, client: http.Client{Transport: webtest.Transport(), Jar: jar, Timeout: time.Minute, CheckRedirect: func(r *http.Request, _ []*http.Request) error {
		if strings.HasPrefix(r.URL.String(), p.sim.BaseURL()) {
			return http.ErrUseLastResponse
		}
		return nil
	}}}
	resp := b.request("/login/github")
	to, err := resp.Location()
	check(p.t, err)
	q := to.Query()
	back, err := p.sim.As(person).Authorize(simgithub.AuthorizeRequest{
		ClientID: q.Get("client_id"), RedirectURI: q.Get("redirect_uri"), State: q.Get("state"), CodeChallenge: q.Get("code_challenge"), Method: q.Get("code_challenge_method"),
	})
	check(p.t, err)
	u, err := url.Parse(back)
	check(p.t, err)
	if resp := b.request(u.RequestURI()); resp.StatusCode != http.StatusOK || resp.Request.URL.Path != "/status" {
		p.t.Fatalf("sign-in of %s: %d at %s", person, resp.StatusCode, resp.Request.URL)
	}
	return b
}

func (b *browser) request(path string) *http.Response {
	b.p.t.Helper()
	req, err := http.NewRequestWithContext(b.p.t.Context(), http.MethodGet, b.p.url+path, nil)
	check(b.p.t, err)
	req.Header.Set("Accept", "text/html")
	resp, err := b.client.Do(req)
	check(b.p.t, err)
	b.p.t.Cleanup(func() { _ = resp.Body.Close() })
	return resp
}

func (b *browser) isOperator() bool {
	b.p.t.Helper()
	return b.request("/metrics").StatusCode == http.StatusOK
}

// says returns the board as the person sees it.
func (b *browser) says() string {
	b.p.t.Helper()
	text, err := io.ReadAll(b.request("/status").Body)
	check(b.p.t, err)
	return string(text)
}

// TestTeamsOfOperators: who is an active member of a listed team, or of a team below it, is an operator, as long as GitHub says so. Without an
// answer of GitHub nobody is, and the page says why without naming the team.
func TestTeamsOfOperators(t *testing.T) {
	t.Parallel()
	p := newTeamPlace(t)
	people := map[string]*browser{}
	members := map[string]bool{"ada": true, "Olga": true, "nils": true}
	check := func(when string, want map[string]bool, words string) {
		t.Helper()
		for person, b := range people {
			if got := b.isOperator(); got != want[person] {
				t.Errorf("%s: %s is an operator: %t", when, person, got)
			}
			text := b.says()
			if told := strings.Contains(text, "could not check whether you are in a team"); told != (words != "" && !want[person] && members[person]) || told && !strings.Contains(text, words) {
				t.Errorf("%s: %s reads a reason: %t, want %q:\n%s", when, person, told, words, text)
			}
			if !want[person] && strings.Contains(text, "ops") {
				t.Errorf("%s: %s reads the name of the team", when, person)
			}
		}
	}
	wait := func(d time.Duration) { p.ahead.Add(int64(d)) }
	for _, person := range []string{"ada", "Olga", "nils", "otto", "sal", "fred", "wes", "zoe"} {
		people[person] = p.signIn(person)
	}
	check("at first", members, "")
	set := func(team, login, state string) {
		if err := p.sim.SetTeamMember("acme", team, login, state); err != nil {
			t.Fatal(err)
		}
	}
	set("ops", "Olga", "")
	set("ops", "otto", "active")
	wait(5 * time.Minute)
	people["otto"] = p.signIn("otto") // who has accepted the invitation signs in again
	members = map[string]bool{"ada": true, "nils": true, "otto": true}
	check("five minutes after a change", members, "")
	p.fault(simgithub.Fault{Path: "/memberships/", Status: http.StatusInternalServerError, Body: "{}"})
	check("at once after GitHub fails", members, "")
	wait(5 * time.Minute)
	check("while GitHub fails", map[string]bool{"ada": true}, "GitHub failed with an internal error (500).")
	p.sim.ClearFaults()
	wait(time.Minute)
	check("after it has failed", members, "")
	p.grant("none")
	wait(5 * time.Minute)
	check("without the permission", map[string]bool{"ada": true}, "The App lacks the permission")
	p.server.Doctor(t.Context()) // reads the installations
	if status, text := p.get("/status.json"); status != http.StatusOK || !strings.Contains(text, `"permission": "members"`) {
		t.Errorf("the board names no missing permission: %d", status)
	}
	p.grant("read")
	wait(time.Minute)
	check("with the permission again", members, "")
	p.sim.Suspend("acme", true)
	wait(6 * time.Minute)
	check("while the installation is suspended", map[string]bool{"ada": true}, "suspended")
}

func (p *teamPlace) fault(f simgithub.Fault) {
	p.t.Helper()
	check(p.t, p.sim.Fault(f))
}
