package simgithub_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/errand-bot/errand/internal/sim/simgithub"
)

// waiting returns a pull request that waits for the check build, in a repository that allows auto-merge.
func waiting(t *testing.T) (*world, *simgithub.Issue) {
	t.Helper()
	w := newWorld(t)
	check(t, w.Sim.AllowAutoMerge(repo, true))
	check(t, w.Sim.RequireChecks(repo, "main", simgithub.RequiredCheck{Context: "build"}))
	return w, w.pullOf("topic")
}

// Auto-merge is enabled by those who may write, App or person, where it is allowed and something is missing.
func TestEnableAutoMerge(t *testing.T) {
	t.Parallel()
	const kind = "UNPROCESSABLE"
	free := func(w *world) { check(w.T, w.Sim.RequireChecks(repo, "main")) }
	for name, c := range map[string]struct {
		by      string // empty: the App
		prepare func(w *world, p *simgithub.Issue)
		in      map[string]any
		refused string
		with    string
		queued  bool // at once
	}{
		"by the App":    {},
		"by a writer":   {by: "alice", in: map[string]any{"mergeMethod": "SQUASH"}},
		"by a reader":   {by: "rob", refused: "FORBIDDEN", with: "Must have write rights"},
		"without files": {prepare: func(w *world, _ *simgithub.Issue) { w.grant(map[string]string{"contents": "read"}) }, refused: "FORBIDDEN"},
		"without pulls": {prepare: func(w *world, _ *simgithub.Issue) {
			w.grant(map[string]string{"pull_requests": "read"})
		}, refused: "FORBIDDEN"},
		"not allowed": {prepare: func(w *world, _ *simgithub.Issue) { check(w.T, w.Sim.AllowAutoMerge(repo, false)) },
			refused: kind, with: "Auto merge is not allowed for this repository"},
		"clean": {prepare: func(w *world, _ *simgithub.Issue) { free(w) }, refused: kind, with: "Pull request is in clean status"},
		"unstable": {by: "alice", prepare: func(w *world, p *simgithub.Issue) {
			free(w)
			check(w.T, w.Sim.CheckRun(repo, p.Pull.HeadSHA, "docs", "failure", ""))
		}, refused: kind, with: "Pull request is in unstable status"},
		"behind": {prepare: func(w *world, _ *simgithub.Issue) {
			free(w)
			check(w.T, w.Sim.RequireUpToDate(repo, "main", true))
			_, err := w.Owner.PushCommit(repo, simgithub.Commit{Branch: "main", Message: "News", Files: map[string]string{"news": "1"}})
			check(w.T, err)
		}},
		"a draft": {prepare: func(w *world, p *simgithub.Issue) {
			check(w.T, w.Owner.SetDraft(repo, p.Number, true))
		}, refused: kind, with: "in draft status"},
		"a conflict": {prepare: func(w *world, _ *simgithub.Issue) { w.conflict() }, refused: kind, with: "in dirty status"},
		"closed": {prepare: func(w *world, p *simgithub.Issue) {
			check(w.T, w.Owner.Close(repo, p.Number, ""))
		}, refused: kind, with: "is closed"},
		"another head": {in: map[string]any{"expectedHeadOid": strings.Repeat("0", 40)},
			refused: kind, with: "Head branch was modified"},
		"a method that is not allowed": {prepare: func(w *world, _ *simgithub.Issue) { check(w.T, w.Sim.AllowMerges(repo, "rebase")) },
			refused: kind, with: "Merge commits are not allowed"},
		"clean, with a merge queue": {prepare: func(w *world, _ *simgithub.Issue) {
			free(w)
			check(w.T, w.Sim.RequireMergeQueue(repo, "main", true))
		}, queued: true},
		"blocked, with a merge queue": {by: "alice", prepare: func(w *world, _ *simgithub.Issue) {
			check(w.T, w.Sim.RequireMergeQueue(repo, "main", true))
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, p := waiting(t)
			if c.prepare != nil {
				c.prepare(w, p)
			}
			w.Settled()
			in := map[string]any{"pullRequestId": p.NodeID}
			maps.Copy(in, c.in)
			refusal(t, w.mutation(c.by, "enablePullRequestAutoMerge", in), c.refused, c.with)
			now := w.now(p.Number)
			sent, on := slices.Contains(w.Settled(), "pull_request.auto_merge_enabled"), c.refused == ""
			if (now.Pull.AutoMerge != nil) != (on && !c.queued) || (now.Pull.Queued != nil) != c.queued || sent != on {
				t.Errorf("got auto-merge %+v, queue %+v, webhook %v", now.Pull.AutoMerge, now.Pull.Queued, sent)
			}
		})
	}
}

