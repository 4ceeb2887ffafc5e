package realcli

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/errand-bot/errand/internal/demo"
	"github.com/errand-bot/errand/internal/heavytest"
	"github.com/errand-bot/errand/internal/modelapi"
	"github.com/errand-bot/errand/internal/sim/simgithub"
	"github.com/errand-bot/errand/internal/sim/simmodel"
	"github.com/errand-bot/errand/state"
)

// real is an agent program and the form of its requests.
type real struct {
	adapter, model string
	userAgent      string // beginning, with the version
	key            string // the header with the gateway's key
}

// programs are the agent programs by name.
func programs() map[string]real {
	return map[string]real{
		"claude": {adapter: "claude", model: "claude-sonnet-5", userAgent: "claude-cli/2.1.330 ", key: "X-Api-Key: " + demo.ModelKey},
		"codex":  {adapter: "codex", model: "gpt-5.5", userAgent: "codex_exec/0.169.0 ", key: "Authorization: Bearer " + demo.ModelKey},
	}
}

// TestHeavyLife plays the demo's complete life with real programs: two plans, one of them revised, real edits and
// commits, a pull request, a suspension that archives work and session and deletes the VM, a review that is answered in
// the same session on another VM, the merge, and the end.
func TestHeavyLife(t *testing.T) {
	t.Parallel()
	heavytest.Mark(t)
	for name, p := range programs() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := startLife(t, program(t, name), "life.yaml", func(c *demo.Config) {
				c.Adapter, c.Model, c.Provider = p.adapter, p.model, demo.ProviderHetzner
			})
			res := l.play()
			task := l.task(res.Issue)
			t.Run("no network", func(t *testing.T) { l.wantNoNetwork(t) })
			t.Run("through the gateway", func(t *testing.T) { l.wantGateway(t, p) })
			t.Run("money", func(t *testing.T) { l.wantMoney(t, task, p) })
			t.Run("one session", func(t *testing.T) { wantOneSession(t, task) })
			t.Run("comments", func(t *testing.T) { l.wantComments(t, res) })
			t.Run("code", func(t *testing.T) { l.wantCode(t, res) })
			t.Logf("PROOF: real programs: %s: a complete life with %d runs and %d requests to the model", name, len(task.Runs), len(l.Model.Requests()))
		})
	}
}

// wantNoNetwork checks the agent's access to networks, as its program reported it to the model.
func (l *life) wantNoNetwork(t *testing.T) {
	var seen string
	for _, r := range l.Model.Requests() {
		if r.Rule == "first plan" && r.Turn == 1 {
			seen = string(r.Body)
		}
	}
	for _, want := range []string{"routes: 0", "interfaces: lo", "an address outside: out of reach", "the model itself: out of reach", "GitHub itself: out of reach", "the tether: reached"} {
		if !strings.Contains(seen, want+`\n`) && !strings.Contains(seen, want+`"`) {
			t.Errorf("the agent did not report %q", want)
		}
	}
	if t.Failed() {
		at := max(0, strings.LastIndex(seen, "routes: "))
		t.Logf("it saw:\n%.1000s", seen[at:])
	}
}

// wantGateway checks that every request to the model came from the real program, and that the gateway replaced its key:
// the sandbox's key is not valid for the model.
func (l *life) wantGateway(t *testing.T, p real) {
	records := l.Model.Requests()
	if len(records) < 10 {
		t.Errorf("got only %d requests", len(records))
	}
	for _, r := range records {
		if got := r.Header.Get("User-Agent"); !strings.HasPrefix(got, p.userAgent) {
			t.Errorf("%s %s came from %q", r.ID, r.Path, got)
		}
		var keys []string
		for _, name := range []string{"Authorization", "X-Api-Key", "X-Goog-Api-Key"} {
			if v := r.Header.Get(name); v != "" {
				keys = append(keys, name+": "+v)
			}
		}
		if diff := cmp.Diff([]string{p.key}, keys); diff != "" {
			t.Errorf("keys of %s (-want +got):\n%s", r.ID, diff)
		}
		if r.Status != 200 {
			t.Errorf("%s, rule %q, was answered %d", r.ID, r.Rule, r.Status)
		}
	}
}

