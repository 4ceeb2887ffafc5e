package web

import (
	"slices"
	"strings"

	"github.com/errand-bot/errand/internal/sim/simgithub"
)

// pullHead has the fields of a pull request that an issue does not have.
type pullHead struct {
	Base, Head string
	HeadSHA    string
	Draft      bool
	Merged     bool
	MergedBy   string
	MergeSHA   string
	Mergeable  bool
	MergeState string // clean, dirty, blocked, unstable, draft or unknown
	Checks     []checkView
	CheckSum   string // success, pending, failure or empty
	Commits    int
	Files      int
	Additions  int
	Deletions  int
	Closes     []int
	Reviewers  []reviewerView
	Askable    []string // accounts that can review
	MayMerge   bool
	MayReview  bool
	MayJudge   bool // approve or request changes
	MayEdit    bool // draft or ready
	MayAsk     bool // for reviews
	HasBranch  bool
	Open       bool
	Pending    []draft
}

// checkView is a check run or a status.
type checkView struct {
	ID      int64 // of a check run, else 0
	Name    string
	State   string // success, pending or failure
	Words   string
	Details string // address of a status, often empty
}

func (w *site) pullPage(v *visit) error { return w.pullTab(v, "pull", "") }

// pullTab serves one tab of a pull request.
func (w *site) pullTab(v *visit, name, what string) error {
	v.main = "/" + v.full() + "/pull/" + itoa(int64(v.n()))
	view, err := v.p.PullView(v.full(), v.n())
	if err != nil {
		return err // numbers of issues are not found, as in GitHub's API
	}
	out, err := w.readIssue(v)
	if err != nil {
		return err
	}
	tab := struct {
		*issueView
		Tab     string
		Commits []simgithub.CommitView
		Diff    []fileView
	}{issueView: out, Tab: what}
	if what != "" {
		r, err := v.p.Repo(v.full())
		if err != nil {
			return err
		}
		if tab.Commits = view.Commits; what == "files" {
			threads := w.viewer(v, r).threads(r.Issues[v.n()])
			tab.Diff = diffView(view.Files, diffExtras{threads: threads, drafts: out.Pull.Pending, form: out.Pull.MayReview})
		}
	}
	return v.render(name, out.Title+" · pull request #"+itoa(int64(out.Number)), tab)
}

func (w *site) pullCommitsPage(v *visit) error { return w.pullTab(v, "pullcommits", "commits") }

func (w *site) pullFilesPage(v *visit) error { return w.pullTab(v, "pullfiles", "files") }

// pullHead returns the state of a pull request.
func (w *site) pullHead(g *viewer, i *simgithub.Issue, view simgithub.PullView) *pullHead {
	p, own := i.Pull, g.known() && g.p.Login() == i.Author
	out := &pullHead{
		Base: p.Base, Head: p.Head, HeadSHA: p.HeadSHA, Draft: p.Draft, Merged: p.Merged, MergedBy: p.MergedBy, MergeSHA: p.MergeCommit,
		Mergeable: view.Mergeable, MergeState: view.State, Commits: len(view.Commits), Files: len(view.Files), Closes: view.Closes,
		MayMerge: g.may(simgithub.RoleWrite), MayReview: g.may(simgithub.RoleRead) && !p.Merged, MayJudge: !own,
		MayEdit: own || g.may(simgithub.RoleWrite),
		MayAsk:  g.may(simgithub.RoleWrite), HasBranch: g.r.Git.Branch(p.Head) != "", Open: i.State == "open",
		Reviewers: reviewers(i), Pending: w.draftsOf(draftsKey(g.p.Login(), g.r.FullName(), i.Number)),
	}
	for _, f := range view.Files {
		out.Additions += f.Additions
		out.Deletions += f.Deletions
	}
	out.CheckSum, _ = g.r.CombinedStatus(p.HeadSHA)
	out.Checks = checkViews(view)
	for _, login := range g.p.Assignable(g.r.FullName(), 0) {
		if login != i.Author && !slices.Contains(p.RequestedReviewers, login) {
			out.Askable = append(out.Askable, login)
		}
	}
	return out
}

func checkViews(view simgithub.PullView) (out []checkView) {
	for _, k := range view.Checks {
		c := checkView{ID: k.ID, Name: k.Name, State: "pending", Words: strings.ReplaceAll(k.Status, "_", " ")}
		if k.Status == "completed" {
			c.Words, c.State = strings.ReplaceAll(k.Conclusion, "_", " "), "failure"
			if slices.Contains([]string{"success", "neutral", "skipped"}, k.Conclusion) {
				c.State = "success"
			}
		}
		out = append(out, c)
	}
	latest := map[string]simgithub.Status{}
	for _, k := range view.Statuses {
		latest[k.Context] = k
	}
	for _, k := range view.Statuses {
		if latest[k.Context].ID == k.ID {
			state := map[string]string{"success": "success", "pending": "pending"}[k.State]
			if state == "" {
				state = "failure"
			}
			out = append(out, checkView{Name: k.Context, State: state, Words: k.Description})
		}
	}
	return out
}
