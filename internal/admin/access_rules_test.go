package admin_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/errand-bot/errand/internal/admin"
	"github.com/errand-bot/errand/state"
	"github.com/errand-bot/errand/state/store"
	"github.com/errand-bot/errand/state/vm"
)

// rule is what people get at a path of acme/shop, in the order operator, writer, reader, outsider.
type rule struct {
	path string
	want [4]int
}

var (
	everybody = [4]int{200, 200, 200, 200}
	readable  = [4]int{200, 200, 200, 404}
	operated4 = [4]int{200, 404, 404, 404}
)

// rules has every route. A route that is not here fails the test.
var rules = map[string]rule{
	"GET /{$}":                      {"/", [4]int{303, 303, 303, 303}},
	"GET /status":                   {"/status", everybody},
	"GET /status.json":              {"/status.json", everybody},
	"GET /vms":                      {"/vms", everybody},
	"GET /vms.json":                 {"/vms.json", everybody},
	"GET /audit.json":               {"/audit.json", everybody},
	"/":                             {"/nothing", [4]int{404, 404, 404, 404}},
	"GET /metrics":                  {"/metrics", operated4},
	"GET /pause":                    {"/pause", operated4},
	"GET /pause.json":               {"/pause.json", operated4},
	"POST /backup":                  {"/backup", [4]int{409, 404, 404, 404}},
	"POST /pause":                   {"/pause", [4]int{303, 404, 404, 404}},
	"POST /resume":                  {"/resume", [4]int{303, 404, 404, 404}},
	"GET /doctor.json":              {"/doctor.json", operated4},
	"GET /tasks/{owner}/{repo}/{n}": {"/tasks/acme/shop/1", readable},
	"GET /tasks/{owner}/{repo}/{n}/summary.json":           {"/tasks/acme/shop/1/summary.json", readable},
	"GET /tasks/{owner}/{repo}/{n}/task.json":              {"/tasks/acme/shop/1/task.json", readable},
	"GET /tasks/{owner}/{repo}/{n}/runs/{run}":             {"/tasks/acme/shop/1/runs/1", readable},
	"GET /tasks/{owner}/{repo}/{n}/runs/{run}/raw":         {"/tasks/acme/shop/1/runs/1/raw", readable},
	"GET /tasks/{owner}/{repo}/{n}/runs/{run}/at/{offset}": {"/tasks/acme/shop/1/runs/1/at/0", readable},
	"GET /tasks/{owner}/{repo}/{n}/runs/{run}/events":      {"/tasks/acme/shop/1/runs/1/events", readable},
	"GET /tasks/{owner}/{repo}/{n}/changes/{hash}":         {"/tasks/acme/shop/1/changes/abc", [4]int{404, 404, 404, 404}},
	"POST /tasks/{owner}/{repo}/{n}/adopt":                 {"/tasks/acme/shop/1/adopt", operated4},
	"GET /tasks/{owner}/{repo}/{n}/run.json":               {"/tasks/acme/shop/1/run.json", operated4},
	"POST /tasks/{owner}/{repo}/{n}/run":                   {"/tasks/acme/shop/1/run", [4]int{400, 404, 404, 404}}, // without a text
	"GET /tasks/{owner}/{repo}/{n}/actions/destroy":        {"/tasks/acme/shop/1/actions/destroy", operated4},
	"POST /tasks/{owner}/{repo}/{n}/actions/destroy":       {"/tasks/acme/shop/1/actions/destroy", [4]int{303, 404, 404, 404}},
	"GET /tasks/{owner}/{repo}/{n}/actions/purge":          {"/tasks/acme/shop/1/actions/purge", operated4},
	"POST /tasks/{owner}/{repo}/{n}/actions/purge":         {"/tasks/acme/shop/1/actions/purge", [4]int{303, 404, 404, 404}},
	"GET /tasks/{owner}/{repo}/{n}/actions/{action}":       {"/tasks/acme/shop/1/actions/cancel", [4]int{200, 200, 403, 404}},
	"POST /tasks/{owner}/{repo}/{n}/actions/{action}":      {"/tasks/acme/shop/1/actions/stop", [4]int{303, 303, 403, 404}},
}

