package provenance

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/errand-bot/errand/internal/comment"
	"github.com/errand-bot/errand/state"
)

var app = Person{ID: 99, Login: "errand[bot]", Bot: true}

// fakeGitHub shows one open pull request as errand left it.
type fakeGitHub struct {
	GitHub
	pull      Pull
	statement []Text
	issue     Text
	comments  map[int64]*Text
	commits   []CommitInfo
	partly    bool
}

func (f *fakeGitHub) Pull(context.Context, int) (Pull, error)            { return f.pull, nil }
func (f *fakeGitHub) Issue(context.Context, int) (*Text, error)          { return &f.issue, nil }
func (f *fakeGitHub) Comment(_ context.Context, id int64) (*Text, error) { return f.comments[id], nil }
func (f *fakeGitHub) Comments(context.Context, int, int64) ([]Text, bool, error) {
	return f.statement, !f.partly, nil
}
func (f *fakeGitHub) Commits(context.Context, int) ([]CommitInfo, bool, error) {
	return f.commits, !f.partly, nil
}

// by returns a commit by an account.
func by(who Person, n int) CommitInfo {
	return CommitInfo{ID: hex40(n), Tree: hex40(n + 1_000_000), Author: who}
}

// A chain is a task with a plan that ada approved, and what GitHub shows of it.
type chain struct {
	task *state.Task
	gh   *fakeGitHub
	d    func(p *Predicate) // changes the statement before it is signed
}

// newChain returns a chain with one publication of so many commits each.
func newChain(publications, commits int) *chain {
	c := &chain{task: sample(publications, commits), gh: &fakeGitHub{comments: map[int64]*Text{}}}
	t := c.task
	t.Frozen.Hash = state.FreezeHash("Title", "Text")
	c.gh.issue = Text{Title: "Title", Body: "Text"}
	c.gh.pull = Pull{RepositoryID: t.Key.Repo, Repository: "octo/calc", Number: 8, By: app, Branch: "errand/7", Base: "main"}
	plan := &t.Plans[0]
	plan.BodyHash = comment.BodyHash("The plan.")
	c.gh.comments[plan.Comment] = &Text{Body: "The plan.", By: app, ThumbsUp: []Action{{Person{ID: t.Approval.By.ID, Login: "ada"}, t.Approval.Given}}}
	for i := range t.Publications {
		q := &t.Publications[i]
		for _, p := range q.Commits {
			c.gh.commits = append(c.gh.commits, CommitInfo{ID: p.ID, Tree: p.Tree, Author: app})
		}
	}
	return c
}

// preliminary adds a preliminary plan that bob approved, and returns its comment.
func (c *chain) preliminary() *Text {
	p := state.Plan{Kind: state.PlanPreliminary, Revision: 1, Hash: strings.Repeat("6", 64), Comment: 60, BodyHash: comment.BodyHash("The idea."), PostedAt: day1}
	c.task.Plans = append(c.task.Plans, p)
	bob := state.Person{ID: 5, Login: "bob"}
	c.task.Approval.Before = &state.Approval{Kind: p.Kind, Hash: p.Hash, By: bob, Permission: state.PermissionWrite, Via: state.ViaReaction, Given: day1, At: day1}
	c.gh.comments[60] = &Text{Body: "The idea.", By: app, ThumbsUp: []Action{{Person{ID: 5, Login: "bob"}, day1}}}
	return c.gh.comments[60]
}

