package evidence_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/errand-bot/errand/internal/forge/forgetest"
	"github.com/errand-bot/errand/internal/provenance"
	"github.com/errand-bot/errand/internal/sim/simgithub"
	"github.com/errand-bot/errand/internal/webtest"
	"github.com/errand-bot/errand/state"
)

// api sends a request with the App's token, as everybody can who stole it, and returns the answer.
func (s *scene) api(method, path string, in any) (out struct{ SHA string }) {
	s.t.Helper()
	body := forgetest.Must(json.Marshal(in))(s.t)
	req := forgetest.Must(http.NewRequestWithContext(s.t.Context(), method, s.BaseURL()+"/api/v3/repos/octo/app/git/"+path, bytes.NewReader(body)))(s.t)
	req.Header.Set("Authorization", "Bearer "+s.token)
	resp := forgetest.Must(webtest.Client().Do(req))(s.t)
	defer resp.Body.Close()
	if resp.StatusCode >= 300 {
		s.t.Fatalf("%s %s: %s", method, path, resp.Status)
	}
	s.check(json.NewDecoder(resp.Body).Decode(&out))
	return out
}

// onBase pushes a file to the base.
func (s *scene) onBase(path string) string {
	s.t.Helper()
	return forgetest.Must(s.As("wendy").PushCommit(repo, simgithub.Commit{Branch: "main", Message: "Theirs", Files: map[string]string{path: "theirs\n"}}))(s.t)
}

// update moves the base, has GitHub update the branch for errand, and states it.
func (s *scene) update(method state.UpdateMethod) state.Publication {
	s.t.Helper()
	p := state.Publication{Base: s.onBase(fmt.Sprintf("dir/%s%d.txt", method, len(s.task.Publications))), At: time.Now(), Update: &state.BranchUpdate{Method: method, By: s.person("wendy"), Before: s.head(branch)}}
	m := forgetest.Must(s.Forge.Merging(s.t.Context(), s.Repo, s.task.PR.Number))(s.t)
	forgetest.Must(s.Forge.UpdatePRBranch(s.t.Context(), s.Repo, m.Node, p.Update.Before, method == state.UpdateRebase))(s.t)
	p.Head = s.head(branch)
	p.Tree = s.treeOf(p.Head)
	s.state(p)
	return p
}

func (s *scene) treeOf(commit string) string {
	return forgetest.Must(s.As("octo").Repo(repo))(s.t).Git.Commit(commit).Tree
}

// state states an update, instead of what was stated about it before.
func (s *scene) state(p state.Publication) {
	s.t.Helper()
	if n := len(s.task.Publications); s.task.Publications[n-1].Update == p.Update {
		s.task.Publications = s.task.Publications[:n-1]
	}
	if !s.task.AddUpdate(p, time.Time{}) {
		s.t.Fatal("the update is not stored")
	}
	s.post(s.statement())
}

// open states an update whose result errand does not know.
func (s *scene) open(p state.Publication) {
	p.Base, p.Head, p.Tree = "", "", ""
	s.state(p)
}

// replace puts a commit with a changed file in the place of the head, in errand's name.
func (s *scene) replace(path string, parents ...string) string {
	s.t.Helper()
	type m = map[string]any
	tree := s.api("POST", "trees", m{"base_tree": s.treeOf(s.head(branch)), "tree": []m{{"path": path, "mode": "100644", "type": "blob", "content": "a back door\n"}}})
	commit := s.api("POST", "commits", m{"message": "Merge branch 'main'", "tree": tree.SHA, "parents": parents})
	s.force(commit.SHA)
	return commit.SHA
}