// A pull request with auto-merge is merged as the account that enabled it, as soon as the last missing thing is there, whatever it is.
func TestAutoMergeIsDue(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		by   string // empty: the App
		last func(w *world, p *simgithub.Issue)
		open bool
	}{
		"a check": {last: func(w *world, p *simgithub.Issue) {
			check(w.T, w.Sim.CheckRun(repo, p.Pull.HeadSHA, "build", "success", ""))
		}},
		"a check, for a person": {by: "alice", last: func(w *world, p *simgithub.Issue) {
			check(w.T, w.Sim.CheckRun(repo, p.Pull.HeadSHA, "build", "skipped", ""))
		}},
		"a status": {last: func(w *world, p *simgithub.Issue) {
			check(w.T, w.Sim.Status(repo, p.Pull.HeadSHA, "build", "success", ""))
		}},
		"a failing check": {open: true, last: func(w *world, p *simgithub.Issue) {
			check(w.T, w.Sim.CheckRun(repo, p.Pull.HeadSHA, "build", "failure", ""))
		}},
		"a check of another App": {by: "alice", last: func(w *world, p *simgithub.Issue) {
			check(w.T, w.Sim.CheckRun(repo, p.Pull.HeadSHA, "docs", "failure", "")) // not required
			check(w.T, w.Sim.Job(repo, p.Pull.HeadSHA, simgithub.Job{Name: "build", Conclusion: "success", Foreign: true}))
		}},
		"a new head": {last: func(w *world, p *simgithub.Issue) {
			sha, err := w.Sim.As("alice").PushCommit(repo, simgithub.Commit{Branch: "topic", Message: "More", Files: map[string]string{"more": "1"}})
			check(w.T, err)
			if w.now(p.Number).Pull.AutoMerge == nil {
				w.T.Error("a writer's push disabled auto-merge")
			}
			check(w.T, w.Sim.CheckRun(repo, sha, "build", "success", ""))
		}},
		"the newest commits of the base": {by: "alice", last: func(w *world, p *simgithub.Issue) {
			check(w.T, w.Sim.RequireUpToDate(repo, "main", true))
			_, err := w.Owner.PushCommit(repo, simgithub.Commit{Branch: "main", Message: "News", Files: map[string]string{"news": "1"}})
			check(w.T, err)
			check(w.T, w.Sim.RequireChecks(repo, "main"))
			if w.now(p.Number).Pull.Merged {
				w.T.Error("merged while it was behind")
			}
			check(w.T, w.Owner.UpdateBranch(repo, p.Number, simgithub.BranchUpdate{}))
		}},
		"another base": {last: func(w *world, p *simgithub.Issue) {
			_, err := w.Owner.PushCommit(repo, simgithub.Commit{Branch: "free", Message: "Free", Files: map[string]string{"free": "1"}})
			check(w.T, err)
			check(w.T, w.Owner.EditPull(repo, p.Number, simgithub.PullEdit{Base: ptr("free")}))
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, p := waiting(t)
			refusal(t, w.mutation(c.by, "enablePullRequestAutoMerge", map[string]any{"pullRequestId": p.NodeID}), "", "")
			c.last(w, p)
			now := w.now(p.Number)
			by := c.by
			if by == "" {
				by = "errand[bot]"
			}
			if now.Pull.Merged == c.open || !c.open && now.Pull.MergedBy != by {
				t.Errorf("merged %v by %q", now.Pull.Merged, now.Pull.MergedBy)
			}
		})
	}
}

