package provenance

import (
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/errand-bot/errand/internal/comment"
	"github.com/errand-bot/errand/internal/keyfile"
	"github.com/errand-bot/errand/internal/secretscan"
	"github.com/errand-bot/errand/internal/trust"
	"github.com/errand-bot/errand/state"
)

var day1 = time.Date(2026, 3, 2, 9, 0, 0, 0, time.UTC)

func hex40(n int) string { return fmt.Sprintf("%040x", n+1) }

// sample returns a task with publications of so many commits each.
func sample(publications, commits int) *state.Task {
	t := &state.Task{Key: state.TaskKey{Repo: 5_000_000_000, Issue: 7}, Gen: 1}
	ada := state.Person{ID: 4_000_000_001, Login: "ada"}
	t.Repo = state.Repo{ID: t.Key.Repo, Owner: "octo", Name: "calc"}
	t.Trigger = state.Trigger{By: ada, Via: state.TriggerAssigned, At: day1}
	t.Frozen = state.Frozen{Hash: strings.Repeat("1", 64), By: ada, At: day1}
	plan := state.Plan{Kind: state.PlanThorough, Revision: 2, Hash: strings.Repeat("2", 64), Comment: 6_000_000_000, BodyHash: strings.Repeat("3", 64), PostedAt: day1}
	t.Plans = []state.Plan{plan}
	t.Approval = &state.Approval{Kind: plan.Kind, Hash: plan.Hash, By: ada, Permission: state.PermissionAdmin, Via: state.ViaReaction, Given: day1, At: day1.Add(time.Second), With: "Be quick."}
	t.Feedback = []state.Feedback{{ID: "with:" + plan.Hash, Kind: state.FeedbackCondition, By: ada, At: day1, Body: "Be quick."}}
	t.Branch = state.Branch{Name: "errand/7", Base: "main"}
	t.PR = &state.PR{Number: 8}
	for n := range publications {
		id := fmt.Sprintf("r%d", n)
		run := state.Run{ID: id, Seq: n + 1, Kind: state.RunImplement, Started: day1, Ended: day1.Add(time.Minute)}
		run.Adapter, run.Model, run.Prompt = "claude", "claude-x", strings.Repeat("4", 64)
		t.Runs = append(t.Runs, run)
		w := &state.Work{Run: id, Base: hex40(n * 1000), Digest: strings.Repeat("5", 64), Title: "Mend it", Text: "Mended."}
		for c := range commits {
			w.Published = append(w.Published, state.PublishedCommit{ID: hex40(n*1000 + c + 1), Tree: hex40(n*1000 + c + 500)})
		}
		w.Head, w.Tree = w.Published[commits-1].ID, w.Published[commits-1].Tree
		w.Checks = []state.CheckResult{{Name: "test"}, {Name: "lint", Code: 1}, {Name: "slow", TimedOut: true}, {Name: "none", Skipped: "no files"}}
		t.Work = w
		t.AddPublication(day1.Add(time.Hour), time.Time{})
	}
	return t
}

func plain(s string) string { return s }

func newSigner(t testing.TB) *Signer {
	t.Helper()
	k, err := keyfile.ReadSigning(t.TempDir()+"/key", day1)
	if err != nil {
		t.Fatal(err)
	}
	return &Signer{Key: func() (keyfile.Signing, error) { return k, nil }, Version: "v1", PublicURL: "https://errand.example/", Redact: plain}
}

// TestStatementMarksItsSources: what errand did not observe is marked.
func TestStatementMarksItsSources(t *testing.T) {
	t.Parallel()
	p := Build(sample(2, 1), Deployment{}, plain)
	q := p.Publications[0]
	if q.Reported.Title != "Mend it" || q.Reported.SummarySHA256 != digest([]byte("Mended.")) {
		t.Errorf("got reported %+v", q.Reported)
	}
	var got []string
	for _, c := range q.Checks {
		got = append(got, fmt.Sprintf("%s %s %d %s", c.Name, c.Outcome, c.ExitCode, c.From))
	}
	if s := strings.Join(got, ", "); s != "test passed 0 vm, lint failed 1 vm, slow timed_out 0 vm, none skipped 0 vm" {
		t.Errorf("got checks %s", s)
	}
	if c := p.Conditions; len(c) != 1 || c[0].Text != "Be quick." || c[0].SHA256 != digest([]byte("Be quick.")) {
		t.Errorf("got conditions %+v", c)
	}
}

