package web_test

import (
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/errand-bot/errand/internal/sim/simgithub"
)

// An issue's whole life is possible with the forms of its page.
func TestIssueByForms(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	alice := w.browse("alice")
	w.Settled()

	at := alice.submit("/octo/calc/issues/new", form{act: "open"},
		url.Values{"title": {"Add subtracts"}, "body": {"- [ ] one\r\n- [ ] two\r\n"}, "labels": {"bug, now"}, "assignee": {"alice"}})
	if at.status != http.StatusOK || at.path != "/octo/calc/issues/1" {
		t.Fatalf("opening: got %d and location %s", at.status, at.path)
	}
	if got := w.Settled(); !slices.Contains(got, "issues.opened") || !slices.Contains(got, "issues.assigned") {
		t.Errorf("opening: got webhooks %v", got)
	}
	talk, err := w.Owner.Comment(repo, 1, "First words.")
	check(t, err)
	id := strconv.FormatInt(talk.ID, 10)
	onTalk := map[string]string{"kind": "talk", "id": id}
	w.Settled()

	for _, step := range []struct {
		name string
		form form
		fill url.Values
		want string // expected fact of the issue, by the function below
		hook string // expected webhook; empty for none
		to   string // fragment of the redirect
	}{
		{"assign", form{act: "assign"}, url.Values{"login": {"rob"}}, "assignees=[alice rob]", "issues.assigned", ""},
		{"unassign", form{act: "unassign", with: map[string]string{"login": "rob"}}, nil, "assignees=[alice]", "issues.unassigned", ""},
		{"label", form{act: "label"}, url.Values{"label": {"later"}}, "labels=[bug now later]", "issues.labeled", ""},
		{"unlabel", form{act: "unlabel", with: map[string]string{"label": "now"}}, nil, "labels=[bug later]", "issues.unlabeled", ""},
		{"title", form{act: "title"}, url.Values{"title": {"Add adds wrongly"}}, "title=Add adds wrongly", "issues.edited", ""},
		{"edit the body", form{act: "edit_text", with: map[string]string{"kind": "issue"}}, url.Values{"body": {"- [ ] one\r\n- [ ] two\r\nMore."}}, "body=- [ ] one\n- [ ] two\nMore.", "issues.edited", "issue-1"},
		{"tick in the body", form{act: "tick", with: map[string]string{"kind": "issue"}}, url.Values{"box": {"1"}}, "body=- [ ] one\n- [x] two\nMore.", "issues.edited", "issue-1"},
		{"comment", form{act: "comment"}, url.Values{"body": {"Second words."}}, "comments=2", "issue_comment.created", "*"},
		{"edit a comment", form{act: "edit_text", with: onTalk}, url.Values{"body": {"Other words."}}, "first=Other words.", "issue_comment.edited", "issuecomment-" + id},
		{"react", form{act: "react", with: onTalk}, url.Values{"content": {"+1"}}, "reactions=alice:+1", "", "issuecomment-" + id},
		{"delete the comment's reaction", form{act: "react", with: onTalk}, url.Values{"content": {"+1"}}, "reactions=", "", "issuecomment-" + id},
		{"react to the issue", form{act: "react", with: map[string]string{"kind": "issue"}}, url.Values{"content": {"rocket"}}, "ownreactions=alice:rocket", "", "issue-1"},
		{"fold", form{act: "fold", with: onTalk}, url.Values{"reason": {"outdated"}}, "folded=outdated", "", "issuecomment-" + id},
		{"unfold", form{act: "fold", with: onTalk}, nil, "folded=", "", "issuecomment-" + id},
		{"lock", form{act: "lock"}, url.Values{"reason": {"spam"}}, "locked=spam", "issues.locked", ""},
		{"unlock", form{act: "unlock"}, nil, "locked=", "issues.unlocked", ""},
		{"delete a comment", form{act: "delete", with: onTalk}, nil, "comments=1", "issue_comment.deleted", ""},
		{"close with a comment", form{act: "comment"}, url.Values{"body": {"Done."}, "then": {"not_planned"}}, "state=closed not_planned", "issues.closed", "*"},
		{"reopen without a comment", form{act: "comment"}, url.Values{"then": {"reopen"}}, "state=open reopened", "issues.reopened", "end"},
	} {
		at := alice.submit("/octo/calc/issues/1", step.form, step.fill)
		if at.status != http.StatusOK {
			t.Fatalf("%s: %d\n%s", step.name, at.status, at.body)
		}
		_, fragment, _ := strings.Cut(at.path, "#")
		if step.to != "*" && fragment != step.to {
			t.Errorf("%s: got redirect to %q, want %q", step.name, fragment, step.to)
		}
		if got := facts(w.issueNow(1)); !slices.Contains(got, step.want) {
			t.Errorf("%s: %q is missing in %q", step.name, step.want, got)
		}
		if got := w.Settled(); step.hook == "" && len(got) > 0 || step.hook != "" && !slices.Contains(got, step.hook) {
			t.Errorf("%s: got webhooks %v, want %q", step.name, got, step.hook)
		}
	}
}

