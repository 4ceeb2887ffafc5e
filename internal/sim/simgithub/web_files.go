package simgithub

import (
	"bytes"
	"net/http"
	"path"
	"slices"
	"strings"
	"unicode/utf8"
)

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

// splitRef parts an address into a branch, tag or commit and a path: branches may have slashes in their names.
func splitRef(x *session, r *Repo, rest string) (ref, sha, file string, err error) {
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
	return "", "", "", errNotFound()
}

func folder(x *session, r *Repo, ref, dir string) (placeView, error) {
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
		return out, errNotFound()
	}
	for _, l := range list {
		out.Entries = append(out.Entries, entryView{Name: path.Base(l.Path), Path: l.Path, Kind: l.Kind, Size: l.Size})
	}
	slices.SortStableFunc(out.Entries, func(a, b entryView) int { return strings.Compare(b.Kind, a.Kind) }) // folders first
	return out, nil
}

// maxShown is the largest file whose text is shown, in bytes.
const maxShown = 256 << 10

func file(x *session, r *Repo, sha, name string) (placeView, error) {
	list, err := r.Git.List(sha, false, name)
	if err != nil || len(list) != 1 || list[0].Kind != "blob" {
		return placeView{}, errNotFound()
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
		out.Branch = r.Git.Branch(ref) != ""
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
