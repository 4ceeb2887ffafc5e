package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/errand-bot/errand/internal/heavytest"
	"github.com/errand-bot/errand/internal/sim/simgithub"
	"github.com/errand-bot/errand/state"
)

// seen holds the data for conditions: the story's task (nil if there is none) and its issue.
type seen struct {
	s *story
	t *state.Task
	i *simgithub.Issue
	r *simgithub.Repo
}

// conditions are the conditions of await and expect. Each returns the actual value, for the message, and whether it
// matches.
func conditions() map[string]func(o seen, want string) (string, bool) {
	return map[string]func(o seen, want string) (string, bool){
		"phase":    task(func(t *state.Task) string { return string(t.Phase) }),
		"waiting":  task(waitingKind),
		"question": task(questionKind),
		"run":      task(runKind),
		"outcome":  task(func(t *state.Task) string { return string(t.Outcome) }),
		"round":    task(func(t *state.Task) string { return strconv.Itoa(t.Round) }),
		"ticket":   task(func(t *state.Task) string { return t.Ticket }),
		"ignored":  task(func(t *state.Task) string { return strconv.Itoa(t.Ignored) }),
		"branch":   task(func(t *state.Task) string { return t.Branch.Name }),
		"saved":    task(func(t *state.Task) string { return strconv.Itoa(len(t.Saved)) }),
		"ready":    task(func(t *state.Task) string { return strconv.FormatBool(t.PR != nil && t.PR.Ready) }),
		"updated": task(func(t *state.Task) string {
			return strconv.FormatBool(t.Branch.Updated != "" && t.Branch.Updated == t.Branch.Head)
		}),
		"draft":    task(func(t *state.Task) string { return strconv.FormatBool(t.PR != nil && t.PR.Draft) }),
		"checks":   task(func(t *state.Task) string { return prChecks(t) }),
		"vm":       task(vmState),
		"vms":      task(func(t *state.Task) string { return strconv.Itoa(len(t.VMs)) }),
		"approver": task(approver),
		"via":      task(func(t *state.Task) string { return string(t.Trigger.Via) }),
		"plans":    task(func(t *state.Task) string { return strconv.Itoa(countPosted(t.Plans)) }),
		"stale":    task(newestStale),
		"gen":      task(func(t *state.Task) string { return strconv.Itoa(t.Gen) }),
		"model":    task(func(t *state.Task) string { return t.Model }),
		"sessions": task(sessions),
		"held":     task(func(t *state.Task) string { return strconv.Itoa(len(t.Held)) }),
		"gathers":  task(func(t *state.Task) string { return strconv.FormatBool(t.Gathering != nil) }),
		// the task's budget, in whole dollars
		"cap": task(func(t *state.Task) string { return strconv.FormatInt(t.Money.CapMicroUSD/1_000_000, 10) }),
		// runs whose agents reported other tokens than the gateway counted
		"miscounted": task(func(t *state.Task) string { return strconv.Itoa(len(t.Summary().TokenMismatches)) }),
		"asleep":     task(asleep),
		"archives":   archives,
		"packing":    packingNow,
		"queued":     queued,

		"all":        everyTask,
		"runs":       runs,
		"comments":   func(o seen, want string) (string, bool) { return count(len(o.s.byBot(o.s.issue)), want) },
		"posted":     func(o seen, want string) (string, bool) { return count(o.s.posted(o.s.issue), want) },
		"comment":    func(o seen, want string) (string, bool) { return anyBody(o.s.byBot(o.s.issue), want) },
		"times":      times,
		"status":     statusText,
		"pr-comment": pullComment,
		"pr-posted":  pullPosted,
		"pr":         pullState,
		"pulls":      openPulls,
		"reviewers":  reviewers,
		"pr-body":    pullBody,
		"commits":    pullCommits,
		"answers":    threadAnswers,
		"reviews":    ownReviews,
		"resolved":   resolved,
		"reaction":   reaction,
		"reacted":    reacted,
		"minimized":  minimized,
		"tree":       sameTree,
		"gate":       gate,
		"task":       func(o seen, want string) (string, bool) { return yesNo(o.t != nil, want) },
		"logged":     logged,
		"kept":       kept,
		"made":       issuesMade,
		"notes":      notes,
		"watched":    watched,
	}
}