// facts returns the fields of an issue that tests check.
func facts(i *simgithub.Issue) []string {
	given := func(list []*simgithub.Reaction) string {
		var out []string
		for _, r := range list {
			out = append(out, r.User+":"+r.Content)
		}
		return strings.Join(out, " ")
	}
	list := []string{
		"state=" + strings.TrimSpace(i.State+" "+i.StateReason), "title=" + i.Title, "body=" + i.Body, "comments=" + strconv.Itoa(len(i.Comments)),
		"assignees=[" + strings.Join(i.Assignees, " ") + "]", "labels=[" + strings.Join(i.Labels, " ") + "]", "ownreactions=" + given(i.Reactions),
		"locked=" + i.LockReason,
	}
	if len(i.Comments) > 0 {
		k := i.Comments[0]
		list = append(list, "first="+k.Body, "reactions="+given(k.Reactions), "folded="+k.MinimizedReason)
	}
	return list
}

// A dependency on another issue can be added and removed.
func TestBlockByForms(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.Issue("Later")
	blocker := w.Issue("First")
	b := w.browse("alice")
	w.Settled()
	b.submit("/octo/calc/issues/1", form{act: "block"}, url.Values{"number": {"2"}})
	if got := w.issueNow(1).BlockedBy; !slices.Equal(got, []int64{blocker.ID}) {
		t.Errorf("got blockers %v", got)
	}
	if got := w.Settled(); !slices.ContainsFunc(got, func(h string) bool { return strings.HasPrefix(h, "issue_dependencies.") }) {
		t.Errorf("got webhooks %v", got)
	}
	if p := b.submit("/octo/calc/issues/1", form{act: "block"}, url.Values{"number": {"77"}}); p.status != http.StatusUnprocessableEntity {
		t.Errorf("unknown issue: got %d", p.status)
	}
	b.submit("/octo/calc/issues/1", form{act: "unblock", with: map[string]string{"number": "2"}}, nil)
	if got := w.issueNow(1).BlockedBy; len(got) != 0 {
		t.Errorf("got blockers %v", got)
	}
}

// Ticking a box sends an edit with the previous text, on which errand depends.
func TestTickSendsEdit(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.Issue("Boxes")
	const before = "Plan\n\n- [x] done\n- [ ] **Approve** this\n\n```\n- [ ] no box\n```\n"
	k, err := w.Owner.Comment(repo, 1, before)
	check(t, err)
	w.Settled()
	w.browse("alice").submit("/octo/calc/issues/1", form{act: "tick", with: map[string]string{"kind": "talk"}}, url.Values{"box": {"1"}})
	ctx := t.Context()
	check(t, w.Sim.WaitHooks(ctx))
	h, ok := w.Inbox.Last("issue_comment.edited")
	if !ok {
		t.Fatal("no issue_comment.edited was sent")
	}
	var got struct {
		Changes struct{ Body struct{ From string } }
		Comment struct {
			ID   int64
			Body string
		}
		Sender struct{ Login string }
	}
	check(t, json.Unmarshal(h.Body, &got))
	want := strings.Replace(before, "- [ ] **Approve**", "- [x] **Approve**", 1)
	if got.Changes.Body.From != before || got.Comment.Body != want || got.Comment.ID != k.ID || got.Sender.Login != "alice" {
		t.Errorf("got edit %+v", got)
	}
}

