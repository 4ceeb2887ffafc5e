package simgithub_test

import (
	"maps"
	"strings"
	"testing"

	"github.com/errand-bot/errand/internal/sim/simgithub"
)

// grant changes the permissions of the App's installation, and gets it a new token.
func (w *world) grant(perms map[string]string) {
	w.T.Helper()
	all := permissions()
	maps.Copy(all, perms)
	w.Sim.GrantPermissions("octo", all)
	w.Sim.ExpireTokens()
	w.clients()
}

// refusal compares the errors of a mutation with the expected type and a part of the message; an empty type expects none.
func refusal(t *testing.T, errs []gqlError, kind, with string) {
	t.Helper()
	if kind == "" && len(errs) == 0 || kind != "" && len(errs) == 1 && errs[0].Type == kind && strings.Contains(errs[0].Message, with) {
		return
	}
	t.Errorf("got %+v, want %q with %q", errs, kind, with)
}

// mutation calls a mutation with one input, which returns the pull request's number.
func (w *world) mutation(by, name string, in map[string]any) []gqlError {
	w.T.Helper()
	kind := strings.ToUpper(name[:1]) + name[1:] + "Input"
	fields := "pullRequest{ number merged }"
	if strings.HasSuffix(name, "queuePullRequest") {
		fields = "mergeQueueEntry{ id position state enqueuer{ login } pullRequest{ number } }"
	}
	return w.graphqlAs(by, `mutation($in:`+kind+`!){ `+name+`(input:$in){ `+fields+` } }`, map[string]any{"in": in}, nil)
}

// pullOf opens a pull request with one commit that changes a file of main.
func (w *world) pullOf(branch string) *simgithub.Issue {
	w.T.Helper()
	return w.Pull("octo", branch, map[string]string{"calc.go": fixed}, "")
}

// conflict changes the same file on main.
func (w *world) conflict() {
	w.T.Helper()
	files := map[string]string{"calc.go": "package calc // other\n"}
	_, err := w.Owner.PushCommit(repo, simgithub.Commit{Branch: "main", Message: "Other", Files: files})
	check(w.T, err)
}

// now returns the present state of a pull request.
func (w *world) now(n int) *simgithub.Issue {
	w.T.Helper()
	i, err := w.Owner.Issue(repo, n)
	check(w.T, err)
	return i
}

