package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/errand-bot/errand/internal/webtest"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/errand-bot/errand/internal/demo"
	"github.com/errand-bot/errand/internal/sim/simgithub"
	"github.com/errand-bot/errand/state"
)

var (
	planTitle  = regexp.MustCompile(`(?m)^## (?:Preliminary plan|Plan|Changes), revision \d+ \(.*?([0-9a-f]{8}).*\)`)
	statusMark = regexp.MustCompile(`<!-- errand:[^ ]*status -->\s*$`)
	markerLine = regexp.MustCompile(`<!-- errand:[^ ]+ -->\s*$`)
)

// planHash returns the hash of the plan in a comment, or "".
func planHash(body string) string {
	if m := planTitle.FindStringSubmatch(body); m != nil {
		return m[1]
	}
	return ""
}

func isStatus(body string) bool { return statusMark.MatchString(body) }

// planCmd sets a variable to a plan's hash: plan VAR [newest|N].
func planCmd(ts *testscript.TestScript, neg bool, args []string) {
	which := ""
	if len(args) > 1 {
		which = args[1]
	}
	c, err := of(ts).planComment(which)
	ts.Check(err)
	ts.Setenv(args[0], planHash(c.Body))
}

// comments prints errand's comments on an issue or pull request, with the parts that differ between runs normalized: comments [ISSUE]
// [provenance].
func comments(ts *testscript.TestScript, neg bool, args []string) {
	s := of(ts)
	n := s.issue
	if len(args) > 0 {
		var err error
		n, err = s.number(args[0])
		ts.Check(err)
	}
	statements := len(args) > 1 && args[1] == "provenance" // which are left out otherwise
	for _, c := range s.byBot(n) {
		if statements != strings.HasPrefix(c.Body, "**Provenance.**") {
			continue
		}
		fmt.Fprintf(ts.Stdout(), "%s\n====\n", s.alike(c.Body))
	}
	if i := s.repo().Issues[n]; i != nil && i.Pull != nil && !statements {
		for _, v := range i.Pull.Reviews {
			if v.Author == s.w.GitHub.App().BotLogin && v.Body != "" {
				fmt.Fprintf(ts.Stdout(), "(review) %s\n====\n", s.alike(v.Body))
			}
		}
		for _, th := range i.Pull.Threads {
			for _, c := range th.Comments {
				if c.Author == s.w.GitHub.App().BotLogin {
					fmt.Fprintf(ts.Stdout(), "(thread on %s) %s\n====\n", th.Path, s.alike(c.Body))
				}
			}
		}
	}
}

// alike normalizes the parts that differ between runs.
func (s *story) alike(text string) string {
	text = strings.ReplaceAll(text, s.w.URL, "https://errand.example")
	text = strings.ReplaceAll(text, s.w.GitHub.BaseURL(), "https://github.example")
	for _, r := range []struct{ pattern, with string }{
		{`\b\d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC`, "DAY"}, {`\b[0-9a-f]{64}\b`, "SHA256"}, {`SHA256:[A-Za-z0-9+/]{43}`, "SHA256:KEY"}, {`\{"payloadType":[^\n]*\}`, "ENVELOPE"},
		{`\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b`, "UUID"},
		{`\b(\d\d? [A-Z][a-z]{2} )?\d\d:\d\d UTC`, "HH:MM UTC"}, {`\b[0-9a-f]{40}\b`, "SHA"}, {`\b[0-9a-f]{7,12}\b`, "HASH"},
		{`issuecomment-\d+`, "issuecomment-N"}, {`discussion_r\d+`, "discussion_rN"}, {`pullrequestreview-\d+`, "pullrequestreview-N"}, {`errand-[a-z0-9]+-\d+-\d+-[0-9a-f]+-g\d+`, "errand-VM"},
		{`\b(?:so far )?\d+ (?:s|ms|min)\b`, "TIME"}, {`<!-- errand:[^ ]+ -->`, "<!-- errand:KEY -->"}, {`[\d.]+k? tokens`, "N tokens"}, {`archive of [\d.]+ k?B`, "archive of N kB"}, {`\$[\d.]+ of`, "$N of"},
		{`\| TIME \| [\d.]+k? \| (?:under )?\$[\d.]+ \|`, "| TIME | N | $N |"},
	} {
		text = regexp.MustCompile(r.pattern).ReplaceAllString(text, strings.ReplaceAll(r.with, "$", "$$"))
	}
	return strings.TrimSpace(text)
}

// prompts prints the requests to the model: prompts [STEP].
func prompts(ts *testscript.TestScript, neg bool, args []string) {
	for _, r := range of(ts).w.Model.Requests() {
		if len(args) > 0 && r.Step != args[0] {
			continue
		}
		var body any
		ts.Check(json.Unmarshal(r.Body, &body))
		fmt.Fprintf(ts.Stdout(), "==== %s turn %d\n", r.Step, r.Turn)
		texts(ts.Stdout(), body)
	}
}

