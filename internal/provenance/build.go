package provenance

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strconv"

	"github.com/errand-bot/errand/state"
)

// maxPayload is the maximum length of a statement in bytes. In base64, and with the text for people, it fits into a comment.
const maxPayload = 36_000

// maxCondition is how many bytes of a condition's text a statement contains.
const maxCondition = 300

// Build returns the predicate about the publications of a task with a pull request. redact removes secrets from a text by people or agents.
// The result depends on nothing but its arguments.
func Build(t *state.Task, d Deployment, redact func(string) string) Predicate {
	p := Predicate{
		Deployment: d,
		PullRequest: PullRequest{
			Repository: t.Repo.FullName(), RepositoryID: t.Key.Repo, Number: t.PR.Number, Branch: t.Branch.Name, Base: t.Branch.Base,
		},
		Task: Task{Life: t.Gen, RequestedBy: account(t.Trigger.By), Via: string(t.Trigger.Via), At: t.Trigger.At.UTC()},
		Issue: Issue{
			Number: t.Key.Issue, TextSHA256: t.Frozen.Hash, FrozenAt: t.Frozen.At.UTC(), VouchedBy: account(t.Frozen.By), Files: t.Frozen.Files,
		},
		Runs:         []Run{},
		Publications: []Publication{},
	}
	if a := t.Approval; a != nil {
		p.Approval = approvalOf(a)
		if plan := t.PlanByHash(a.Hash); plan != nil {
			r := revisionOf(plan)
			p.Plan = &r
		}
		p.EarlierPlans = earlierPlans(t, a.Before)
	}
	for _, f := range t.Feedback {
		if f.Kind == state.FeedbackCondition {
			text := redact(f.Body)
			p.Conditions = append(p.Conditions, Condition{By: account(f.By), At: f.At.UTC(), Text: text, SHA256: digest([]byte(text))})
		}
	}
	for i := range t.Plans {
		if plan := &t.Plans[i]; plan.Approved() {
			p.Changes = append(p.Changes, Changes{revisionOf(plan), plan.Publish.Digest, plan.Publish.Tree, *approvalOf(plan.Publish.Approved)})
		}
	}
	numbers := map[string]int{}
	for i := range t.Runs {
		if r := &t.Runs[i]; !r.Started.IsZero() {
			p.Runs = append(p.Runs, runOf(r))
			numbers[r.ID] = r.Seq
		}
	}
	for i := range t.Publications {
		p.Publications = append(p.Publications, publicationOf(&t.Publications[i], numbers, redact))
		if n := t.Publications[i].Left; n > 0 {
			p.Shortened = append(p.Shortened, Shortened{List: commitsOf(i), Total: n + len(t.Publications[i].Commits)})
		}
	}
	if len(t.Publications) == state.MaxPublications { // there may have been older ones
		p.Shortened = append(p.Shortened, Shortened{List: "publications"})
	}
	p.shorten()
	return p
}

// earlierPlans returns the approved revisions before the present one, oldest first. a is the approval of the newest of them, nil if there is none.
func earlierPlans(t *state.Task, a *state.Approval) (list []EarlierPlan) {
	for ; a != nil; a = a.Before {
		if a.Hash == "" { // the settings required no plan then
			continue
		}
		r := Revision{Kind: string(a.Kind), Hash: a.Hash}
		if plan := t.PlanByHash(a.Hash); plan != nil {
			r = revisionOf(plan)
		}
		list = append(list, EarlierPlan{r, *approvalOf(a)})
	}
	slices.Reverse(list)
	return list
}

func commitsOf(publication int) string { return fmt.Sprintf("publications[%d].commits", publication) }

func account(p state.Person) Account { return Account{ID: p.ID, Login: p.Login} }

func revisionOf(p *state.Plan) Revision {
	return Revision{
		Kind: string(p.Kind), Number: p.Revision, Hash: p.Hash, Comment: p.Comment, BodyHash: p.BodyHash, PostedAt: p.PostedAt.UTC(), Base: p.BaseSHA,
		IssueHash: p.IssueHash,
	}
}

func approvalOf(a *state.Approval) *Approval {
	return &Approval{
		Hash: a.Hash, By: account(a.By), Permission: string(a.Permission), Via: string(a.Via), GivenAt: a.Given.UTC(), CheckedAt: a.At.UTC(),
		Choice: a.Choice, Comment: a.CommentID, CommentHash: a.CommentHash,
	}
}

func runOf(r *state.Run) Run {
	return Run{
		Number: r.Seq, Kind: string(r.Kind), Adapter: r.Adapter, Model: r.Model, PromptSHA256: r.Prompt, Plan: r.Plan, StartedAt: r.Started.UTC(),
		EndedAt: r.Ended.UTC(), Status: string(r.Status),
	}
}

func publicationOf(p *state.Publication, numbers map[string]int, redact func(string) string) Publication {
	out := Publication{
		At: p.At.UTC(), Unconfirmed: p.Unconfirmed, Gap: p.Gap, Run: numbers[p.Run], Round: p.Round, Plan: p.Plan, Changes: p.Changes,
		Base: p.Base, Digest: p.Digest, Head: p.Head, Tree: p.Tree, Reported: Reported{Title: redact(p.Title), SummarySHA256: p.Summary},
	}
	if u := p.Update; u != nil {
		out.Update = &Update{Method: string(u.Method), Before: u.Before}
		if u.By.ID != 0 {
			by := account(u.By)
			out.Update.By = &by
		}
	}
	for _, c := range p.Commits {
		out.Commits = append(out.Commits, Commit(c))
	}
	for _, c := range p.Checks {
		out.Checks = append(out.Checks, Check{Name: redact(c.Name), Outcome: string(c.Outcome), ExitCode: c.Code, From: FromVM})
	}
	return out
}