// verify signs the statement, and verifies the chain with its key.
func (c *chain) verify(t *testing.T, keys ...Key) Report {
	t.Helper()
	s := newSigner(t)
	k, err := s.Key()
	if err != nil {
		t.Fatal(err)
	}
	if keys == nil {
		published, err := PublishKeys(k)
		if err != nil {
			t.Fatal(err)
		}
		if keys, err = ParseKeys(published); err != nil {
			t.Fatal(err)
		}
	}
	d, err := Describe("v1", "", keys[0].Public)
	if err != nil {
		t.Fatal(err)
	}
	p := Build(c.task, d, plain)
	if c.d != nil {
		c.d(&p)
	}
	envelope, err := Sign(t.Context(), p, k.Private)
	if err != nil {
		t.Fatal(err)
	}
	c.gh.statement = []Text{{Body: "x\n```json\n" + string(envelope) + "\n```\n\n<!-- errand:1.provenance-8 -->", By: c.gh.pull.By, CreatedAt: day1}}
	r, err := Verify(t.Context(), c.gh, 8, keys)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// TestUnpinnedVerificationConfirmsNothing: any App can sign a statement about its own pull request, and everybody who can push can write as
// the one of GitHub Actions.
func TestUnpinnedVerificationConfirmsNothing(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		login    string
		unpinned Result
	}{
		"an App": {"errand[bot]", ChainUnpinned}, "another App": {"mallory[bot]", ChainUnpinned}, "GitHub Actions": {"github-actions[bot]", ChainUnknown},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			x := newChain(1, 1)
			x.gh.pull.By.Login = c.login
			if r := x.verify(t); r.Result != ChainHolds || !r.Pinned {
				t.Errorf("with its key: got %q: %+v", r.Result, r.Links)
			}
			r, err := Verify(t.Context(), x.gh, 8, nil)
			if err != nil || r.Result != c.unpinned || r.Pinned {
				t.Errorf("without a key: got %q, %v: %+v", r.Result, err, r.Links)
			}
			x.gh.pull.Base = "release"
			r, err = Verify(t.Context(), x.gh, 8, nil)
			if want := ChainBroken; c.unpinned == ChainUnpinned && (err != nil || r.Result != want) {
				t.Errorf("a broken chain: got %q, %v, want %q", r.Result, err, want)
			}
		})
	}
}

// flaws returns the links that do not hold.
func flaws(r Report) string {
	var list []string
	for _, l := range r.Links {
		if l.Verdict != Holds {
			list = append(list, l.Name+": "+string(l.Verdict))
		}
	}
	return strings.Join(list, ", ")
}

