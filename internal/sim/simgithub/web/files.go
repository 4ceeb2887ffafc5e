package web

import (
	"bytes"
	"path"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/errand-bot/errand/internal/sim/simgithub"
)

// placeView is a folder or file at a commit.
type placeView struct {
	Full, Ref, SHA, Path string
	Parent               string // parent folder, if Up is set
	Up                   bool
	Entries              []entryView
	Text                 string
	Lines                []string
	Binary               bool
	Size                 int
}

// entryView is one entry of a folder.
type entryView struct {
	Name, Path, Kind string
	Size             int
}

// splitRef splits an address into a branch, tag or commit and a path. Names of branches may have slashes.
func splitRef(r *simgithub.Repo, rest string) (ref, sha, file string, err error) {
	parts := strings.Split(strings.Trim(rest, "/"), "/")
	for n := len(parts); n > 0; n-- {
		name := strings.Join(parts[:n], "/")
		if sha := r.Git.Branch(name); sha != "" {
			return name, sha, strings.Join(parts[n:], "/"), nil
		}
	}
	if sha := r.Git.Resolve(parts[0]); sha != "" {
		return parts[0], sha, strings.Join(parts[1:], "/"), nil
	}
	return "", "", "", notFound()
}

func folder(r *simgithub.Repo, ref, dir string) (placeView, error) {
	out := placeView{Full: r.FullName(), Ref: ref, SHA: r.Git.Resolve(ref), Path: dir, Up: dir != ""}
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
	list, err := r.Git.List(out.SHA, false, paths...)
	if err != nil {
		return out, err
	}
	if len(list) == 0 && dir != "" {
		return out, notFound()
	}
	for _, l := range list {
		out.Entries = append(out.Entries, entryView{Name: path.Base(l.Path), Path: l.Path, Kind: l.Kind, Size: l.Size})
	}
	slices.SortStableFunc(out.Entries, func(a, b entryView) int { return strings.Compare(b.Kind, a.Kind) }) // folders first
	return out, nil
}

// maxShown is the largest file whose text is shown, in bytes.
const maxShown = 256 << 10

func file(r *simgithub.Repo, sha, name string) (placeView, error) {
	list, err := r.Git.List(sha, false, name)
	if err != nil || len(list) != 1 || list[0].Kind != "blob" {
		return placeView{}, notFound()
	}
	out := placeView{Full: r.FullName(), Ref: sha, SHA: sha, Path: name, Size: list[0].Size, Up: true}
	if out.Parent = path.Dir(name); out.Parent == "." {
		out.Parent = ""
	}
	content, err := r.Git.Blob(list[0].SHA)
	if err != nil {
		return out, err
	}
	if out.Binary = len(content) > maxShown || !utf8.Valid(content) || bytes.IndexByte(content, 0) >= 0; !out.Binary {
		out.Text = string(content)
		out.Lines = strings.Split(strings.TrimSuffix(out.Text, "\n"), "\n")
	}
	return out, nil
}

// at returns the folder or file of an address.
func (w *site) at(v *visit, find func(r *simgithub.Repo, sha, path string) (placeView, error)) (out placeView, err error) {
	r, err := v.p.Repo(v.full())
	if err != nil {
		return out, err
	}
	ref, sha, name, err := splitRef(r, v.r.PathValue("ref"))
	if err != nil {
		return out, err
	}
	out, err = find(r, sha, name)
	out.Ref, out.SHA = ref, sha
	return out, err
}

func (w *site) treePage(v *visit) error {
	out, err := w.at(v, folder)
	if err != nil {
		return err
	}
	return v.render("tree", out.Path+" at "+out.Ref, out)
}

func (w *site) blobPage(v *visit) error {
	out, err := w.at(v, file)
	if err != nil {
		return err
	}
	return v.render("blob", out.Path+" at "+out.Ref, out)
}