// TestUpdatesFromTheBase: the chain holds after GitHub has merged the base into the branch, or rebased it, at errand's request. A merge or a rebase
// that changes something else is found, also if nobody knows its result, or if it is in no statement.
func TestUpdatesFromTheBase(t *testing.T) {
	t.Parallel()
	const merge, rebase = state.UpdateMerge, state.UpdateRebase
	for name, c := range map[string]struct {
		play  func(s *scene)
		want  string
		words string
	}{
		"a merge":               {play: func(s *scene) { s.update(merge) }, words: "as @wendy requested: the result has the newest commits of the base, and changes nothing else: 2 paths changed"},
		"two merges":            {play: func(s *scene) { s.update(merge); s.update(merge) }, words: "all published commits (2)"},
		"a merge, open":         {play: func(s *scene) { s.open(s.update(merge)) }, words: "GitHub merged the base into"},
		"a merge that is not":   {play: func(s *scene) { p := s.update(merge); s.force(p.Update.Before); s.open(p) }},
		"a merge dropped again": {play: func(s *scene) { s.force(s.update(merge).Update.Before) }, want: "commits: altered", words: "GitHub updated the branch to"},
		"a merge in no statement": {play: func(s *scene) {
			s.update(merge)
			s.task.Publications = s.task.Publications[:1]
			s.post(s.statement())
		}, want: "commit: unknown", words: "that is not in the statement; it has the newest commits of the base, and changes nothing else"},
		"a merge with a file more": {play: func(s *scene) {
			p := s.update(merge)
			p.Head = s.replace("door.txt", p.Update.Before, p.Base)
			p.Tree = s.treeOf(p.Head)
			s.state(p)
		}, want: "update: altered", words: "changes 1 path in another way than the pull request and its base: door.txt"},
		"a merge with a file of the base changed": {play: func(s *scene) {
			p := s.update(merge)
			p.Head = s.replace("dir/merge1.txt", p.Update.Before, p.Base)
			p.Tree = s.treeOf(p.Head)
			s.state(p)
		}, want: "update: altered", words: "base: dir/merge1.txt"},
		"a merge of something else": {play: func(s *scene) {
			p := s.update(merge)
			p.Head = s.replace("door.txt", p.Update.Before, s.other("wendy"))
			p.Tree = s.treeOf(p.Head)
			s.state(p)
		}, want: "commit: by others, update: altered", words: "is not a merge of the stated commits"},
		"a merge with a file more, open": {play: func(s *scene) {
			p := s.update(merge)
			s.replace("door.txt", p.Update.Before, p.Base)
			s.open(p)
		}, want: "update: unknown", words: "door.txt; errand does not know the result"},
		"a merge with a file more in no statement": {play: func(s *scene) {
			p := s.update(merge)
			s.replace("door.txt", p.Update.Before, p.Base)
			s.task.Publications = s.task.Publications[:1]
			s.post(s.statement())
		}, want: "commit: altered", words: "door.txt"},
		"a merge replaced by another": {play: func(s *scene) { p := s.update(merge); s.replace("door.txt", p.Update.Before, p.Base) }, want: "commits: altered, commit: altered", words: "door.txt"},
		"a rebase":                    {play: func(s *scene) { s.update(rebase) }, words: "as @wendy requested: the result makes the same changes to the base as the commits that it replaced: 2 paths changed"},
		"a rebase, open":              {play: func(s *scene) { s.open(s.update(rebase)) }, words: "GitHub rebased"},
		"a rebase that is not":        {play: func(s *scene) { p := s.update(rebase); s.force(p.Update.Before); s.open(p) }},
		"a rebase undone":             {play: func(s *scene) { s.force(s.update(rebase).Update.Before) }, want: "commits: altered, commit: altered, commit: altered"},
		"a rebase after a person":     {play: func(s *scene) { s.push("wendy", "more.txt"); s.update(rebase) }, want: "commit: by others"},
		"a rebase and a push":         {play: func(s *scene) { s.update(rebase); s.push("wendy", "more.txt") }, want: "commit: by others"},
		"a rebase and a round":        {play: func(s *scene) { s.update(rebase); s.round() }, words: "published since (1)"},
		"a rebase, open, and a round": {play: func(s *scene) { s.open(s.update(rebase)); s.round() }, words: "published since (1)"},
		"a merge and a rebase":        {play: func(s *scene) { s.update(merge); s.update(rebase) }},
		"two rebases":                 {play: func(s *scene) { s.update(rebase); s.round(); s.update(rebase) }, words: "all commits that were published since (1)"},
		"a rebase with a file more": {play: func(s *scene) {
			p := s.update(rebase)
			p.Head = s.replace("door.txt", p.Head)
			p.Tree = s.treeOf(p.Head)
			s.state(p)
		}, want: "update: altered", words: "door.txt"},
		"a rebase with a file more, open":         {play: func(s *scene) { p := s.update(rebase); s.replace("door.txt", p.Head); s.open(p) }, want: "update: unknown", words: "door.txt; errand does not know the result"},
		"a rebase, and a commit in errand's name": {play: func(s *scene) { p := s.update(rebase); s.replace("door.txt", p.Head) }, want: "commit: altered"},
		"a rebase of commits that errand did not publish": {play: func(s *scene) {
			p := s.replace("door.txt", s.head(branch))
			if s.update(rebase).Update.Before != p {
				s.t.Error("the rebase replaced another head")
			}
		}, want: "commit: altered"},
		"a rebase of something else": {play: func(s *scene) {
			p := s.update(rebase)
			p.Update.Before = s.other("wendy")
			s.state(p)
		}, want: "update: altered, commits: altered"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newScene(t, state.ViaReaction)
			c.play(s)
			r := forgetest.Must(provenance.Verify(t.Context(), s.reader(), 2, s.keys()))(t)
			details := ""
			for _, l := range r.Links {
				details += l.Name + ": " + l.Detail + "\n"
			}
			if got := faults(r); got != c.want || !strings.Contains(details, c.words) {
				t.Errorf("got %q, want %q with %q:\n%s", got, c.want, c.words, details)
			}
		})
	}
}

// round publishes a further commit.
func (s *scene) round() {
	s.t.Helper()
	head := s.head(branch)
	sha := s.replace("round.txt", head)
	s.task.Work = &state.Work{Run: "1-1-1", Base: head, Head: sha, Tree: s.treeOf(sha), Published: []state.PublishedCommit{{ID: sha, Tree: s.treeOf(sha)}}}
	s.task.AddPublication(time.Now(), time.Time{})
	s.post(s.statement())
}