// Forms that were shown with an older text are refused.
func TestStaleFormsAreRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.Issue("Boxes")
	k, err := w.Owner.Comment(repo, 1, "- [ ] a\n")
	check(t, err)
	b := w.browse("alice")
	fields, action, ok := form{act: "tick", with: map[string]string{"kind": "talk"}}.find(b.get("/octo/calc/issues/1").doc)
	if !ok {
		t.Fatal("no box to tick")
	}
	check(t, w.Owner.EditComment(repo, k.ID, "- [ ] b\n- [ ] a\n"))
	fields.Set("box", "0")
	resp, err := b.hc.PostForm(b.base+action, fields)
	if p := b.read(resp, err); p.status != http.StatusConflict || !strings.Contains(p.body, "has changed since") {
		t.Errorf("stale tick: got %d", p.status)
	}
	if got := w.issueNow(1).Comments[0].Body; got != "- [ ] b\n- [ ] a\n" {
		t.Errorf("got comment %q", got)
	}
}

// Acts that GitHub refuses change nothing, and the page shows the reason.
func TestRefusedFormsChangeNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.Issue("Refuse")
	k, err := w.Owner.Comment(repo, 1, "- [ ] mine\n")
	check(t, err)
	w.Pull("alice", "fix", map[string]string{"a.txt": "a\n"}, "")
	id := strconv.FormatInt(k.ID, 10)
	hash := digestOf(t, w, "octo", id)
	for name, tc := range map[string]struct {
		as, path string
		post     url.Values
		status   int
		says     string
	}{
		"assign without triage":          {"rob", "/octo/calc/issues/1", url.Values{"act": {"assign"}, "login": {"rob"}}, 403, "triage"},
		"assign an unassignable account": {"alice", "/octo/calc/issues/1", url.Values{"act": {"assign"}, "login": {"eve"}}, 422, "cannot be assigned"},
		"tick without write":             {"rob", "/octo/calc/issues/1", url.Values{"act": {"tick"}, "kind": {"talk"}, "id": {id}, "box": {"0"}, "hash": {hash}}, 403, "write"},
		"fold without write":             {"rob", "/octo/calc/issues/1", url.Values{"act": {"fold"}, "id": {id}, "reason": {"spam"}}, 403, "write"},
		"delete without write":           {"tina", "/octo/calc/issues/1", url.Values{"act": {"delete"}, "id": {id}}, 403, "write"},
		"an empty comment":               {"rob", "/octo/calc/issues/1", url.Values{"act": {"comment"}, "body": {"  "}}, 422, "blank"},
		"a missing box":                  {"octo", "/octo/calc/issues/1", url.Values{"act": {"tick"}, "kind": {"talk"}, "id": {id}, "box": {"7"}, "hash": {hash}}, 404, "Not Found"},
		"an unknown reaction":            {"octo", "/octo/calc/issues/1", url.Values{"act": {"react"}, "kind": {"talk"}, "id": {id}, "content": {"boo"}}, 422, "content is invalid"},
		"an unknown form":                {"octo", "/octo/calc/issues/1", url.Values{"act": {"explode"}}, 400, "no such form"},
		"no issue":                       {"octo", "/octo/calc/issues/99", url.Values{"act": {"comment"}, "body": {"hi"}}, 404, "Not Found"},
		"merge without write":            {"rob", "/octo/calc/pull/2", url.Values{"act": {"merge"}}, 403, "write"},
		"merge of an old head":           {"octo", "/octo/calc/pull/2", url.Values{"act": {"merge"}, "sha": {strings.Repeat("1", 40)}}, 409, "modified"},
		"approve by the author":          {"alice", "/octo/calc/pull/2", url.Values{"act": {"submit"}, "event": {"APPROVE"}}, 422, "approve your own"},
		"a line outside the diff":        {"octo", "/octo/calc/pull/2", url.Values{"act": {"line"}, "path": {"a.txt"}, "line": {"50"}, "side": {"RIGHT"}, "body": {"?"}}, 422, "part of the diff"},
		"act as the App":                 {"octo", "/_sim/as", url.Values{"act": {"as"}, "login": {"errand[bot]"}}, 404, "Not Found"},
		"a taken login":                  {"octo", "/_sim/people", url.Values{"act": {"add"}, "login": {"alice"}}, 422, "already exists"},
		"a bad login":                    {"octo", "/_sim/people", url.Values{"act": {"add"}, "login": {"-x"}}, 422, "login is"},
		"an unknown role":                {"octo", "/_sim/people", url.Values{"act": {"role"}, "repo": {repo}, "login": {"rob"}, "role": {"king"}}, 422, "permission is invalid"},
		"no such delivery":               {"octo", "/_sim/deliveries", url.Values{"act": {"redeliver"}, "id": {"1"}}, 404, "Not Found"},
	} {
		t.Run(name, func(t *testing.T) {
			before := digestAll(w)
			p := w.browse(tc.as).post(tc.path, tc.post)
			if p.status != tc.status || !strings.Contains(p.body, tc.says) {
				t.Errorf("got %d, want %d with %q:\n%s", p.status, tc.status, tc.says, alertOf(p))
			}
			if diff := cmp.Diff(before, digestAll(w)); diff != "" {
				t.Errorf("unexpected change:\n%s", diff)
			}
		})
	}
}