func logged(o seen, want string) (string, bool) {
	re := regexp.MustCompile(want)
	return "no such line", slices.ContainsFunc(o.s.logLines(), re.MatchString)
}

// task makes a condition of a function that returns a word about the task; alternatives are separated by "|".
func task(get func(*state.Task) string) func(seen, string) (string, bool) {
	return func(o seen, want string) (string, bool) {
		if o.t == nil {
			return "no task", want == "none"
		}
		got := get(o.t)
		return got, slices.Contains(strings.Split(want, "|"), got)
	}
}

func waitingKind(t *state.Task) string {
	if t.Waiting == nil {
		return "none"
	}
	return string(t.Waiting.Kind)
}

func questionKind(t *state.Task) string {
	if t.Question == nil {
		return "none"
	}
	return t.Question.Kind
}

// runKind returns the kind of the active run, launching if it has not begun, or none.
func runKind(t *state.Task) string {
	switch {
	case t.Run == nil:
		return "none"
	case t.Run.State == state.RunLaunching:
		return "launching"
	}
	return string(t.Run.Kind)
}

func prChecks(t *state.Task) string {
	if t.PR == nil {
		return ""
	}
	return t.PR.Checks
}

func vmState(t *state.Task) string {
	if t.VM == nil {
		return "none"
	}
	return t.VM.Kind
}

func approver(t *state.Task) string {
	if t.Approval == nil {
		return "none"
	}
	return t.Approval.By.Login + "/" + string(t.Approval.Via)
}

func countPosted(plans []state.Plan) int {
	n := 0
	for i := range plans {
		if plans[i].Posted() {
			n++
		}
	}
	return n
}

func newestStale(t *state.Task) string {
	if p := t.NewestPlan(); p != nil && p.Stale != "" {
		return p.Stale
	}
	return "none"
}

// sessions counts the agent's different sessions so far.
func sessions(t *state.Task) string {
	set := map[string]bool{}
	for _, r := range append(slices.Clone(t.Runs), active(t)...) {
		if r.Session != "" {
			set[r.Session] = true
		}
	}
	return strconv.Itoa(len(set))
}

// runs=KIND:N counts the runs of a kind, the active one included.
func runs(o seen, want string) (string, bool) {
	kind, n, _ := strings.Cut(want, ":")
	got := 0
	if o.t != nil {
		for _, r := range append(slices.Clone(o.t.Runs), active(o.t)...) {
			if string(r.Kind) == kind && !r.Started.IsZero() {
				got++
			}
		}
	}
	return count(got, n)
}

// count compares a number: N, N+ for at least N, or N- for at most N.
func count(got int, want string) (string, bool) {
	if most, ok := strings.CutSuffix(want, "-"); ok {
		n, err := strconv.Atoi(most)
		return strconv.Itoa(got), err == nil && got <= n
	}
	if low, ok := strings.CutSuffix(want, "+"); ok {
		n, err := strconv.Atoi(low)
		return strconv.Itoa(got), err == nil && got >= n
	}
	return strconv.Itoa(got), strconv.Itoa(got) == want
}

func yesNo(got bool, want string) (string, bool) {
	return strconv.FormatBool(got), got == (want == "yes")
}

func anyBody(list []*simgithub.Comment, want string) (string, bool) {
	re := regexp.MustCompile(want)
	for _, c := range list {
		if re.MatchString(c.Body) {
			return "", true
		}
	}
	return fmt.Sprintf("none of %d comments", len(list)), false
}

// statusText checks the status comment once it shows the newest state.
func statusText(o seen, want string) (string, bool) {
	for _, c := range o.s.byBot(o.s.issue) {
		if isStatus(c.Body) {
			return c.Body, regexp.MustCompile(want).MatchString(c.Body)
		}
	}
	return "no status comment", false
}

func (o seen) pull() *simgithub.Issue {
	n, err := o.s.number("pr")
	if err != nil {
		return nil
	}
	return o.r.Issues[n]
}

// pullState returns none, open, draft, closed or merged.
func pullState(o seen, want string) (string, bool) {
	i := o.pull()
	got := "none"
	switch {
	case i == nil:
	case i.Pull.Merged:
		got = "merged"
	case i.State == "open" && i.Pull.Draft:
		got = "draft"
	default:
		got = i.State
	}
	return got, got == want
}

