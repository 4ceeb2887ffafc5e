package web

import (
	"html/template"
	"slices"
	"strings"
	"time"

	"github.com/errand-bot/errand/internal/sim/simgithub"
)

// commitPage shows one commit with its changes.
func (w *site) commitPage(v *visit) error {
	view := struct {
		Full    string
		Commit  simgithub.CommitView
		Rest    string // of the message, after its first line
		Parents []string
		Diff    []fileView
	}{}
	r, err := v.p.Repo(v.full())
	if err != nil {
		return err
	}
	k := r.Git.Commit(v.r.PathValue("sha"))
	if k == nil {
		return notFound()
	}
	from := ""
	if len(k.Parents) > 0 {
		from = k.Parents[0]
	}
	files, err := r.Git.Diff(from, k.SHA)
	if err != nil {
		return err
	}
	view.Full, view.Commit, view.Parents = r.FullName(), w.s.CommitView(*k), k.Parents
	_, view.Rest, _ = strings.Cut(k.Message, "\n")
	view.Rest = strings.TrimSpace(view.Rest)
	view.Diff = diffView(files, diffExtras{})
	return v.render("commit", "Commit "+short(view.Commit.SHA), view)
}

// newIssuePage is the form for a new issue.
func (w *site) newIssuePage(v *visit) error {
	r, err := v.p.Repo(v.full())
	if err != nil {
		return err
	}
	view := struct {
		Full       string
		Title      string
		Labels     []simgithub.Label
		Assignable []string
		MayTriage  bool
	}{Full: r.FullName(), Title: v.r.PostForm.Get("title"), Labels: r.Labels, MayTriage: r.RoleOf(v.p.Login()).Rank() >= simgithub.RoleTriage.Rank()}
	for _, login := range r.Explicit() {
		if u, ok := w.s.User(login); ok && u.Type == simgithub.TypeUser {
			view.Assignable = append(view.Assignable, login)
		}
	}
	return v.render("newissue", "New issue", view)
}

func actOpenIssue(v *visit) (string, error) {
	in := simgithub.NewIssue{Title: v.field("title"), Body: v.field("body"), Assignees: v.r.PostForm["assignee"]}
	in.Assignees = slices.DeleteFunc(in.Assignees, func(l string) bool { return l == "" })
	in.Labels = v.r.PostForm["label"]
	for name := range strings.SplitSeq(v.field("labels"), ",") {
		if name = strings.TrimSpace(name); name != "" {
			in.Labels = append(in.Labels, name)
		}
	}
	i, err := v.p.OpenIssue(v.full(), in)
	if err != nil {
		return "", err
	}
	return "/" + escapePath(v.full()) + "/issues/" + itoa(int64(i.Number)), nil
}

// runPage shows a check run with its text.
func (w *site) runPage(v *visit) error {
	view := struct {
		Full, SHA, Name, Words string
		Title                  string
		Summary, Text          template.HTML
		Since, Until           time.Time
	}{}
	r, err := v.p.Repo(v.full())
	if err != nil {
		return err
	}
	n := slices.IndexFunc(r.CheckRuns, func(k *simgithub.CheckRun) bool { return itoa(k.ID) == v.r.PathValue("id") })
	if n < 0 {
		return notFound()
	}
	k, in := r.CheckRuns[n], w.viewer(v, r).in
	view.Full, view.SHA, view.Name, view.Title = r.FullName(), k.HeadSHA, k.Name, k.Title
	view.Words = strings.ReplaceAll(strings.TrimSpace(k.Status+" "+k.Conclusion), "_", " ")
	view.Summary, view.Text = w.md.render(k.Summary, in, fixedBoxes), w.md.render(k.Text, in, fixedBoxes)
	view.Since, view.Until = k.StartedAt, k.CompletedAt
	return v.render("run", "Check "+view.Name, view)
}