// TestStatementFitsIntoAComment: however much was done, the statement fits, says what it leaves out, and can be read again.
func TestStatementFitsIntoAComment(t *testing.T) {
	t.Parallel()
	for name, task := range map[string]*state.Task{
		"one": sample(1, 1), "many commits": sample(1, 250), "many rounds": sample(100, 2), "both": sample(60, 40), "long texts": longTexts(),
		"many checks": manyChecks(), "everything": everything(), "many updates": manyUpdates(),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSigner(t)
			made, err := s.State(t.Context(), task)
			if err != nil {
				t.Fatal(err)
			}
			again, err := s.State(t.Context(), task)
			if err != nil || string(again.Envelope) != string(made.Envelope) {
				t.Errorf("the same statement has another text, %v", err)
			}
			if n := len(made.Envelope); n > 52_000 {
				t.Errorf("got an envelope of %d bytes", n)
			}
			body := comment.Render(task, state.Post{Kind: state.PostProvenance, OnPR: true, Text: string(made.Envelope), Items: made.Summary}, comment.View{Key: "1.provenance-8"})
			if n := utf8.RuneCountInString(body); n > comment.MaxLength || len(body) > 65_536 {
				t.Errorf("got a comment of %d characters, %d bytes", n, len(body))
			}
			e, ok := Find(body)
			if !ok {
				t.Fatal("the envelope cannot be found again")
			}
			p, err := read(e)
			if err != nil {
				t.Fatal(err)
			}
			if p.PullRequest.RepositoryID != 5_000_000_000 || p.Plan.Comment != 6_000_000_000 || p.Approval.By.ID != 4_000_000_001 {
				t.Errorf("large numbers changed: %+v, %+v, %+v", p.PullRequest, p.Plan, p.Approval)
			}
			if short := name != "one" && name != "many commits"; short != (len(p.Shortened) > 0) {
				t.Errorf("got shortened lists %+v", p.Shortened)
			}
			if last := p.Publications[len(p.Publications)-1]; len(last.Commits) == 0 && last.Update == nil {
				t.Error("the newest commits are left out")
			}
			seen := map[string]bool{}
			for _, s := range p.Shortened {
				at, list, ok := ofPublication(s.List)
				if seen[s.List] || ok && (at >= len(p.Publications) || list == "checks" && len(p.Publications[at].Checks) >= s.Total) {
					t.Errorf("%q is noted twice, or of a publication that the statement does not have", s.List)
				}
				seen[s.List] = true
			}
		})
	}
}

// manyUpdates returns a task whose branch GitHub updated after each publication.
func manyUpdates() *state.Task {
	t := sample(state.MaxPublications/2, 5)
	list := t.Publications
	t.Publications = nil
	for i, p := range list {
		t.Publications = append(t.Publications, p, state.Publication{At: p.At, Plan: p.Plan, Base: hex40(i), Head: hex40(i), Tree: hex40(i), Update: &state.BranchUpdate{
			Method: state.UpdateMerge, By: state.Person{ID: 4_000_000_001, Login: strings.Repeat("x", 39)}, Before: p.Head,
		}})
	}
	return t
}

func longTexts() *state.Task {
	t := sample(3, 10)
	for n := range 400 {
		t.Feedback = append(t.Feedback, state.Feedback{ID: fmt.Sprint(n), Kind: state.FeedbackCondition, Body: strings.Repeat("ä\"\n", 10_000)})
		t.Runs = append(t.Runs, state.Run{ID: fmt.Sprint("x", n), Seq: n, Started: day1})
	}
	for i := range t.Publications {
		for n := range 50 {
			t.Publications[i].Checks = append(t.Publications[i].Checks, state.PublishedCheck{Name: strings.Repeat("<\u2028", 100) + fmt.Sprint(n), Outcome: state.CheckPassed})
		}
	}
	return t
}

// manyChecks returns a task with as many publications as are stored, each with different checks.
func manyChecks() *state.Task {
	t := sample(state.MaxPublications, 1)
	for i := range t.Publications {
		for n := range 8 - i%2 {
			t.Publications[i].Checks = append(t.Publications[i].Checks, state.PublishedCheck{Name: fmt.Sprintf("a check with a name %d", n), Outcome: state.CheckPassed})
		}
	}
	return t
}