// reviewers lists the requested reviewers.
func reviewers(o seen, want string) (string, bool) {
	i := o.pull()
	if i == nil {
		return "no pull request", false
	}
	got := strings.Join(i.Pull.RequestedReviewers, ",")
	return got, got == want
}

func pullBody(o seen, want string) (string, bool) {
	i := o.pull()
	if i == nil {
		return "no pull request", false
	}
	text := i.Title + "\n" + i.Body
	return text, regexp.MustCompile(want).MatchString(text)
}

func pullCommits(o seen, want string) (string, bool) {
	i := o.pull()
	if i == nil {
		return "no pull request", false
	}
	v, err := o.s.w.GitHub.As("ada").PullView(o.r.FullName(), i.Number)
	if err != nil {
		return err.Error(), false
	}
	return count(len(v.Commits), want)
}

// minimized counts errand's folded comments.
func minimized(o seen, want string) (string, bool) {
	n := 0
	for _, c := range o.s.byBot(o.s.issue) {
		if c.Minimized {
			n++
		}
	}
	return count(n, want)
}

// watched returns whether a sweep has stored since when errand watches the story's repository.
func watched(o seen, want string) (string, bool) {
	data, err := o.s.w.Server.Store().Fact(context.Background(), "triggers-since")
	var times struct {
		Repos map[int64]any `json:"repos"`
	}
	if err == nil && data != nil {
		err = json.Unmarshal(data, &times)
	}
	if err != nil {
		return err.Error(), false
	}
	_, ok := times.Repos[o.r.ID]
	return strconv.FormatBool(ok), strconv.FormatBool(ok) == want
}

// gate reports whether a model call is waiting at a gate.
func gate(o seen, want string) (string, bool) {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Millisecond)
	defer cancel()
	return "no call is waiting at the gate", o.s.w.Model.Waiting(ctx, want) == nil
}

// look returns the current data for conditions.
func (s *story) look() seen {
	r := s.repo()
	return seen{s: s, t: s.task(s.issue), i: r.Issues[s.issue], r: r}
}

// failing returns the first condition that does not hold, or "".
func (s *story) failing(args []string) (string, error) {
	o, table := s.look(), conditions()
	for _, a := range args {
		k, v, ok := strings.Cut(a, "=")
		hold := table[k]
		if !ok || hold == nil {
			return "", fmt.Errorf("unknown condition %q", a)
		}
		if got, ok := hold(o, v); !ok {
			return fmt.Sprintf("%s: got %s", a, got), nil
		}
	}
	return "", nil
}

// await waits until all conditions hold: await [-within=DURATION] COND=VALUE …, with -within for those that must hold soon.
func await(ts *testscript.TestScript, neg bool, args []string) {
	s := of(ts)
	limit := patience
	if word, ok := strings.CutPrefix(args[0], "-within="); ok {
		var err error
		limit, err = time.ParseDuration(word)
		ts.Check(err)
		if heavytest.Raced { // how quickly something happens is proved without the race detector
			limit = max(limit, min(6*limit, patience))
		} else {
			limit = max(limit, min(4*limit, patience)) // the machine may be busy
		}
		args = args[1:]
	}
	hopeless := !slices.ContainsFunc(args, func(a string) bool {
		return strings.Contains(a, "failed") || strings.Contains(a, "cancelled") || strings.HasPrefix(a, "comment=")
	})
	last, stuck := "", time.Time{}
	for end := time.Now().Add(limit); time.Now().Before(end); pause() {
		var err error
		last, err = s.failing(args)
		ts.Check(err)
		if last == "" {
			return
		}
		if t := s.task(s.issue); t == nil || t.Phase != state.PhaseFailed && t.Phase != state.PhaseCancelled {
			stuck = time.Time{}
		} else if stuck.IsZero() {
			stuck = time.Now()
		} else if hopeless && time.Since(stuck) > time.Minute { // a command that continues it may be under way
			ts.Fatalf("waiting for %s: the task is %s: %+v", last, t.Phase, t.End)
		}
	}
	ts.Fatalf("waiting for %s: timeout after %s", last, limit)
}

// expect checks once; "! expect COND" expects it not to hold.
func expect(ts *testscript.TestScript, neg bool, args []string) {
	last, err := of(ts).failing(args)
	ts.Check(err)
	if neg && last == "" {
		ts.Fatalf("the conditions %v are true, want false", args)
	}
	if !neg && last != "" {
		ts.Fatalf("%s", last)
	}
}
