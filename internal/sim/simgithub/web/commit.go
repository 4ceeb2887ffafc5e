package web

import (
	"strings"

	"github.com/errand-bot/errand/internal/sim/simgithub"
)

// commitPage serves a commit with its changes.
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