// A pull request is merged by GraphQL by those who may write, App or person, unless something is missing.
func TestMergePullRequest(t *testing.T) {
	t.Parallel()
	const kind = "UNPROCESSABLE"
	for name, c := range map[string]struct {
		by      string // empty: the App
		prepare func(w *world, n int)
		in      map[string]any
		refused string
		with    string
		commit  string // first line of the result
	}{
		"by the App":  {commit: "Merge pull request #1 from octo/topic"},
		"by a writer": {by: "alice", commit: "Merge pull request #1 from octo/topic"},
		"by a reader": {by: "rob", refused: "FORBIDDEN", with: "Must have write rights"},
		"squashed":    {in: map[string]any{"mergeMethod": "SQUASH", "commitHeadline": "Fix it", "commitBody": "Now."}, commit: "Fix it"},
		"rebased":     {by: "alice", in: map[string]any{"mergeMethod": "REBASE"}, commit: "Change topic"},
		"without files": {prepare: func(w *world, _ int) {
			w.grant(map[string]string{"contents": "read"})
		}, refused: "FORBIDDEN", with: "Resource not accessible"},
		"without pulls": {prepare: func(w *world, _ int) {
			w.grant(map[string]string{"pull_requests": "read"})
		}, refused: "FORBIDDEN", with: "Resource not accessible"},
		"another head": {in: map[string]any{"expectedHeadOid": strings.Repeat("0", 40)},
			refused: kind, with: "Head branch was modified. Review and try the merge again."},
		"a draft":      {prepare: func(w *world, n int) { check(w.T, w.Owner.SetDraft(repo, n, true)) }, refused: kind, with: "still a draft"},
		"a closed one": {prepare: func(w *world, n int) { check(w.T, w.Owner.Close(repo, n, "")) }, refused: kind, with: "is not mergeable"},
		"a conflict":   {prepare: func(w *world, _ int) { w.conflict() }, refused: kind, with: "is not mergeable"},
		"a missing check": {prepare: func(w *world, _ int) {
			check(w.T, w.Sim.RequireChecks(repo, "main", simgithub.RequiredCheck{Context: "build"}))
		}, refused: kind, with: "Repository rule violations found\n\nRequired status check \"build\" is expected."},
		"a check missing by protection": {by: "alice", prepare: func(w *world, _ int) {
			check(w.T, w.Sim.RequireChecks(repo, "main", simgithub.RequiredCheck{Context: "build", Classic: true}))
		}, refused: kind, with: "Required status check"},
		"a method that is not allowed": {prepare: func(w *world, _ int) {
			check(w.T, w.Sim.AllowMerges(repo, "squash"))
		}, refused: kind, with: "Merge commits are not allowed"},
		"a merge queue": {prepare: func(w *world, _ int) { check(w.T, w.Sim.RequireMergeQueue(repo, "main", true)) },
			refused: kind, with: "Changes must be made through the merge queue"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			p := w.pullOf("topic")
			if c.prepare != nil {
				c.prepare(w, p.Number)
			}
			in := map[string]any{"pullRequestId": p.NodeID, "expectedHeadOid": p.Pull.HeadSHA}
			maps.Copy(in, c.in)
			refusal(t, w.mutation(c.by, "mergePullRequest", in), c.refused, c.with)
			now := w.now(p.Number)
			if now.Pull.Merged != (c.refused == "") {
				t.Errorf("merged: %v", now.Pull.Merged)
			}
			if c.commit == "" {
				return
			}
			r, err := w.Owner.Repo(repo)
			check(t, err)
			if got, _, _ := strings.Cut(r.Git.Commit("refs/heads/main").Message, "\n"); got != c.commit {
				t.Errorf("got commit %q, want %q", got, c.commit)
			}
		})
	}
}

// The settings of a repository about merging, by GraphQL and by REST.
func TestMergeSettings(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		by      string
		methods []string
		auto    bool
		first   string
	}{
		"as created, by the App":     {first: "MERGE"},
		"squash and rebase":          {by: "alice", methods: []string{"rebase", "squash"}, auto: true, first: "SQUASH"},
		"only rebase, by a reader":   {by: "rob", methods: []string{"rebase"}, first: "REBASE"},
		"with auto-merge by the App": {methods: []string{"merge", "rebase"}, auto: true, first: "MERGE"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			if c.methods != nil {
				check(t, w.Sim.AllowMerges(repo, c.methods...))
			}
			check(t, w.Sim.AllowAutoMerge(repo, c.auto))
			var out struct {
				Repository struct {
					AutoMergeAllowed         bool
					ViewerDefaultMergeMethod string
				}
			}
			errs := w.graphqlAs(c.by, `{ repository(owner:"octo",name:"calc"){ autoMergeAllowed viewerDefaultMergeMethod } }`, nil, &out)
			if len(errs) != 0 || out.Repository.AutoMergeAllowed != c.auto || out.Repository.ViewerDefaultMergeMethod != c.first {
				t.Errorf("got %+v %+v", out, errs)
			}
			r, _, err := w.bot.Repositories.Get(t.Context(), "octo", "calc")
			check(t, err)
			if r.GetAllowAutoMerge() != c.auto || r.GetAllowMergeCommit() != (c.first == "MERGE") {
				t.Errorf("got auto-merge %v, merge commits %v", r.GetAllowAutoMerge(), r.GetAllowMergeCommit())
			}
		})
	}
}
