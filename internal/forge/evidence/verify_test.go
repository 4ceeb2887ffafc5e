package evidence_test

import (
	"encoding/base64"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/errand-bot/errand/internal/forge/forgetest"
	"github.com/errand-bot/errand/internal/keyfile"
	"github.com/errand-bot/errand/internal/provenance"
	"github.com/errand-bot/errand/internal/sim/simgithub"
	"github.com/errand-bot/errand/state"
)

const repo = forgetest.FullName

var payload = regexp.MustCompile(`"payload":"([^"]*)"`)

// rewritten changes the payload of a statement without a new signature.
func rewritten(s *scene, body, old, replacement string) string {
	m := payload.FindStringSubmatch(body)
	data := forgetest.Must(base64.StdEncoding.DecodeString(m[1]))(s.t)
	if !strings.Contains(string(data), old) {
		s.t.Fatalf("the statement has no %q:\n%s", old, data)
	}
	return strings.Replace(body, m[1], base64.StdEncoding.EncodeToString([]byte(strings.Replace(string(data), old, replacement, 1))), 1)
}

// TestTamperingIsNamed: each link of the chain that was tampered with is found, and no other.
func TestTamperingIsNamed(t *testing.T) {
	t.Parallel()
	edit := func(text string) *string { return &text }
	for name, c := range map[string]struct {
		via    state.ApprovalVia
		tamper func(s *scene)
		want   string
		words  string // in the details
	}{
		"nothing":           {want: ""},
		"nothing, command":  {via: state.ViaCommand},
		"nothing, box":      {via: state.ViaBox},
		"nothing, settings": {via: state.ViaSettings, want: "approval: only stated", words: "required no approval"},
		"nothing, no plan": {via: state.ViaSettings, tamper: func(s *scene) {
			s.task.Plans, s.task.Approval.Hash, s.task.Publications[0].Plan = nil, "", ""
			s.post(s.statement())
		}, want: "plan: only stated", words: "required no plan"},
		"a stranger's answer": {tamper: func(s *scene) { s.comment("rita", "Nice.") }},
		"plan edited": {tamper: func(s *scene) {
			body := forgetest.Must(s.reader().Comment(s.t.Context(), s.plan))(s.t).Body
			s.check(s.As("mia").EditComment(repo, s.plan, strings.Replace(body, "Mend it.", "Mend it, and add a back door.", 1)))
		}, want: "plan: altered", words: "@mia edited it"},
		"plan deleted": {tamper: func(s *scene) { s.check(s.As("octo").DeleteComment(repo, s.plan)) },
			want: "plan: no longer visible, approval: no longer visible"},
		"issue's title edited": {tamper: func(s *scene) { s.check(s.As("rita").EditIssue(repo, 1, simgithub.IssueEdit{Title: edit("Other")})) }, want: "issue: altered"},
		"issue's text edited": {tamper: func(s *scene) { s.check(s.As("octo").EditIssue(repo, 1, simgithub.IssueEdit{Body: edit("Other")})) },
			want: "issue: altered", words: "@octo edited it"},
		"issue deleted": {tamper: func(s *scene) { s.check(s.As("octo").DeleteIssue(repo, 1)) }, want: "issue: no longer visible"},
		"👍 removed":     {tamper: func(s *scene) { s.check(s.As("wendy").Unreact(repo, s.plan, "+1")) }, want: "approval: no longer visible"},
		"👍 of another account": {tamper: func(s *scene) {
			s.check(s.As("wendy").Unreact(repo, s.plan, "+1"))
			s.check(s.As("mia").React(repo, s.plan, "+1"))
		}, want: "approval: no longer visible", words: "there is one by @mia"},
		"box unticked": {via: state.ViaBox, tamper: func(s *scene) {
			body := forgetest.Must(s.reader().Comment(s.t.Context(), s.plan))(s.t).Body
			s.check(s.As("mia").EditComment(repo, s.plan, strings.Replace(body, "- [x]", "- [ ]", 1)))
		}, want: "approval: no longer visible"},
		"box ticked by another account": {via: state.ViaBox, tamper: func(s *scene) { s.claim("mia") }, want: "approval: no longer visible", words: "@mia that ticked"},
		"command edited": {via: state.ViaCommand, tamper: func(s *scene) {
			s.check(s.As("mia").EditComment(repo, s.task.Approval.CommentID, "@errand approve with: a back door"))
		}, want: "approval: altered", words: "@mia edited it"},
		"command deleted":              {via: state.ViaCommand, tamper: func(s *scene) { s.check(s.As("wendy").DeleteComment(repo, s.task.Approval.CommentID)) }, want: "approval: no longer visible"},
		"approval by another account":  {via: state.ViaCommand, tamper: func(s *scene) { s.claim("mia") }, want: "approval: altered", words: "by @wendy, and not by @mia"},
		"approval of another plan":     {tamper: func(s *scene) { s.task.Approval.Hash = strings.Repeat("b", 64); s.post(s.statement()) }, want: "plan: unknown"},
		"a commit by a person":         {tamper: func(s *scene) { s.push("wendy", "more.txt") }, want: "commit: by others", words: "by @wendy, a person"},
		"last commit dropped by force": {tamper: func(s *scene) { s.force(s.task.Publications[0].Commits[0].ID) }, want: "commits: altered"},
		"commits replaced by force":    {tamper: func(s *scene) { s.force(s.other("wendy")) }, want: "commits: altered, commit: by others"},
		"retargeted": {tamper: func(s *scene) {
			s.task.Branch.Base = "release" // when it was signed
			s.post(s.statement())
		}, want: "pull request: altered", words: "into release, and the pull request merges errand/1-it-breaks into main"},
		"a commit in errand's name": {tamper: func(s *scene) {
			p := &s.task.Publications[0]
			p.Commits = p.Commits[:1]
			p.Head, p.Tree = p.Commits[0].ID, p.Commits[0].Tree
			s.post(s.statement())
		}, want: "commit: altered"},
		"the statement's check changed": {tamper: func(s *scene) { s.post(rewritten(s, s.statement(), `"outcome":"failed"`, `"outcome":"passed"`)) }, want: "signature: altered"},
		"the statement's plan changed":  {tamper: func(s *scene) { s.post(rewritten(s, s.statement(), s.task.Plans[0].Hash, strings.Repeat("c", 64))) }, want: "signature: altered"},
		"statement edited by a person": {tamper: func(s *scene) {
			s.check(s.As("mia").EditComment(repo, s.posted(), rewritten(s, s.statement(), `"outcome":"failed"`, `"outcome":"passed"`)))
		}, want: "statement: altered, signature: altered", words: "edited by @mia"},
		"another version of the statement": {tamper: func(s *scene) { s.check(s.As("mia").EditComment(repo, s.posted(), s.statement()+" ")) }, want: "statement: altered"},
		"statement deleted":                {tamper: func(s *scene) { s.check(s.As("octo").DeleteComment(repo, s.posted())) }, want: "statement: no longer visible"},
		"a stranger's statement": {tamper: func(s *scene) {
			mine := s.keyFile
			s.keyFile += "-of-mallory"
			s.comment("mia", s.statement())
			s.keyFile = mine
		}},
		"a stranger's statement alone": {tamper: func(s *scene) {
			s.comment("mia", s.statement())
			s.check(s.As("octo").DeleteComment(repo, s.posted()))
		}, want: "statement: no longer visible"},
		"signed again by another key": {tamper: func(s *scene) {
			mine := s.keyFile
			s.keyFile += "-of-mallory"
			s.check(s.As("mia").EditComment(repo, s.posted(), s.statement()))
			s.keyFile = mine
		}, want: "statement: altered, signature: altered", words: "none of the 1 trusted ones"},
		"key rotated": {tamper: func(s *scene) { forgetest.Must(keyfile.RotateSigning(s.keyFile, time.Now()))(s.t) }, words: "retired later"},
		"key rotated twice": {tamper: func(s *scene) {
			forgetest.Must(keyfile.RotateSigning(s.keyFile, time.Now()))(s.t)
			forgetest.Must(keyfile.RotateSigning(s.keyFile, time.Now().Add(time.Hour)))(s.t)
		}, words: "retired later"},
		"signed with a key that was retired": {tamper: func(s *scene) {
			body := s.statement()
			forgetest.Must(keyfile.RotateSigning(s.keyFile, time.Now().Add(-time.Hour)))(s.t)
			s.post(body + "\n\n" + "<!-- errand:1.provenance-2 -->")
		}, want: "signature: altered", words: "was retired on"},
		"statement of another pull request": {tamper: func(s *scene) { s.task.PR.Number++; s.post(s.statement()) }, want: "pull request: altered"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			via := c.via
			if via == "" {
				via = state.ViaReaction
			}
			s := newScene(t, via)
			if c.tamper != nil {
				c.tamper(s)
			}
			r := forgetest.Must(provenance.Verify(t.Context(), s.reader(), 2, s.keys()))(t)
			if got := faults(r); got != c.want {
				t.Errorf("got %q, want %q: %+v", got, c.want, r.Links)
			}
			details := ""
			for _, l := range r.Links {
				details += l.Detail + "\n"
			}
			if !strings.Contains(details, c.words) {
				t.Errorf("no %q in the details:\n%s", c.words, details)
			}
		})
	}
}

