package web

import (
	"slices"
	"strings"

	"github.com/errand-bot/errand/internal/sim/simgithub"
)

// newIssuePage serves the form for a new issue.
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
	}{
		Full: r.FullName(), Title: v.r.PostForm.Get("title"), Labels: r.Labels,
		MayTriage: r.RoleOf(v.p.Login()).Rank() >= simgithub.RoleTriage.Rank(),
	}
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