// How auto-merge ends without a merge, and what is seen of it before.
func TestAutoMergeEnds(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		by     string // who disables it; empty: the App
		end    func(w *world, p *simgithub.Issue)
		author string // of the pull request; default octo
		kind   string
		reason string
	}{
		"by the App":    {},
		"by a writer":   {by: "alice"},
		"by a reader":   {by: "rob", kind: "FORBIDDEN"},
		"by its author": {by: "rob", author: "rob"},
		"converted to a draft": {end: func(w *world, p *simgithub.Issue) {
			check(w.T, w.Owner.SetDraft(repo, p.Number, true))
		}, reason: "Pull request was converted to draft"},
		"closed": {end: func(w *world, p *simgithub.Issue) {
			check(w.T, w.Owner.Close(repo, p.Number, ""))
		}, reason: "Pull request was closed"},
		"its branch was deleted": {end: func(w *world, _ *simgithub.Issue) {
			check(w.T, w.Owner.DeleteBranch(repo, "topic"))
		}, reason: "Pull request was closed"},
		"its author, a reader, changes the base": {author: "rob", end: func(w *world, p *simgithub.Issue) {
			_, err := w.Owner.PushCommit(repo, simgithub.Commit{Branch: "free", Message: "Free", Files: map[string]string{"free": "1"}})
			check(w.T, err)
			check(w.T, w.Sim.As("rob").EditPull(repo, p.Number, simgithub.PullEdit{Base: ptr("free")}))
		}, reason: "Base branch was modified"},
		"it cannot merge any more": {end: func(w *world, p *simgithub.Issue) {
			check(w.T, w.Sim.AllowMerges(repo, "rebase"))
			check(w.T, w.Sim.CheckRun(repo, p.Pull.HeadSHA, "build", "success", ""))
		}, reason: "Merge commits are not allowed on this repository."},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, p := waiting(t)
			if c.author != "" {
				check(t, w.Owner.Close(repo, p.Number, ""))
				var err error
				p, err = w.Sim.As(c.author).OpenPull(repo, simgithub.NewPull{Title: "B", Head: "topic"})
				check(t, err)
			}
			check(t, w.Sim.As("alice").EnableAutoMerge(repo, p.Number, "merge"))
			w.Settled()
			if c.end != nil {
				c.end(w, p)
			} else {
				refusal(t, w.mutation(c.by, "disablePullRequestAutoMerge", map[string]any{"pullRequestId": p.NodeID}), c.kind, "")
			}
			now := w.now(p.Number)
			if (now.Pull.AutoMerge != nil) != (c.kind != "") || now.Pull.Merged {
				t.Errorf("got %+v", now.Pull)
			}
			if got := w.reasons("auto_merge_disabled"); c.kind == "" && (len(got) != 1 || got[0] != c.reason) || c.kind != "" && len(got) != 0 {
				t.Errorf("got reasons %q, want %q", got, c.reason)
			}
		})
	}
}

// Auto-merge is visible by REST and GraphQL, also after the merge.
func TestAutoMergeIsVisible(t *testing.T) {
	t.Parallel()
	w, p := waiting(t)
	check(t, w.Sim.As("alice").EnableAutoMerge(repo, p.Number, "squash"))
	see := func() {
		t.Helper()
		var out struct {
			Repository struct {
				PullRequest struct {
					AutoMergeRequest *struct {
						EnabledAt   string
						EnabledBy   struct{ Login string }
						MergeMethod string
					}
				}
			}
		}
		errs := w.graphql(`query($n:Int!){ repository(owner:"octo",name:"calc"){ pullRequest(number:$n){
			autoMergeRequest{ enabledAt enabledBy{ login } mergeMethod commitHeadline } } } }`, map[string]any{"n": p.Number}, &out)
		a := out.Repository.PullRequest.AutoMergeRequest
		if len(errs) != 0 || a == nil || a.EnabledBy.Login != "alice" || a.MergeMethod != "SQUASH" || a.EnabledAt == "" {
			t.Errorf("got %+v %+v", a, errs)
		}
		got, _, err := w.bot.PullRequests.Get(t.Context(), "octo", "calc", p.Number)
		check(t, err)
		m := got.GetAutoMerge()
		if text := m.GetEnabledBy().GetLogin() + " " + m.GetMergeMethod() + " " + m.GetCommitTitle(); text != "alice squash Pull topic (#1)" {
			t.Errorf("got %s", text)
		}
	}
	see()
	check(t, w.Sim.CheckRun(repo, p.Pull.HeadSHA, "build", "success", ""))
	see()
	if got := w.Settled(); !slices.Contains(got, "pull_request.closed") || slices.Contains(got, "pull_request.auto_merge_disabled") {
		t.Errorf("got webhooks %v", got)
	}
}