var roles = [4]string{"olga", "wes", "rita", "otto"}

// TestEveryRouteHasARule asks every route as everybody, and asks for the same page of a task that nobody but the operator can read,
// and of one that does not exist: the answers are the same.
func TestEveryRouteHasARule(t *testing.T) {
	t.Parallel()
	p := newPeopled(t, nil)
	p.vault()
	for _, pattern := range p.pages.Patterns() {
		c, ok := rules[pattern]
		if !ok {
			t.Errorf("%s has no rule here: decide who may see it", pattern)
			continue
		}
		method, _, _ := strings.Cut(pattern, " ")
		if method != http.MethodPost {
			method = http.MethodGet
		}
		for i, person := range roles {
			b := p.as(person)
			status, _ := b.ask(method, c.path)
			if status != c.want[i] {
				t.Errorf("%s %s as %s: status %d, want %d", method, c.path, person, status, c.want[i])
			}
			if i == 0 || !strings.HasPrefix(c.path, "/tasks/") {
				continue
			}
			hidden, text := b.ask(method, strings.Replace(c.path, "/shop/", "/vault/", 1))
			absent, none := b.ask(method, strings.Replace(c.path, "/shop/", "/nowhere/", 1))
			if hidden != http.StatusNotFound || absent != hidden || strings.ReplaceAll(text, "vault", "") != strings.ReplaceAll(none, "nowhere", "") {
				t.Errorf("%s %s as %s: status %d for a hidden task, %d for none:\n%s\n%s", method, c.path, person, hidden, absent, content(text), content(none))
			}
		}
		if status, _ := p.browser().ask(method, c.path); status != http.StatusUnauthorized {
			t.Errorf("%s %s signed out: status %d", method, c.path, status)
		}
	}
	want := []string{"7/1 stop by @Olga (GitHub ID 1), ", "7/1 stop by @wes (GitHub ID 2), wes"}
	if diff := cmp.Diff(want, p.acted); diff != "" {
		t.Errorf("commands (-want +got):\n%s", diff)
	}
}

// ask sends a request, a POST with the form token of the session's pages, and returns the beginning of the answer.
func (b *browser) ask(method, path string) (int, string) {
	b.t.Helper()
	form := url.Values{}
	if method == http.MethodPost {
		form.Set("form", b.formToken())
	}
	resp := b.send(method, path, form, nil)
	text := make([]byte, 20_000)
	n, _ := resp.Body.Read(text) // a live log does not end
	_ = resp.Body.Close()
	return resp.StatusCode, content(string(text[:n]))
}

// formToken returns the form token of a page, empty without a session or a form.
func (b *browser) formToken() string {
	_, text := b.page("/status")
	_, rest, _ := strings.Cut(text, `name="form" value="`)
	form, _, _ := strings.Cut(rest, `"`)
	return form
}

// TestPeopleSeeOnlyTheirRepositories: no page, list or number shows something of acme/vault to people who cannot read it.
func TestPeopleSeeOnlyTheirRepositories(t *testing.T) {
	t.Parallel()
	p := newPeopled(t, nil)
	p.vault()
	pages := []string{"/status", "/status.json", "/status.json?limit=5000", "/vms", "/vms.json", "/audit.json", "/audit.json?task=acme/vault%231", "/tasks/acme/shop/1", "/tasks/acme/shop/1/task.json"}
	for _, person := range roles {
		b := p.as(person)
		all := ""
		for _, path := range pages {
			_, text := b.page(path)
			if all += content(text); person != "olga" && strings.Contains(content(text), "vault") {
				t.Errorf("%s shows %s:\n%s", path, person, content(text))
			}
			if person != "olga" && (strings.Contains(text, "203.0.113.9") || strings.Contains(text, "123.45") || strings.Contains(text, "17171717")) {
				t.Errorf("%s shows %s what is for operators:\n%s", path, person, content(text))
			}
		}
		for part, want := range map[string]bool{
			"The vault is open": person == "olga", "vm-vault": person == "olga", "vm-bake-vault": person == "olga", "vault of old": person == "olga",
			"Prices are rounded twice": person != "otto", "vm-shop": person != "otto", "acme/shop#1": person != "otto",
		} {
			if strings.Contains(all, part) != want {
				t.Errorf("%s sees %q: %v, want %v", person, part, !want, want)
			}
		}
	}
}