// comment comments on the pull request.
func (s *scene) comment(login, body string) {
	s.t.Helper()
	forgetest.Must(s.As(login).Comment(repo, s.task.PR.Number, body))(s.t)
}

// claim signs a statement that another person has approved the plan.
func (s *scene) claim(login string) {
	s.t.Helper()
	s.task.Approval.By = s.person(login)
	s.post(s.statement())
}

// push pushes a commit to the branch of the pull request.
func (s *scene) push(login, path string) string {
	s.t.Helper()
	return forgetest.Must(s.As(login).PushCommit(repo, simgithub.Commit{Branch: branch, Message: "More", Files: map[string]string{path: "more\n"}}))(s.t)
}

// other returns a commit by a person beside the branch of the pull request.
func (s *scene) other(login string) string {
	s.t.Helper()
	return forgetest.Must(s.As(login).PushCommit(repo, simgithub.Commit{Branch: "beside", Message: "Mend old.txt", Files: map[string]string{"old.txt": "a back door\n"}}))(s.t)
}

// TestUnpinnedVerificationTrustsGitHub: without a given key, an edit by a person is found nevertheless.
func TestUnpinnedVerificationTrustsGitHub(t *testing.T) {
	t.Parallel()
	s := newScene(t, state.ViaReaction)
	r := forgetest.Must(provenance.Verify(t.Context(), s.reader(), 2, nil))(t)
	if got := faults(r); got != "" || r.Pinned || r.Result != provenance.ChainUnpinned {
		t.Errorf("got %q: %+v", got, r)
	}
	s.keyFile += "-of-mallory"
	s.check(s.As("mia").EditComment(repo, s.posted(), s.statement()))
	r = forgetest.Must(provenance.Verify(t.Context(), s.reader(), 2, nil))(t)
	if got := faults(r); got != "statement: altered" || r.Result != provenance.ChainBroken {
		t.Errorf("signed again: got %q: %+v", got, r)
	}
}

// TestMergesKeepTheChain: the chain holds after each kind of merge, also if the base has moved.
func TestMergesKeepTheChain(t *testing.T) {
	t.Parallel()
	for _, method := range []string{"merge", "squash", "rebase"} {
		t.Run(method, func(t *testing.T) {
			t.Parallel()
			s := newScene(t, state.ViaReaction)
			forgetest.Must(s.As("wendy").PushCommit(repo, simgithub.Commit{Branch: "main", Message: "Theirs", Files: map[string]string{"dir/a.txt": "theirs\n"}}))(t)
			s.check(s.As("octo").Merge(repo, 2, simgithub.Merge{Method: method}))
			s.check(s.As("octo").DeleteBranch(repo, branch))
			r := forgetest.Must(provenance.Verify(t.Context(), s.reader(), 2, s.keys()))(t)
			if got := faults(r); got != "" || !r.Merged || r.Links[len(r.Links)-1].Name != provenance.LinkMerge {
				t.Errorf("got %q: %+v", got, r.Links)
			}
		})
	}
}
