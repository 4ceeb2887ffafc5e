package simgithub

import (
	"bytes"
	"html/template"
	"net/http"
	"path"
	"slices"
	"strings"
	"time"
	"unicode/utf8"
)

// repoView is the page of a repository.
type repoView struct {
	Full    string
	Private bool
	Default string
	Role    Role
	Place   placeView
	Readme  template.HTML
	Commit  *CommitView
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
	Labels    []Label
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

// placeView is a folder or file at a commit.
type placeView struct {
	Full, Ref, SHA, Path string
	Parent               string // folder above, if Up
	Up                   bool
	Entries              []entryView
	Text                 string
	Lines                []string
	Binary               bool
	Size                 int
	Branch               bool // Ref is a branch: a file can be changed
	MayPush              bool
}

// entryView is one entry of a folder.
type entryView struct {
	Name, Path, Kind string
	Size             int
}

func (w *web) repoPage(v *visit) error {
	out := repoView{}
	err := v.p.do(func(x *session) error {
		r, err := x.repo(v.full())
		if err != nil {
			return err
		}
		out = repoView{Full: r.FullName(), Private: r.Private, Default: r.DefaultBranch, Role: r.role(x.login()), Lists: lists(x, r)}
		if out.Place, err = folder(x, r, r.DefaultBranch, ""); err != nil {
			return err
		}
		if k := x.s.git.commit(r, "refs/heads/"+r.DefaultBranch); k != nil {
			c := x.s.commitView(*k)
			out.Commit = &c
		}
		for _, e := range out.Place.Entries {
			if strings.EqualFold(e.Name, "readme.md") && e.Kind == "blob" {
				f, err := file(x, r, out.Place.SHA, e.Path)
				if err != nil {
					return err
				}
				out.Readme = w.md.render(f.Text, w.viewer(x, r).in, fixedBoxes)
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	return v.render("repo", out.Full, out)
}

// listsPage is the issues and pull requests of a repository alone.
func (w *web) listsPage(v *visit) error {
	to := "#issues"
	if strings.HasSuffix(v.r.URL.Path, "/pulls") {
		to = "#pulls"
	}
	http.Redirect(v.w, v.r, "/"+escapePath(v.full())+to, http.StatusFound)
	return nil
}

func lists(x *session, r *Repo) listsView {
	out := listsView{Full: r.FullName()}
	from := map[string]int{}
	for _, i := range r.issuesByNumber() {
		row := rowView{linkView: linkTo(i), Author: i.Author, At: i.CreatedAt, Assignees: slices.Clone(i.Assignees), Comments: len(i.Comments)}
		for _, l := range r.Labels {
			if slices.Contains(i.Labels, l.Name) {
				row.Labels = append(row.Labels, l)
			}
		}
		if i.Pull == nil {
			out.Issues = append(out.Issues, row)
			continue
		}
		row.Checks, _ = x.s.combinedStatus(r, i.Pull.HeadSHA)
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
	refs, _ := x.s.git.refs(r, "refs/heads/") // without git there are no branches to show
	for _, f := range refs {
		name := strings.TrimPrefix(f.Name, "refs/heads/")
		out.Branches = append(out.Branches, branchView{Name: name, SHA: f.SHA, Default: name == r.DefaultBranch, Pull: from[name]})
	}
	return out
}

// splitRef parts an address into a branch, tag or commit and a path: branches may have slashes in their names.
func splitRef(x *session, r *Repo, rest string) (ref, sha, file string, err error) {
	parts := strings.Split(strings.Trim(rest, "/"), "/")
	for n := len(parts); n > 0; n-- {
		name := strings.Join(parts[:n], "/")
		if sha := x.s.git.branch(r, name); sha != "" {
			return name, sha, strings.Join(parts[n:], "/"), nil
		}
	}
	if sha := x.s.git.resolve(r, parts[0]); sha != "" {
		return parts[0], sha, strings.Join(parts[1:], "/"), nil
	}
	return "", "", "", errNotFound()
}

func folder(x *session, r *Repo, ref, dir string) (placeView, error) {
	out := placeView{Full: r.FullName(), Ref: ref, SHA: x.s.git.resolve(r, ref), Path: dir, Up: dir != ""}
	if out.SHA == "" {
		return out, nil // an empty repository
	}
	var paths []string
	if dir != "" {
		if out.Parent = path.Dir(dir); out.Parent == "." {
			out.Parent = ""
		}
		paths = []string{dir + "/"}
	}
	list, err := x.s.git.list(r, out.SHA, false, paths...)
	if err != nil {
		return out, err
	}
	if len(list) == 0 && dir != "" {
		return out, errNotFound()
	}
	for _, l := range list {
		out.Entries = append(out.Entries, entryView{Name: path.Base(l.path), Path: l.path, Kind: l.kind, Size: l.size})
	}
	slices.SortStableFunc(out.Entries, func(a, b entryView) int { return strings.Compare(b.Kind, a.Kind) }) // folders first
	return out, nil
}

// maxShown is the largest file whose text is shown, in bytes.
const maxShown = 256 << 10

func file(x *session, r *Repo, sha, name string) (placeView, error) {
	list, err := x.s.git.list(r, sha, false, name)
	if err != nil || len(list) != 1 || list[0].kind != "blob" {
		return placeView{}, errNotFound()
	}
	out := placeView{Full: r.FullName(), Ref: sha, SHA: sha, Path: name, Size: list[0].size, Up: true}
	if out.Parent = path.Dir(name); out.Parent == "." {
		out.Parent = ""
	}
	content, err := x.s.git.blob(r, list[0].sha)
	if err != nil {
		return out, err
	}
	if out.Binary = len(content) > maxShown || !utf8.Valid(content) || bytes.IndexByte(content, 0) >= 0; !out.Binary {
		out.Text = string(content)
		out.Lines = strings.Split(strings.TrimSuffix(out.Text, "\n"), "\n")
	}
	return out, nil
}

// at finds the folder or file of an address.
func (w *web) at(v *visit, find func(x *session, r *Repo, sha, path string) (placeView, error)) (out placeView, err error) {
	err = v.p.do(func(x *session) error {
		r, err := x.repo(v.full())
		if err != nil {
			return err
		}
		ref, sha, name, err := splitRef(x, r, v.r.PathValue("ref"))
		if err != nil {
			return err
		}
		if out, err = find(x, r, sha, name); err != nil {
			return err
		}
		out.Ref, out.SHA = ref, sha
		out.Branch = x.s.git.branch(r, ref) != ""
		out.MayPush = out.Branch && x.by != nil && x.need(r, "contents", "write", RoleWrite) == nil
		return nil
	})
	return out, err
}

func (w *web) treePage(v *visit) error {
	out, err := w.at(v, folder)
	if err != nil {
		return err
	}
	return v.render("tree", out.Path+" at "+out.Ref, out)
}

func (w *web) blobPage(v *visit) error {
	out, err := w.at(v, file)
	if err != nil {
		return err
	}
	return v.render("blob", out.Path+" at "+out.Ref, out)
}

// rawPage is a file as it is; always as plain text, so that nothing in it can run.
func (w *web) rawPage(v *visit) error {
	out, err := w.at(v, file)
	if err != nil {
		return err
	}
	content, err := v.p.File(v.full(), out.SHA, out.Path)
	if err != nil {
		return err
	}
	v.headers("text/plain; charset=utf-8")
	_, _ = v.w.Write(content) // the visitor is gone: nobody to tell
	return nil
}

// actPush commits a changed file to its branch.
func actPush(v *visit) (string, error) {
	out, err := v.web.at(v, file)
	if err != nil {
		return "", err
	}
	if v.field("sha") != out.SHA {
		return "", &Error{Status: http.StatusConflict, Message: "The branch has moved since the page was loaded. Look at it again."}
	}
	message := strings.TrimSpace(v.field("message"))
	if message == "" {
		message = "Update " + path.Base(out.Path)
	}
	sha, err := v.p.PushCommit(v.full(), Commit{Branch: out.Ref, Message: message, Files: map[string]string{out.Path: v.field("body")}})
	if err != nil {
		return "", err
	}
	return "/" + escapePath(v.full()) + "/commit/" + sha, nil
}
