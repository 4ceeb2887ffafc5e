package simgithub

import (
	"html/template"
	"net/http"
	"slices"
	"strings"
	"time"
)

// commitPage shows one commit with its changes.
func (w *web) commitPage(v *visit) error {
	view := struct {
		Full    string
		Commit  CommitView
		Rest    string // of the message, after its first line
		Parents []string
		Diff    []fileView
	}{}
	err := v.p.do(func(x *session) error {
		r, err := x.repo(v.full())
		if err != nil {
			return err
		}
		k := r.Git.Commit(v.r.PathValue("sha"))
		if k == nil {
			return errNotFound()
		}
		from := ""
		if len(k.Parents) > 0 {
			from = k.Parents[0]
		}
		files, err := r.Git.Diff(from, k.SHA)
		if err != nil {
			return err
		}
		view.Full, view.Commit, view.Parents = r.FullName(), x.s.commitView(*k), k.Parents
		_, view.Rest, _ = strings.Cut(k.Message, "\n")
		view.Rest = strings.TrimSpace(view.Rest)
		view.Diff = diffView(files, diffExtras{})
		return nil
	})
	if err != nil {
		return err
	}
	return v.render("commit", "Commit "+short(view.Commit.SHA), view)
}

// commitsPage lists the newest commits of a branch.
func (w *web) commitsPage(v *visit) error {
	view := struct {
		Full, Ref string
		Commits   []CommitView
	}{}
	err := v.p.do(func(x *session) error {
		r, err := x.repo(v.full())
		if err != nil {
			return err
		}
		ref, sha, _, err := splitRef(x, r, v.r.PathValue("ref"))
		if err != nil {
			return err
		}
		list, err := r.Git.Commits(maxListed, sha)
		for _, k := range list {
			view.Commits = append(view.Commits, x.s.commitView(k))
		}
		view.Full, view.Ref = r.FullName(), ref
		return err
	})
	if err != nil {
		return err
	}
	return v.render("commits", "Commits of "+view.Ref, view)
}

// compareView is the page from which a pull request is opened.
type compareView struct {
	Full, Base, Head string
	Commits          []CommitView
	Diff             []fileView
	MayOpen          bool
}

// comparePage shows what a branch has over another one, and opens a pull request.
func (w *web) comparePage(v *visit) error {
	var view compareView
	err := v.p.do(func(x *session) error {
		r, err := x.repo(v.full())
		if err != nil {
			return err
		}
		base, head, ok := strings.Cut(v.r.PathValue("ref"), "...")
		if !ok {
			base, head = r.DefaultBranch, base
		}
		from, to := r.Git.Resolve(base), r.Git.Resolve(head)
		if from == "" || to == "" {
			return errNotFound()
		}
		commits, err := r.Git.Commits(maxListed, "--reverse", from+".."+to)
		if err != nil {
			return err
		}
		for _, k := range commits {
			view.Commits = append(view.Commits, x.s.commitView(k))
		}
		files, err := r.Git.Diff(r.Git.MergeBase(from, to), to)
		view.Full, view.Base, view.Head, view.Diff = r.FullName(), base, head, diffView(files, diffExtras{})
		view.MayOpen = x.by != nil && len(commits) > 0
		return err
	})
	if err != nil {
		return err
	}
	return v.render("compare", view.Head+" against "+view.Base, view)
}

func actOpenPull(v *visit) (string, error) {
	i, err := v.p.OpenPull(v.full(), NewPull{
		Title: v.field("title"), Body: v.field("body"), Base: v.field("base"), Head: v.field("head"), Draft: v.field("draft") != "",
	})
	if err != nil {
		return "", err
	}
	return "/" + escapePath(v.full()) + "/pull/" + itoa(int64(i.Number)), nil
}

// newIssuePage is the form for a new issue.
func (w *web) newIssuePage(v *visit) error {
	r, err := v.p.Repo(v.full())
	if err != nil {
		return err
	}
	view := struct {
		Full       string
		Title      string
		Labels     []Label
		Assignable []string
		MayTriage  bool
	}{Full: r.FullName(), Title: v.r.PostForm.Get("title"), Labels: r.Labels, MayTriage: r.role(v.p.login).rank() >= RoleTriage.rank()}
	for _, login := range r.explicit() {
		if u, ok := w.s.User(login); ok && u.Type == TypeUser {
			view.Assignable = append(view.Assignable, login)
		}
	}
	return v.render("newissue", "New issue", view)
}

func actOpenIssue(v *visit) (string, error) {
	in := NewIssue{Title: v.field("title"), Body: v.field("body"), Assignees: v.r.PostForm["assignee"]}
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
func (w *web) runPage(v *visit) error {
	view := struct {
		Full, SHA, Name, Words string
		Title                  string
		Summary, Text          template.HTML
		Since, Until           time.Time
	}{}
	err := v.p.do(func(x *session) error {
		r, err := x.repo(v.full())
		if err != nil {
			return err
		}
		for _, k := range r.CheckRuns {
			if itoa(k.ID) != v.r.PathValue("id") {
				continue
			}
			in := w.viewer(x, r).in
			view.Full, view.SHA, view.Name, view.Title = r.FullName(), k.HeadSHA, k.Name, k.Title
			view.Words = strings.ReplaceAll(strings.TrimSpace(k.Status+" "+k.Conclusion), "_", " ")
			view.Summary, view.Text = w.md.render(k.Summary, in, fixedBoxes), w.md.render(k.Text, in, fixedBoxes)
			view.Since, view.Until = k.StartedAt, k.CompletedAt
			return nil
		}
		return &Error{Status: http.StatusNotFound, Message: "Not Found"}
	})
	if err != nil {
		return err
	}
	return v.render("run", "Check "+view.Name, view)
}