// texts prints every string in a JSON value, with real line ends.
func texts(w io.Writer, v any) {
	switch v := v.(type) {
	case string:
		fmt.Fprintln(w, v)
	case []any:
		for _, x := range v {
			texts(w, x)
		}
	case map[string]any:
		for _, k := range sortedKeys(v) {
			texts(w, v[k])
		}
	}
}

// transcripts prints all transcripts.
func transcripts(ts *testscript.TestScript, neg bool, args []string) {
	for _, text := range of(ts).transcripts() {
		fmt.Fprintln(ts.Stdout(), text)
	}
}

func (s *story) transcripts() []string {
	var list []string
	paths, err := filepath.Glob(filepath.Join(s.dir, "data", "transcripts", "*"))
	if err != nil {
		return nil
	}
	for _, p := range paths {
		if data, err := os.ReadFile(p); err == nil {
			list = append(list, string(data))
		}
	}
	return list
}

// branchCmd runs git on the published repository: branch ARGS…; "errand" stands for the task's branch.
func branchCmd(ts *testscript.TestScript, neg bool, args []string) {
	s := of(ts)
	for i := range args {
		args[i] = s.named(args[i])
	}
	cmd := exec.Command("git", append([]string{"-C", s.repo().Git.Dir}, args...)...)
	out, err := cmd.CombinedOutput()
	_, werr := ts.Stdout().Write(out)
	ts.Check(werr)
	if neg == (err == nil) {
		ts.Fatalf("git %v: %v\n%s", args, err, out)
	}
}

// named replaces {errand} with the name of the task's branch.
func (s *story) named(arg string) string {
	if name := s.branch("errand"); name != "errand" {
		return strings.ReplaceAll(arg, "{errand}", name)
	}
	return arg
}

// page prints one of errand's pages: page [-until=REGEXP] PATH. With -until it fetches the page until it matches.
func page(ts *testscript.TestScript, neg bool, args []string) {
	s, until := of(ts), regexp.MustCompile("")
	if text, ok := strings.CutPrefix(args[0], "-until="); ok {
		until, args = regexp.MustCompile(text), args[1:]
	}
	status, body := 0, ""
	for end := time.Now().Add(patience); ; pause() {
		var err error
		status, body, err = s.request(http.MethodGet, args[0], !neg)
		ts.Check(err)
		if until.MatchString(body) || time.Now().After(end) {
			break
		}
	}
	fmt.Fprintf(ts.Stdout(), "%d\n%s\n", status, body)
	if (status == http.StatusOK) == neg {
		ts.Fatalf("GET %s: %d %s", args[0], status, http.StatusText(status))
	}
	if !until.MatchString(body) {
		ts.Fatalf("GET %s: no match for %s in %s", args[0], until, patience)
	}
}

// adopt does what `errand adopt` does: adopt N. It prints the answer.
func adopt(ts *testscript.TestScript, neg bool, args []string) {
	s := of(ts)
	status, body, err := s.request(http.MethodPost, "/tasks/"+s.full+"/"+args[0]+"/adopt", true)
	ts.Check(err)
	fmt.Fprintf(ts.Stdout(), "%d\n%s\n", status, body)
	if (status == http.StatusOK) == neg {
		ts.Fatalf("adopt %s: %d %s", args[0], status, body)
	}
}

// request returns the status and the body of errand's answer to a request, with the administrator's token if admin.
func (s *story) request(method, path string, admin bool) (int, string, error) {
	return s.requestWith(method, path, nil, admin)
}

