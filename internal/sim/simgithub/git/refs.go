package git

import (
	"fmt"
	"regexp"
	"strings"
)

// RefChange moves one reference. If After is ZeroSHA, it deletes the reference.
type RefChange struct {
	Name   string // full, such as refs/heads/main
	Before string // expected object; "": not checked; ZeroSHA: the reference must not exist
	After  string
	Force  bool
}

// refName matches the full reference names that GitHub accepts.
var refName = regexp.MustCompile(`^refs/[A-Za-z0-9_][\w./@+=-]*[\w@+=-]$`)

// ValidRef reports whether GitHub accepts a full reference name.
func ValidRef(name string) bool {
	return refName.MatchString(name) && !strings.Contains(name, "..") && !strings.Contains(name, "//") &&
		!strings.HasSuffix(name, ".lock") && !strings.Contains(name, "/.") && strings.Count(name, "/") >= 2
}

// MoveRefs moves all references of a list, or none if one of them cannot be moved.
func (r *Repository) MoveRefs(list []RefChange) error {
	if len(list) == 1 && list[0].After != ZeroSHA && r.loose.writeRef(list[0].Name, list[0].After) {
		return nil
	}
	var script strings.Builder
	script.WriteString("start\n")
	for _, c := range list {
		fmt.Fprintf(&script, "update %s %s %s\n", c.Name, c.After, c.Before)
	}
	script.WriteString("prepare\ncommit\n")
	_, _, err := r.git.run(command{dir: r.Dir, stdin: []byte(script.String()), args: []string{"update-ref", "--stdin"}})
	return err
}

// UpdateRef points a reference at an object. If before is not empty, the reference must point at it.
func (r *Repository) UpdateRef(name, after, before string) error {
	if now, known := r.loose.ref(name); known && (before == "" || before == now) && r.loose.writeRef(name, after) {
		return nil
	}
	args := []string{"update-ref", name, after}
	if before != "" {
		args = append(args, before)
	}
	_, err := r.Output(args...)
	return err
}

// Resolve returns the commit that a revision names, or "" if there is none.
func (r *Repository) Resolve(rev string) string {
	if rev == "" || strings.HasPrefix(rev, "-") {
		return ""
	}
	if sha, known := r.loose.resolve(rev); known {
		return sha
	}
	sha, err := r.Output("rev-parse", "--verify", "--quiet", rev+"^{commit}")
	if err != nil {
		return ""
	}
	return sha
}

// Branch returns the head of a branch, or "" if the branch does not exist.
func (r *Repository) Branch(name string) string { return r.Resolve("refs/heads/" + name) }

// Object returns the object that a full reference or other revision names, or "" if there is none.
func (r *Repository) Object(name string) string {
	if sha, known := r.loose.named(name); known {
		return sha
	}
	sha, err := r.Output("rev-parse", "--verify", "--quiet", name)
	if err != nil {
		return ""
	}
	return sha
}

// Refs lists the references below a prefix, sorted by name.
func (r *Repository) Refs(prefix string) ([]Ref, error) {
	if list, known := r.loose.refs(prefix); known {
		return list, nil
	}
	out, err := r.Output("for-each-ref", "--format=%(refname) %(objectname) %(objecttype)", prefix)
	if err != nil {
		return nil, err
	}
	var list []Ref
	for line := range strings.Lines(out) {
		if f := strings.Fields(line); len(f) == 3 {
			list = append(list, Ref{Name: f[0], SHA: f[1], Type: f[2]})
		}
	}
	return list, nil
}

// Ref is a reference, and the id and the type of the object that it points to.
type Ref struct{ Name, SHA, Type string }

// IsAncestor reports whether the commit old is reachable from new.
func (r *Repository) IsAncestor(old, new string) bool {
	if is, known := r.loose.isAncestor(old, new); known {
		return is
	}
	_, code, _ := r.git.run(command{dir: r.Dir, args: []string{"merge-base", "--is-ancestor", old, new}})
	return code == 0
}

// MergeBase returns the best common ancestor of two commits, or "" if their histories are unrelated.
func (r *Repository) MergeBase(a, b string) string {
	if is, known := r.loose.isAncestor(a, b); is && known {
		return a
	}
	if is, known := r.loose.isAncestor(b, a); is && known {
		return b
	}
	sha, err := r.Output("merge-base", a, b)
	if err != nil {
		return ""
	}
	return sha
}

// Moved returns the changes that turn one list of references into another.
func Moved(before, after []Ref) []RefChange {
	old := map[string]string{}
	for _, f := range before {
		old[f.Name] = f.SHA
	}
	var list []RefChange
	for _, f := range after {
		was, ok := old[f.Name]
		delete(old, f.Name)
		if !ok {
			was = ZeroSHA
		}
		if was != f.SHA {
			list = append(list, RefChange{Name: f.Name, Before: was, After: f.SHA})
		}
	}
	for _, f := range before {
		if sha, gone := old[f.Name]; gone {
			list = append(list, RefChange{Name: f.Name, Before: sha, After: ZeroSHA})
		}
	}
	return list
}