// TestNumbersCountOnlyVisibleTasks: the counters of the board are those of the tasks that a person sees.
func TestNumbersCountOnlyVisibleTasks(t *testing.T) {
	t.Parallel()
	m := sample()
	for n := range 40 {
		task := sampleTask(100+n, "vault of the past", state.PhaseDone)
		task.Key.Repo, task.Repo.ID, task.Repo.Name = 8, 8, "vault"
		m.tasks = append(m.tasks, task)
	}
	p := newPeopled(t, func(c *admin.Config) { c.Store = m })
	for person, want := range map[string][]string{
		"olga": {`"phase": "done",` + "\n" + `      "tasks": 41`, `"open": 6`, "vault of the past"},
		"rita": {`"phase": "done",` + "\n" + `      "tasks": 1` + "\n", `"phase": "implementing",` + "\n" + `      "tasks": 1` + "\n", `"open": 6`},
		"otto": {`"phase": "done",` + "\n" + `      "tasks": 0`, `"open": 0`, `"tasks": []`, `"ended": []`},
	} {
		_, text := p.as(person).page("/status.json")
		for _, part := range want {
			if !strings.Contains(text, part) {
				t.Errorf("%s: %q is missing in %s", person, part, text)
			}
		}
		if person != "olga" && strings.Contains(text, "vault") {
			t.Errorf("%s sees the vault: %s", person, text)
		}
	}
}

// TestLimitsAreForOperators: people learn that a task waits for money or a VM, and not what all tasks together cost and may cost.
func TestLimitsAreForOperators(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		wait   state.Waiting
		hidden bool
	}{
		"money": {state.Waiting{Kind: state.WaitMoney, Detail: "today's cap of $43214321 for all tasks together is reached"}, true},
		"VMs":   {state.Waiting{Kind: state.WaitVM, Detail: "43214321 of 43214321 VMs are in use"}, true},
		"limit": {state.Waiting{Kind: state.WaitLimit, Detail: "VMs and images have cost 43214321 EUR today; the limit is 43214321 EUR"}, true},
		"other": {state.Waiting{Kind: state.WaitBlocked, Detail: "blocked by #43214321"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := sample()
			task := m.tasks[0]
			c.wait.Since, c.wait.Until = noon, noon.Add(time.Hour)
			task.Waiting, task.Phase = &c.wait, state.PhaseImplementing
			task.Runs = append(task.Runs, state.Run{ID: "run-x", Seq: 90, Kind: state.RunImplement, State: state.RunEnded, RunVerdict: state.RunVerdict{Status: state.StatusBudget, Message: c.wait.Detail}})
			task.History = append(task.History, state.PhaseChange{Phase: task.Phase, At: noon, Reason: c.wait.Detail})
			p := newPeopled(t, func(cfg *admin.Config) { cfg.Store = m })
			page := fmt.Sprintf("/tasks/acme/shop/%d", task.Key.Issue)
			for _, person := range []string{"olga", "wes", "rita"} {
				b := p.as(person)
				for _, path := range []string{"/status", "/status.json", page, page + "/task.json", page + "/summary.json"} {
					status, text := b.page(path)
					text = content(text)
					kind := strings.HasSuffix(path, ".json") && !strings.HasSuffix(path, "summary.json") && !strings.Contains(text, `"kind": "`+string(c.wait.Kind)+`"`)
					history := name == "VMs" && !strings.HasPrefix(path, "/status") // its reason is not one of history
					if shows := strings.Contains(text, "43214321"); status != http.StatusOK || kind || !history && shows == (c.hidden && person != "olga") {
						t.Errorf("%s shows %s the detail: %v, status %d", path, person, shows, status)
					}
				}
			}
		})
	}
}