func (s *story) requestWith(method, path string, form io.Reader, admin bool) (int, string, error) {
	req, err := http.NewRequest(method, s.w.URL+path, form)
	if err != nil {
		return 0, "", err
	}
	if form != nil {
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	if admin {
		req.Header.Set("Authorization", "Bearer "+demo.AdminToken)
	}
	// A story restarts its server, which ends connections: a request that took one of them from the pool would fail.
	anew := webtest.Transport().Clone()
	anew.DisableKeepAlives = true
	resp, err := (&http.Client{Transport: anew}).Do(req)
	if err != nil {
		return 0, "", err
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(resp.Body)
	return resp.StatusCode, string(body), err
}

// clock waits for the next full second, the resolution of GitHub's times, so that later events have later times.
func clock(ts *testscript.TestScript, neg bool, args []string) {
	for next := time.Now().Truncate(time.Second).Add(time.Second); time.Now().Before(next); {
		pause()
	}
}

// settle waits until errand is idle: webhooks delivered and applied, jobs done, and reactions polled twice more.
func settle(ts *testscript.TestScript, neg bool, args []string) {
	ts.Check(of(ts).settle())
}

func (s *story) settle() error {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	busy, calm, since, polled := "", 0, time.Now(), s.polls()
	for ctx.Err() == nil {
		if err := s.w.GitHub.WaitHooks(ctx); err != nil { // also those that errand's last jobs have caused
			return fmt.Errorf("settle: webhooks: %w", err)
		}
		busy = s.busy(ctx)
		if busy != "" {
			calm, since, polled = 0, time.Now(), s.polls()
		} else {
			calm++
		}
		quiet := time.Since(since)
		if calm > 3 && quiet > 200*time.Millisecond && (s.polls() >= polled+2 || quiet > 900*time.Millisecond) {
			return nil
		}
		pause()
	}
	return errors.New("settle: still busy: " + busy)
}

// polls counts GraphQL calls, because a poll of reactions is one.
func (s *story) polls() int {
	list, _ := s.w.GitHub.Calls()
	for _, c := range list {
		if strings.Contains(c.Route, "graphql") {
			return c.Count
		}
	}
	return 0
}

// busy returns something that is left to do, or "".
func (s *story) busy(ctx context.Context) string {
	store := s.w.Server.Store()
	pending, err := store.PendingDeliveries(ctx, 1)
	if err != nil {
		return err.Error()
	}
	if len(pending) > 0 {
		return "delivery " + pending[0].GUID
	}
	list, err := store.AllTasks(ctx, state.TaskKey{}, 100)
	if err != nil {
		return err.Error()
	}
	now := time.Now()
	keys := map[state.TaskKey]bool{}
	for _, t := range list {
		keys[t.Key] = true
	}
	for n := range s.repo().Issues { // jobs of an issue without a task
		keys[state.TaskKey{Repo: s.repo().ID, Issue: n}] = true
	}
	for k := range keys {
		for _, j := range s.jobs(k) {
			if j.State == state.JobClaimed || j.NotBefore.Before(now.Add(400*time.Millisecond)) {
				return fmt.Sprintf("job %s of task %s (attempt %d, %s)", j.Kind, k, j.Attempt, j.LastError)
			}
		}
	}
	return ""
}

// sameTree compares three trees: the published branch's, the VM's and the stored one.
func sameTree(o seen, want string) (string, bool) {
	if o.t == nil || o.t.VM == nil {
		return "no VM", false
	}
	git := func(dir string, args ...string) string {
		out, err := exec.Command("git", append([]string{"-C", dir, "-c", "safe.directory=*"}, args...)...).CombinedOutput()
		if err != nil {
			return err.Error() + string(out)
		}
		return strings.TrimSpace(string(out))
	}
	published := git(o.r.Git.Dir, "rev-parse", o.t.Branch.Name+"^{tree}")
	dirs, err := filepath.Glob(filepath.Join(o.s.boxDir(o.t.VM.Name), "*", "work"))
	if err != nil || len(dirs) == 0 {
		return "no checkout on the VM", false
	}
	onVM, dirty := git(dirs[0], "rev-parse", "HEAD^{tree}"), git(dirs[0], "status", "--porcelain")
	got := fmt.Sprintf("published %s, VM %s %q, stored %s", published, onVM, dirty, o.t.Branch.Tree)
	same := published == onVM && dirty == "" && (o.t.Branch.Tree == "" || o.t.Branch.Tree == published)
	return got, same == (want == "equal")
}

// times=N:REGEXP counts errand's comments that match.
func times(o seen, want string) (string, bool) {
	n, pattern, _ := strings.Cut(want, ":")
	re, got := regexp.MustCompile(pattern), 0
	for _, c := range o.s.byBot(o.s.issue) {
		if re.MatchString(c.Body) {
			got++
		}
	}
	return count(got, n)
}

// reaction looks for errand's reaction on the issue or on its newest comment by a person.
func reaction(o seen, want string) (string, bool) {
	if o.i == nil {
		return "no issue", false
	}
	all := slices.Clone(o.i.Reactions)
	for _, c := range o.i.Comments {
		all = append(all, c.Reactions...)
	}
	return "not there", slices.ContainsFunc(all, func(r *simgithub.Reaction) bool {
		return r.Content == want && r.User == o.s.w.GitHub.App().BotLogin
	})
}

// reacted compares errand's reactions to the newest comment by a person: contents separated by commas, or none.
func reacted(o seen, want string) (string, bool) {
	if o.i == nil {
		return "no issue", false
	}
	var got []string
	for _, c := range slices.Backward(o.i.Comments) {
		if c.Author == o.s.w.GitHub.App().BotLogin {
			continue
		}
		for _, r := range c.Reactions {
			if r.User == o.s.w.GitHub.App().BotLogin {
				got = append(got, r.Content)
			}
		}
		break
	}
	words := strings.Join(got, ",")
	if words == "" {
		words = "none"
	}
	return words, words == want
}