// TestMissingLinksDoNotHold: a link that the statement lacks, or that does not fit the others, never counts as one that holds.
func TestMissingLinksDoNotHold(t *testing.T) {
	t.Parallel()
	const plan, changes = "plan: unknown", "changes: unknown"
	approved := func(c *chain, hash string) {
		a := *c.task.Approval
		a.Hash = hash
		c.task.Plans = append(c.task.Plans, state.Plan{Kind: state.PlanPublish, Revision: 3, Hash: strings.Repeat("7", 64), Comment: 70, BodyHash: comment.BodyHash("Changes."),
			Publish: &state.Changes{Digest: strings.Repeat("5", 64), Tree: c.task.Publications[0].Tree, Approved: &a}})
		c.task.Publications[0].Changes = strings.Repeat("7", 64)
		c.gh.comments[70] = &Text{Body: "Changes.", By: app, ThumbsUp: []Action{{Person{ID: a.By.ID}, a.Given}}}
	}
	for name, c := range map[string]struct {
		change func(c *chain)
		want   string
		words  string
	}{
		"nothing":                         {change: func(*chain) {}},
		"approved changes":                {change: func(c *chain) { approved(c, strings.Repeat("7", 64)) }},
		"changes with another's approval": {change: func(c *chain) { approved(c, strings.Repeat("8", 64)) }, want: "approval of changes 3: altered"},
		"changes without their revision":  {change: func(c *chain) { c.task.Publications[1].Changes = "c0ffee" }, want: changes, words: short(hex40(1001))},
		"changes with another digest": {change: func(c *chain) {
			approved(c, strings.Repeat("7", 64))
			c.task.Plans[1].Publish.Digest = strings.Repeat("9", 64)
		}, want: "changes: altered"},
		"changes with another tree": {change: func(c *chain) {
			approved(c, strings.Repeat("7", 64))
			c.task.Plans[1].Publish.Tree = hex40(9)
		}, want: "changes: altered"},
		"another pull request":                 {change: func(c *chain) { c.gh.pull.Number = 9 }, want: "pull request: altered", words: "made for octo/calc#8"},
		"another repository":                   {change: func(c *chain) { c.gh.pull.RepositoryID++ }, want: "pull request: altered", words: "made for octo/calc#8"},
		"commits of another plan":              {change: func(c *chain) { c.task.Publications[1].Plan = "c0ffee00" }, want: plan, words: "made from the plan c0ffee00"},
		"commits without a plan":               {change: func(c *chain) { c.task.Publications[0].Plan = "" }, want: plan, words: "without a plan"},
		"no plan and no approval":              {change: func(c *chain) { c.d = func(p *Predicate) { p.Plan, p.Approval = nil, nil } }, want: plan},
		"a person's approval without the plan": {change: func(c *chain) { c.d = func(p *Predicate) { p.Plan = nil } }, want: plan},
		"no plan, by the settings": {change: func(c *chain) {
			c.task.Approval = &state.Approval{Via: state.ViaSettings}
			c.task.Publications[0].Plan, c.task.Publications[1].Plan = "", ""
		}, want: "plan: only stated", words: "settings required no plan"},
		"an approval by the settings":      {change: func(c *chain) { c.task.Approval.Via = state.ViaSettings }, want: "approval: only stated", words: "settings required no approval"},
		"a preliminary plan":               {change: func(c *chain) { c.preliminary() }, words: "as errand wrote it"},
		"a preliminary plan without its 👍": {change: func(c *chain) { c.preliminary().ThumbsUp = nil }, want: "approval of preliminary plan 1: no longer visible", words: "the 👍 of @bob is not there"},
		"a preliminary plan by another account": {change: func(c *chain) {
			c.preliminary().ThumbsUp[0].By = Person{ID: 6, Login: "eve"}
		}, want: "approval of preliminary plan 1: no longer visible", words: "there is one by @eve"},
		"an edited preliminary plan": {change: func(c *chain) { c.preliminary().Body += "More." }, want: "preliminary plan 1: altered"},
		"an approval of another preliminary plan": {change: func(c *chain) {
			c.preliminary()
			c.d = func(p *Predicate) { p.EarlierPlans[0].Approval.Hash = "b" }
		}, want: "approval of preliminary plan 1: altered"},
		"a preliminary plan that is forgotten": {change: func(c *chain) {
			c.preliminary()
			c.task.Plans = c.task.Plans[:1]
		}, want: "preliminary plan 0: unknown, approval of preliminary plan 0: no longer visible"},
		"commits of an earlier plan": {change: func(c *chain) { c.preliminary(); c.task.Publications[0].Plan = strings.Repeat("6", 64) }},
		"a list that is cut":         {change: func(c *chain) { c.gh.partly = true }, want: "commits: unknown", words: "there may be others"},
		"another base":               {change: func(c *chain) { c.gh.pull.Base = "release" }, want: "pull request: altered", words: "errand/7 into release"},
		"another branch":             {change: func(c *chain) { c.gh.pull.Branch = "errand/8" }, want: "pull request: altered"},
		"the base in other case":     {change: func(c *chain) { c.gh.pull.Base = "Main" }, want: "pull request: altered"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			x := newChain(2, 1)
			c.change(x)
			r := x.verify(t)
			if got := flaws(r); got != c.want || !strings.Contains(fmt.Sprint(r.Links), c.words) {
				t.Errorf("got %q, want %q with %q: %+v", got, c.want, c.words, r.Links)
			}
		})
	}
}