func digestAll(w *world) string { return w.Sim.Snapshot().String() }

// digestOf returns the hash in a form about a comment.
func digestOf(t *testing.T, w *world, login, id string) string {
	t.Helper()
	fields, _, ok := form{act: "tick", with: map[string]string{"id": id}}.find(w.browse(login).get("/octo/calc/issues/1").doc)
	if !ok {
		t.Fatal("no form about the comment")
	}
	return fields.Get("hash")
}

// alertOf returns the error message of a page.
func alertOf(p page) string {
	for n := range p.doc.Descendants() {
		if attr(n, "role") == "alert" {
			return text(n)
		}
	}
	return "no alert"
}

// Pages offer no form that would be refused.
func TestControlsFollowRoles(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.Issue("Roles")
	_, err := w.Sim.As("rob").Comment(repo, 1, "- [ ] by rob\n")
	check(t, err)
	w.Sim.AddUser("eve")
	for login, want := range map[string]map[string]bool{
		"octo":  {"assign": true, "tick": true, "fold": true, "title": true, "lock": true, "react": true, "comment": true},
		"alice": {"assign": true, "tick": true, "fold": true, "title": true, "lock": true, "react": true, "comment": true},
		"tina":  {"assign": true, "tick": false, "fold": false, "title": false, "lock": true, "react": true, "comment": true},
		"rob":   {"assign": false, "tick": true, "fold": true, "title": false, "lock": false, "react": true, "comment": true},
		"eve":   {"assign": false, "tick": false, "fold": false, "title": false, "lock": false, "react": true, "comment": true},
	} {
		b := w.browse(login)
		got := map[string]bool{}
		for act := range want {
			got[act] = b.offers("/octo/calc/issues/1", form{act: act})
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", login, diff)
		}
	}
	check(t, w.Owner.Lock(repo, 1, ""))
	if w.browse("rob").offers("/octo/calc/issues/1", form{act: "comment"}) {
		t.Error("a locked conversation offers rob to comment")
	}
}