// shorten cuts the lists, in the order of their value for verification, until the predicate fits.
func (p *Predicate) shorten() {
	for i := range p.Conditions {
		c := &p.Conditions[i]
		c.Text = cut(c.Text, maxCondition)
	}
	steps := []func(){
		func() { p.Runs = shortenList(p, "runs", p.Runs, 20) },
		func() { p.Conditions = shortenList(p, "conditions", p.Conditions, 20) },
		func() { p.EarlierPlans = shortenList(p, "earlierPlans", p.EarlierPlans, 5) },
		func() { p.shortenChecks(5) },
		func() { p.shortenCommits(120) },
		func() { p.Changes = shortenList(p, "changes", p.Changes, 5) },
		func() { p.shortenCommits(40) },
		func() { p.Runs = shortenList(p, "runs", p.Runs, 5) },
		func() { p.shortenPublications(20) },
		func() { p.shortenPublications(5) },
		func() { p.shortenCommits(5) },
	}
	for _, step := range steps {
		if p.fits() {
			return
		}
		step()
	}
	for _, half := range []func(){ // the last resort, which no realistic task needs
		func() { p.Conditions = shortenList(p, "conditions", p.Conditions, len(p.Conditions)/2) },
		func() { p.Runs = shortenList(p, "runs", p.Runs, len(p.Runs)/2) },
		func() { p.Changes = shortenList(p, "changes", p.Changes, len(p.Changes)/2) },
		func() { p.EarlierPlans = shortenList(p, "earlierPlans", p.EarlierPlans, len(p.EarlierPlans)/2) },
		func() { p.shortenChecks(1) },
		func() { p.shortenPublications(1) },
		func() { p.shortenChecks(0) },
	} {
		for range 10 {
			if p.fits() {
				return
			}
			half()
		}
	}
}

// fits reports whether the predicate fits into a statement.
func (p *Predicate) fits() bool { return size(p) <= maxPayload-2000 }

// shortenChecks keeps so many checks of each publication, failed ones before others.
func (p *Predicate) shortenChecks(most int) {
	for i := range p.Publications {
		q := &p.Publications[i]
		slices.SortStableFunc(q.Checks, func(a, b Check) int { return cmp.Compare(failedFirst(a), failedFirst(b)) })
		q.Checks = shortenList(p, fmt.Sprintf("publications[%d].checks", i), q.Checks, most)
	}
}

// shortenPublications keeps the newest publications, with the head. What was noted about the lists of the others goes with them, and the rest
// gets new numbers.
func (p *Predicate) shortenPublications(most int) {
	for i := len(p.Publications) - 1; i >= 0 && p.Publications[i].Unconfirmed; i-- {
		most++
	}
	dropped := len(p.Publications) - most
	if dropped <= 0 {
		return
	}
	p.Publications = shortenList(p, "publications", p.Publications, most)
	kept := p.Shortened[:0]
	for _, s := range p.Shortened {
		if at, list, ok := ofPublication(s.List); ok {
			if at < dropped {
				continue
			}
			s.List = fmt.Sprintf("publications[%d].%s", at-dropped, list)
		}
		kept = append(kept, s)
	}
	p.Shortened = kept
}

var publicationList = regexp.MustCompile(`^publications\[([0-9]{1,4})\]\.(commits|checks)$`)

// ofPublication returns the number of the publication whose list is named, and the list.
func ofPublication(name string) (at int, list string, ok bool) {
	m := publicationList.FindStringSubmatch(name)
	if m == nil {
		return 0, "", false
	}
	at, err := strconv.Atoi(m[1])
	return at, m[2], err == nil
}

func failedFirst(c Check) int {
	if c.Outcome == string(state.CheckPassed) {
		return 1
	}
	return 0
}

// shortenCommits keeps the newest commits of all publications together.
func (p *Predicate) shortenCommits(room int) {
	for i := len(p.Publications) - 1; i >= 0; i-- {
		q := &p.Publications[i]
		q.Commits = shortenList(p, commitsOf(i), q.Commits, room)
		room -= len(q.Commits)
	}
}

// shortenList keeps the last elements of a list, and notes the digest of the complete one unless it is noted already. Of checks it keeps the
// first, which are those that failed.
func shortenList[T any](p *Predicate, name string, list []T, most int) []T {
	if len(list) <= most {
		return list
	}
	if !slices.ContainsFunc(p.Shortened, func(s Shortened) bool { return s.List == name }) {
		raw, _ := json.Marshal(list) // its types always encode
		p.Shortened = append(p.Shortened, Shortened{List: name, Total: len(list), SHA256: digest(raw)})
	}
	if _, checks := any(list).([]Check); checks {
		return list[:most]
	}
	return list[len(list)-most:]
}

// lacksBefore reports whether the statement may lack commits that errand published between a publication and the one before.
func (p *Predicate) lacksBefore(publication int) bool {
	return p.Publications[publication].Gap || slices.ContainsFunc(p.Shortened, func(s Shortened) bool {
		return s.List == commitsOf(publication) || s.List == "publications" && publication == 0
	})
}

func size(p *Predicate) int {
	raw, _ := json.Marshal(p)
	return len(raw)
}

func digest(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// cut returns the first bytes of a text, without a part of a character at the end.
func cut(s string, most int) string {
	if len(s) <= most {
		return s
	}
	for most > 0 && s[most]&0xc0 == 0x80 {
		most--
	}
	return s[:most] + "…"
}