// wantMoney compares the usage and cost that the gateway booked for the task with the usage that the model served.
func (l *life) wantMoney(t *testing.T, task *state.Task, p real) {
	total := l.Model.Totals()
	u := total.Usage
	in, out := int64(u.Input+u.CacheRead+u.CacheWrite), int64(u.Output)
	if got := task.Money; got.InputTokens != in || got.OutputTokens != out {
		t.Errorf("counted %d tokens in and %d out, served %d and %d", got.InputTokens, got.OutputTokens, in, out)
	}
	if task.Money.InputTokens == 0 || task.Money.OutputTokens == 0 {
		t.Error("no tokens were counted")
	}
	price, known := modelapi.DefaultPrices().Find(p.model)
	if !known && task.Money.Unpriced != p.model {
		t.Errorf("the model %s has no price, but reported as unpriced: %q", p.model, task.Money.Unpriced)
	}
	var want int64 // the sum over the answers, because long prompts have other prices
	for _, r := range l.Model.Requests() {
		want += price.Cost(p.usage(r.Usage))
	}
	if got := task.Money.MicroUSD; got != want {
		t.Errorf("got a cost of %d millionths, want %d by the prices of %d answers", got, want, total.Answers)
	}
	for _, r := range task.Runs {
		if m := r.TokenMismatch(); m != nil {
			t.Errorf("run %s: %s", r.ID, m.Sentence())
		}
		if u := r.Used; r.Kind != state.RunCheck && (u == nil || u.Input+u.CacheRead+u.CacheWrite != r.Money.InputTokens || u.Output != r.Money.OutputTokens) {
			t.Errorf("run %s: the program reported %+v, the gateway counted %+v", r.ID, u, r.Money)
		}
		if r.Kind != state.RunCheck && (!r.Metered || r.Money.MicroUSD == 0) {
			t.Errorf("run %s, %s: metered %t, %d millionths", r.ID, r.Kind, r.Metered, r.Money.MicroUSD)
		}
	}
}

// usage returns the usage that the model served, as the gateway represents it.
func (p real) usage(u simmodel.Usage) modelapi.Usage {
	return modelapi.Usage{Model: p.model, Input: int64(u.Input), CacheRead: int64(u.CacheRead), CacheWrite: int64(u.CacheWrite), Output: int64(u.Output)}
}

// wantOneSession checks that all runs, including those after a suspension, were one conversation, and that each began
// only once.
func wantOneSession(t *testing.T, task *state.Task) {
	var sessions, vms []string
	runs := 0
	for _, r := range task.Runs {
		if r.Kind == state.RunCheck {
			continue
		}
		runs++
		sessions, vms = append(sessions, r.Session), append(vms, r.VM)
		if r.Repeat != "" || r.Status != "ok" {
			t.Errorf("run %s, %s, ended as %s; repeated because of %q", r.ID, r.Kind, r.Status, r.Repeat)
		}
	}
	slices.Sort(sessions)
	slices.Sort(vms)
	if sessions = slices.Compact(sessions); len(sessions) != 1 || sessions[0] == "" {
		t.Errorf("the sessions were %q", sessions)
	}
	// It is suspended before the review, and on a slow machine also while plans wait.
	if vms = slices.Compact(vms); runs != 5 || len(vms) < 2 {
		t.Errorf("got %d runs on %d VMs, want 5 on at least 2", runs, len(vms))
	}
}

// wantComments checks that comments contain the model's answers.
func (l *life) wantComments(t *testing.T, res demo.Result) {
	for number, texts := range map[int][]string{
		res.Issue: {"Trim hyphens from both ends of the result.", "write its hyphen when another word follows.", "Nothing is trimmed any more.", "a gap is remembered, its hyphen comes with the next word."},
		res.Pull:  {"`Make` writes a gap's hyphen only when another word follows, so none is left at either end.", "Renamed it back to `gap`.", "Added: the empty title gives the empty slug."},
	} {
		said := l.botComments(number)
		for _, want := range texts {
			if !strings.Contains(said, want) {
				t.Errorf("the comments on #%d lack %q", number, want)
			}
		}
		if t.Failed() {
			t.Logf("it says:\n%s", said)
		}
	}
}

// wantCode checks that the program's commits were published and merged.
func (l *life) wantCode(t *testing.T, res demo.Result) {
	ada := l.GitHub.As(demo.Maintainer)
	view, err := ada.PullView(demo.Full, res.Pull)
	check(t, err)
	var titles []string
	for _, c := range view.Commits {
		title, _, _ := strings.Cut(c.Message, "\n")
		titles = append(titles, title)
	}
	// In a review round errand normalizes the subject to the form that its prompt requires.
	if diff := cmp.Diff([]string{"Leave no hyphen at the ends of a slug", "Address review feedback — Name the gap, test the empty title"}, titles); diff != "" {
		t.Errorf("commits (-want +got):\n%s", diff)
	}
	for path, want := range map[string]string{"slug.go": "if gap && b.Len() > 0 {", "slug_test.go": "\t\t\"\":                \"\",\n"} {
		text := file(t, ada, path)
		if !strings.Contains(text, want) {
			t.Errorf("%s on the base branch lacks %q:\n%s", path, want, text)
		}
	}
}

func file(t *testing.T, as simgithub.Person, path string) string {
	t.Helper()
	data, err := as.File(demo.Full, "main", path)
	check(t, err)
	return string(data)
}
