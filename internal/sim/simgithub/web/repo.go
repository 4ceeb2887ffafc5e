package web

import (
	"html/template"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/errand-bot/errand/internal/sim/simgithub"
)

// repoView is the page of a repository.
type repoView struct {
	Full    string
	Private bool
	Default string
	Role    simgithub.Role
	Place   placeView
	Readme  template.HTML
	Commit  *simgithub.CommitView
	Lists   listsView
}

// listsView is a repository's issues, pull requests and branches.
type listsView struct {
	Full          string
	Issues, Pulls []rowView // open ones first, then newest first
	Branches      []branchView
}

// rowView is an issue or pull request in a list.
type rowView struct {
	linkView
	Author    string
	At        time.Time
	Labels    []simgithub.Label
	Assignees []string
	Comments  int
	Checks    string
}

// branchView is a branch in a list.
type branchView struct {
	Name, SHA string
	Default   bool
	Pull      int // open pull request from here, or 0
}

func (w *site) repoPage(v *visit) error {
	r, err := v.p.Repo(v.full())
	if err != nil {
		return err
	}
	out := repoView{Full: r.FullName(), Private: r.Private, Default: r.DefaultBranch, Role: r.RoleOf(v.p.Login()), Lists: lists(r)}
	if out.Place, err = folder(r, r.DefaultBranch, ""); err != nil {
		return err
	}
	if k := r.Git.Commit("refs/heads/" + r.DefaultBranch); k != nil {
		c := w.s.CommitView(*k)
		out.Commit = &c
	}
	for _, e := range out.Place.Entries {
		if strings.EqualFold(e.Name, "readme.md") && e.Kind == "blob" {
			f, err := file(r, out.Place.SHA, e.Path)
			if err != nil {
				return err
			}
			out.Readme = w.md.render(f.Text, w.viewer(v, r).in, fixedBoxes)
		}
	}
	return v.render("repo", out.Full, out)
}

// listsPage redirects the lists of issues and pull requests to their sections of the repository's page.
func (w *site) listsPage(v *visit) error {
	to := "#issues"
	if strings.HasSuffix(v.r.URL.Path, "/pulls") {
		to = "#pulls"
	}
	http.Redirect(v.w, v.r, "/"+escapePath(v.full())+to, http.StatusFound)
	return nil
}

func lists(r *simgithub.Repo) listsView {
	out := listsView{Full: r.FullName()}
	from := map[string]int{}
	for _, i := range r.IssuesByNumber() {
		row := rowView{
			linkView: linkTo(i), Author: i.Author, At: i.CreatedAt, Assignees: slices.Clone(i.Assignees), Comments: len(i.Comments),
		}
		for _, l := range r.Labels {
			if slices.Contains(i.Labels, l.Name) {
				row.Labels = append(row.Labels, l)
			}
		}
		if i.Pull == nil {
			out.Issues = append(out.Issues, row)
			continue
		}
		row.Checks, _ = r.CombinedStatus(i.Pull.HeadSHA)
		out.Pulls = append(out.Pulls, row)
		if i.State == "open" {
			from[i.Pull.Head] = i.Number
		}
	}
	for _, list := range [][]rowView{out.Issues, out.Pulls} {
		slices.SortStableFunc(list, func(a, b rowView) int {
			if open := a.State == "Open" || a.State == "Draft"; open != (b.State == "Open" || b.State == "Draft") {
				return map[bool]int{true: -1, false: 1}[open]
			}
			return b.Number - a.Number
		})
	}
	refs, _ := r.Git.Refs("refs/heads/") // on errors of git, the list is empty
	for _, f := range refs {
		name := strings.TrimPrefix(f.Name, "refs/heads/")
		out.Branches = append(out.Branches, branchView{Name: name, SHA: f.SHA, Default: name == r.DefaultBranch, Pull: from[name]})
	}
	return out
}
