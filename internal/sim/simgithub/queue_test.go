package simgithub_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"strings"
	"testing"

	"github.com/errand-bot/errand/internal/sim/simgithub"
)

// reasons returns the reasons in the webhooks of pull requests with an action, since the last call of Settled.
func (w *world) reasons(action string) (list []string) {
	w.T.Helper()
	check(w.T, w.Sim.WaitHooks(w.T.Context()))
	for _, h := range w.Inbox.Hooks() {
		var p struct{ Action, Reason string }
		check(w.T, json.Unmarshal(h.Body, &p))
		if p.Action == action && h.Header.Get("X-GitHub-Event") == "pull_request" {
			list = append(list, p.Reason)
		}
	}
	return list
}

// queued reports the merge queue of main as numbers of pull requests, with the positions and states that the App sees.
func (w *world) queued(numbers ...int) string {
	w.T.Helper()
	var list []string
	for _, n := range numbers {
		var out struct {
			Repository struct {
				PullRequest struct {
					IsInMergeQueue, IsMergeQueueEnabled bool
					MergeQueueEntry                     *struct {
						Position int
						State    string
					}
				}
			}
		}
		errs := w.graphql(`query($n:Int!){ repository(owner:"octo",name:"calc"){ pullRequest(number:$n){
			isInMergeQueue isMergeQueueEnabled mergeQueueEntry{ position state } } } }`, map[string]any{"n": n}, &out)
		p := out.Repository.PullRequest
		if len(errs) != 0 || p.IsInMergeQueue != (p.MergeQueueEntry != nil) {
			w.T.Errorf("got %+v %+v", p, errs)
		}
		if p.MergeQueueEntry != nil {
			list = append(list, fmt.Sprintf("#%d %d %s", n, p.MergeQueueEntry.Position, p.MergeQueueEntry.State))
		}
	}
	return strings.Join(list, ", ")
}

// A pull request is added to the merge queue by those who may write, App or person, if nothing is missing.
func TestEnqueue(t *testing.T) {
	t.Parallel()
	const kind = "UNPROCESSABLE"
	for name, c := range map[string]struct {
		by      string // empty: the App
		prepare func(w *world, n int)
		in      map[string]any
		refused string
		with    string
	}{
		"by the App":    {},
		"by a writer":   {by: "alice"},
		"by a reader":   {by: "rob", refused: "FORBIDDEN", with: "Must have write rights"},
		"without files": {prepare: func(w *world, _ int) { w.grant(map[string]string{"contents": "read"}) }, refused: "FORBIDDEN"},
		"without pulls": {prepare: func(w *world, _ int) { w.grant(map[string]string{"pull_requests": "read"}) }, refused: "FORBIDDEN"},
		"no queue": {prepare: func(w *world, _ int) {
			check(w.T, w.Sim.RequireMergeQueue(repo, "main", false))
		}, refused: kind, with: "does not require"},
		"twice": {prepare: func(w *world, n int) {
			check(w.T, w.Owner.Enqueue(repo, n, false))
		}, refused: kind, with: "already in the merge queue"},
		"a draft":      {prepare: func(w *world, n int) { check(w.T, w.Owner.SetDraft(repo, n, true)) }, refused: kind, with: "not mergeable"},
		"a closed one": {prepare: func(w *world, n int) { check(w.T, w.Owner.Close(repo, n, "")) }, refused: kind, with: "not mergeable"},
		"a conflict":   {prepare: func(w *world, _ int) { w.conflict() }, refused: kind, with: "not mergeable"},
		"another head": {in: map[string]any{"expectedHeadOid": strings.Repeat("0", 40)}, refused: kind, with: "does not match"},
		"a missing check": {prepare: func(w *world, _ int) {
			check(w.T, w.Sim.RequireChecks(repo, "main", simgithub.RequiredCheck{Context: "build"}))
		}, refused: kind, with: `"build" is expected`},
		"behind": {prepare: func(w *world, _ int) { // the queue adds the newest commits
			check(w.T, w.Sim.RequireUpToDate(repo, "main", true))
			_, err := w.Owner.PushCommit(repo, simgithub.Commit{Branch: "main", Message: "News", Files: map[string]string{"news": "1"}})
			check(w.T, err)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			check(t, w.Sim.RequireMergeQueue(repo, "main", true))
			p := w.pullOf("topic")
			if c.prepare != nil {
				c.prepare(w, p.Number)
			}
			before := w.now(p.Number).Pull.Queued
			in := map[string]any{"pullRequestId": p.NodeID}
			maps.Copy(in, c.in)
			refusal(t, w.mutation(c.by, "enqueuePullRequest", in), c.refused, c.with)
			if after := w.now(p.Number).Pull.Queued; (c.refused == "") != (after != nil && before == nil) {
				t.Errorf("queued: %+v, before %+v", after, before)
			}
		})
	}
}