// everything returns a task whose every list and text has its maximum.
func everything() *state.Task {
	t := longTexts()
	for i := range t.Publications {
		t.Publications[i].Title = state.Truncate(strings.Repeat("<\u2028", 10_000))
		for n := range state.MaxPublicationChecks {
			t.Publications[i].Checks = append(t.Publications[i].Checks, state.PublishedCheck{Name: state.Truncate(strings.Repeat("<\u2028", 10_000)) + fmt.Sprint(n), Outcome: state.CheckFailed})
		}
	}
	for n := range 400 {
		if n < 40 { // a task does not have more
			t.Frozen.Files = append(t.Frozen.Files, digest([]byte{byte(n)}))
		}
		a := *t.Approval
		t.Plans = append(t.Plans, state.Plan{Kind: state.PlanPublish, Revision: n, Hash: digest(fmt.Append(nil, n)), Publish: &state.Changes{Approved: &a}})
	}
	return t
}

// TestDroppedPublicationsAreRenumbered: what is noted about the lists of publications names the ones that are left.
func TestDroppedPublicationsAreRenumbered(t *testing.T) {
	t.Parallel()
	p := Predicate{Publications: make([]Publication, 5)}
	for i := range p.Publications {
		p.Publications[i].Head = fmt.Sprint(i)
		p.Publications[i].Commits = make([]Commit, 3)
		p.Publications[i].Commits = shortenList(&p, commitsOf(i), p.Publications[i].Commits, 3-i%2) // of those with odd numbers
	}
	p.shortenPublications(3)
	var got []string
	for _, s := range p.Shortened {
		got = append(got, s.List)
	}
	if s := strings.Join(got, " "); s != "publications[1].commits publications" || p.Publications[0].Head != "2" || !p.lacksBefore(0) || !p.lacksBefore(1) || p.lacksBefore(2) {
		t.Errorf("got %s for publications from %s", s, p.Publications[0].Head)
	}
}

// TestStatementsDoNotLookLikeSecrets: the redaction of comments changes no envelope, which would make it invalid.
func TestStatementsDoNotLookLikeSecrets(t *testing.T) {
	t.Parallel()
	patterns, err := secretscan.LoadPatterns()
	if err != nil {
		t.Fatal(err)
	}
	r := trust.NewRedactor(patterns)
	s := newSigner(t)
	for n := range 12 {
		task := sample(1+n%3, 1+n%7)
		task.Key.Issue = n + 1
		made, err := s.State(t.Context(), task)
		if err != nil {
			t.Fatal(err)
		}
		if clean, found := r.Redact("x\n```json\n" + string(made.Envelope) + "\n```\n"); found > 0 {
			t.Fatalf("%d secrets found in a statement: %s", found, clean)
		}
	}
}

// TestFind: an envelope counts only in a comment with errand's marker, and only if there is one.
func TestFind(t *testing.T) {
	t.Parallel()
	const block, marker = "\n```json\n{\"payload\":\"eA==\",\"signatures\":[]}\n```\n", "\n<!-- errand:1.provenance-8 -->"
	for name, c := range map[string]struct {
		body string
		want bool
	}{
		"errand's":              {"x" + block + marker, true},
		"with Windows' lines":   {strings.ReplaceAll("x"+block+marker, "\n", "\r\n"), true},
		"two":                   {"x" + block + block + marker, false},
		"without a marker":      {"x" + block, false},
		"of another comment":    {"x" + block + "\n<!-- errand:1.round-1 -->", false},
		"a marker before it":    {marker + block, false},
		"quoted":                {"> x" + strings.ReplaceAll(block, "\n", "\n> ") + marker, false},
		"with something behind": {"x" + strings.Replace(block, "}\n", "} {}\n", 1) + marker, false},
		"with unknown fields":   {"x" + strings.Replace(block, "{", "{\"more\":1,", 1) + marker, false},
		"much too long":         {strings.Repeat("x", 300_000) + block + marker, false},
		"nothing":               {"", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if _, ok := Find(c.body); ok != c.want {
				t.Errorf("got %v, want %v", ok, c.want)
			}
		})
	}
}