// TestInternalErrorsAreForOperators: people learn that a job or a VM failed, and only operators read the error, which may name hosts and
// paths.
func TestInternalErrorsAreForOperators(t *testing.T) {
	t.Parallel()
	const internal = "dial tcp 10.4.3.21:22: i/o timeout"
	m := sample()
	m.jobs[0].LastError = internal
	var vms *vm.Rows
	p := newPeopled(t, func(c *admin.Config) { vms, c.Store = c.Store.(*store.Store).VMs, m })
	key := state.TaskKey{Repo: 7, Issue: 1}
	if _, err := vms.Intend(t.Context(), vm.Intent{Name: "vm-shop", Task: key, Repo: 7, Owner: "7-1", Gen: 1, Provider: "hetzner"}, vm.Caps{}); err != nil {
		t.Fatal(err)
	}
	for _, e := range []vm.Event{{Kind: vm.Made, ID: "4711"}, {Kind: vm.Fail, EndReason: "unusable", Detail: internal}} {
		if _, changed, err := vms.Apply(t.Context(), "vm-shop", e); err != nil || !changed {
			t.Fatalf("%s: changed %v, %v", e.Kind, changed, err)
		}
	}
	for id, result := range map[string]string{"a": "failed: " + internal, "b": "The purge is not complete: " + internal} {
		a := store.Action{ID: id, At: p.now(), By: "token", Task: key, Subject: "acme/shop#1", Command: "purge", Result: result}
		if err := p.store.Audit.Add(t.Context(), a); err != nil {
			t.Fatal(err)
		}
	}
	for _, person := range []string{"olga", "wes", "rita"} {
		b := p.as(person)
		for _, path := range []string{"/tasks/acme/shop/1", "/tasks/acme/shop/1/task.json", "/audit.json", "/vms", "/vms.json"} {
			status, text := b.page(path)
			details, general := strings.Contains(text, "10.4.3.21"), strings.Contains(text, "The operator can see the details.")
			if isOperator := person == "olga"; status != http.StatusOK || details != isOperator || general == isOperator {
				t.Errorf("%s, %s: status %d, shows the error: %v, the general sentence: %v", person, path, status, details, general)
			}
		}
	}
	if m.jobs[0].LastError != internal {
		t.Errorf("the stored error is %q now", m.jobs[0].LastError)
	}
}

// TestErrorsOfCommandsAreForOperators: a command that fails says so to everybody who gave it, and only operators read the error.
func TestErrorsOfCommandsAreForOperators(t *testing.T) {
	t.Parallel()
	const internal = "dial tcp 10.4.3.21:22: i/o timeout"
	for name, failed := range map[string]error{"perhaps carried out": errors.New(internal), "unchanged": admin.UnchangedError{Err: errors.New(internal)}} {
		p := newPeopled(t, func(c *admin.Config) {
			c.Store = sample()
			c.Act = func(context.Context, *state.Task, state.Person, state.Order, store.Action) (store.Action, error) {
				return store.Action{}, failed
			}
		})
		for person, isOperator := range map[string]bool{"olga": true, "wes": false} {
			status, text := p.as(person).ask(http.MethodPost, "/tasks/acme/shop/1/actions/stop")
			if details := strings.Contains(text, internal); status < http.StatusInternalServerError || details != isOperator || !strings.Contains(text, "carried out") {
				t.Errorf("%s, %s: status %d: %s", name, person, status, text)
			}
		}
	}
}