// A merge queue merges its pull requests in their order, as GitHub's account; nobody else merges them.
func TestMergeQueue(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	check(t, w.Sim.RequireMergeQueue(repo, "main", true))
	var list []int
	for _, branch := range []string{"a", "b", "c"} {
		i := w.Pull("octo", branch, map[string]string{branch: "1"}, "")
		list = append(list, i.Number)
		check(t, w.Sim.As("alice").Enqueue(repo, i.Number, branch == "c"))
	}
	if got, want := w.queued(list...), "#1 2 QUEUED, #2 3 QUEUED, #3 1 AWAITING_CHECKS"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	err := w.Owner.Merge(repo, 1, simgithub.Merge{})
	if status(err) != 405 || !strings.Contains(err.Error(), "Changes must be made through the merge queue") {
		t.Errorf("merged past the queue: %v", err)
	}
	w.Settled()
	run := func(failure string, want int) {
		t.Helper()
		if n, err := w.Sim.RunMergeQueue(repo, "main", failure); err != nil || n != want {
			t.Errorf("got #%d, %v, want #%d", n, err, want)
		}
	}
	run("", 3)
	if p := w.now(3).Pull; !p.Merged || p.MergedBy != "github-merge-queue[bot]" {
		t.Errorf("got %+v", p)
	}
	run("CI_FAILURE", 1)
	if w.now(1).State != "open" {
		t.Error("a pull request that failed was closed")
	}
	_, err = w.Owner.PushCommit(repo, simgithub.Commit{Branch: "main", Message: "Other", Files: map[string]string{"b": "2"}})
	check(t, err)
	run("", 2)
	if _, err := w.Sim.RunMergeQueue(repo, "main", ""); status(err) != 422 {
		t.Errorf("ran an empty queue: %v", err)
	}
	if got := fmt.Sprint(w.reasons("dequeued")); got != "[MERGE CI_FAILURE MERGE_CONFLICT]" || w.queued(list...) != "" {
		t.Errorf("got reasons %s, queue %s", got, w.queued(list...))
	}
}

// How a pull request leaves the merge queue without a merge.
func TestDequeue(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		by     string // who dequeues it; empty: the App
		end    func(w *world, n int)
		kind   string
		reason string
	}{
		"by the App":  {reason: "MANUAL"},
		"by a writer": {by: "alice", reason: "MANUAL"},
		"by a reader": {by: "rob", kind: "FORBIDDEN"},
		"a push": {end: func(w *world, _ int) {
			_, err := w.Sim.As("alice").PushCommit(repo, simgithub.Commit{Branch: "topic", Message: "More", Files: map[string]string{"more": "1"}})
			check(w.T, err)
		}, reason: "MANUAL"},
		"a draft":  {end: func(w *world, n int) { check(w.T, w.Owner.SetDraft(repo, n, true)) }, reason: "UNKNOWN_REMOVAL_REASON"},
		"closed":   {end: func(w *world, n int) { check(w.T, w.Owner.Close(repo, n, "")) }, reason: "UNKNOWN_REMOVAL_REASON"},
		"no queue": {end: func(w *world, _ int) { check(w.T, w.Sim.RequireMergeQueue(repo, "main", false)) }, reason: "QUEUE_CLEARED"},
		"twice": {end: func(w *world, n int) {
			check(w.T, w.Sim.As("alice").Dequeue(repo, n))
			refusal(w.T, w.mutation("alice", "dequeuePullRequest", map[string]any{"id": w.now(n).NodeID}), "UNPROCESSABLE", "not in the merge queue")
		}, reason: "MANUAL"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			check(t, w.Sim.RequireMergeQueue(repo, "main", true))
			p := w.pullOf("topic")
			check(t, w.Owner.Enqueue(repo, p.Number, false))
			if got := w.Settled(); got[len(got)-1] != "pull_request.enqueued" {
				t.Errorf("got webhooks %v", got)
			}
			if c.end != nil {
				c.end(w, p.Number)
			} else {
				refusal(t, w.mutation(c.by, "dequeuePullRequest", map[string]any{"id": p.NodeID}), c.kind, "")
			}
			got := w.reasons("dequeued")
			if queued := w.now(p.Number).Pull.Queued != nil; queued != (c.kind != "") || !queued && fmt.Sprint(got) != "["+c.reason+"]" {
				t.Errorf("queued %v, got reasons %q, want %q", queued, got, c.reason)
			}
		})
	}
}

// The rules of a branch name its merge queue, if it has one.
func TestMergeQueueRule(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, c := range []struct {
		on      bool
		methods []string
		want    string
	}{
		{false, nil, ""},
		{true, nil, "merge_queue MERGE"},
		{true, []string{"squash"}, "merge_queue SQUASH"},
		{false, nil, ""},
	} {
		check(t, w.Sim.RequireMergeQueue(repo, "main", c.on))
		if c.methods != nil {
			check(t, w.Sim.AllowMerges(repo, c.methods...))
		}
		req, err := w.bot.NewRequest("GET", "repos/octo/calc/rules/branches/main", nil)
		check(t, err)
		var rules []struct {
			Type       string
			Parameters struct {
				Method string `json:"merge_method"`
			}
		}
		_, err = w.bot.Do(t.Context(), req, &rules)
		check(t, err)
		got := ""
		for _, r := range rules {
			got += r.Type + " " + r.Parameters.Method
		}
		if got != c.want {
			t.Errorf("got %q, want %q", got, c.want)
		}
	}
}