// TestUnlistedCommits: a commit in errand's name that the statement does not list is altered, unless the statement says that there it
// does not know all. What errand does not know to have published may be missing.
func TestUnlistedCommits(t *testing.T) {
	t.Parallel()
	mine := func(n int) string { return "commit " + short(hex40(n)) }
	ada := Person{ID: 5, Login: "ada"}
	for name, c := range map[string]struct {
		change func(c *chain)
		want   string
	}{
		"before the first":                  {change: func(c *chain) { c.put(0, by(app, 7)) }, want: mine(7) + ": altered"},
		"before the first, with a gap":      {change: func(c *chain) { c.put(0, by(app, 7)); c.task.Publications[0].Gap = true }, want: mine(7) + ": unknown"},
		"after the first, with a gap there": {change: func(c *chain) { c.put(1, by(app, 7)); c.task.Publications[0].Gap = true }, want: mine(7) + ": altered"},
		"between, with a gap there":         {change: func(c *chain) { c.put(2, by(app, 7)); c.task.Publications[1].Gap = true }, want: mine(7) + ": unknown"},
		"inside one, with a gap before it":  {change: func(c *chain) { c.put(3, by(app, 7)); c.task.Publications[1].Gap = true }, want: mine(7) + ": altered"},
		"after the last, with a gap before": {change: func(c *chain) { c.put(4, by(app, 7)); c.task.Publications[1].Gap = true }, want: mine(7) + ": altered"},
		"where the oldest commits are cut": {change: func(c *chain) {
			c.task.Publications[1].Commits, c.task.Publications[1].Left = c.task.Publications[1].Commits[1:], 1
		}, want: mine(1001) + ": unknown"},
		"before a list of the newest": {change: func(c *chain) {
			c.put(0, by(app, 7))
			c.d = func(p *Predicate) { p.Shortened = []Shortened{{List: "publications"}} }
		}, want: mine(7) + ": unknown"},
		"after a list of the newest": {change: func(c *chain) {
			c.put(4, by(app, 7))
			c.d = func(p *Predicate) { p.Shortened = []Shortened{{List: "publications"}} }
		}, want: mine(7) + ": altered"},
		"another tree":  {change: func(c *chain) { c.gh.commits[1].Tree = hex40(7) }, want: "commits: altered"},
		"another order": {change: func(c *chain) { l := c.gh.commits; l[1], l[2] = l[2], l[1] }, want: "commits: altered"},
		"the head of a publication whose commits are cut": {change: func(c *chain) {
			c.d = func(p *Predicate) { p.Publications[0].Commits = nil }
			c.gh.commits = append(c.gh.commits[:1:1], c.gh.commits[2:]...) // without the first head
		}, want: "commits: altered, " + mine(1) + ": altered"},
		"a person's":                          {change: func(c *chain) { c.put(4, by(ada, 7)) }, want: mine(7) + ": by others"},
		"published, perhaps":                  {change: func(c *chain) { c.task.Publications[1].Unconfirmed = true }},
		"not published after all":             {change: func(c *chain) { c.task.Publications[1].Unconfirmed = true; c.gh.commits = c.gh.commits[:2] }},
		"published, and dropped":              {change: func(c *chain) { c.gh.commits = c.gh.commits[:2] }, want: "commits: altered"},
		"published, perhaps, with a stranger": {change: func(c *chain) { c.task.Publications[1].Unconfirmed = true; c.put(4, by(app, 7)) }, want: mine(7) + ": altered"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			x := newChain(2, 2)
			c.change(x)
			if r := x.verify(t); flaws(r) != c.want {
				t.Errorf("got %q, want %q: %+v", flaws(r), c.want, r.Links)
			}
		})
	}
}

// put inserts a commit into the pull request.
func (c *chain) put(at int, commit CommitInfo) {
	c.gh.commits = append(c.gh.commits[:at:at], append([]CommitInfo{commit}, c.gh.commits[at:]...)...)
}

// TestRetirementIsKnownFromAnyFile: an older list of keys, given as well, does not bring a retired key back.
func TestRetirementIsKnownFromAnyFile(t *testing.T) {
	t.Parallel()
	a := Key{ID: "a"}
	early, late := Key{ID: "a", Retired: day1}, Key{ID: "a", Retired: day1.Add(time.Hour)}
	for _, list := range [][]Key{{a, early}, {early, a}, {late, early, a}, {a, late, early}} {
		if got := mergeKeys(append(list, Key{ID: "b"})); len(got) != 2 || !got[0].Retired.Equal(day1) || !got[1].Retired.IsZero() {
			t.Errorf("%+v: got %+v", list, got)
		}
	}
}
