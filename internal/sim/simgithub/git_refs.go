package simgithub

import (
	"fmt"
	"regexp"
	"strings"
)

// refChange moves one reference. A zero Before is not checked; a zero-id After deletes.
type refChange struct {
	Name   string // full, such as refs/heads/main
	Before string // what must be there; "": whatever is there; zeroSHA: nothing
	After  string
	Force  bool
}

// refName is what GitHub takes as a full reference name.
var refName = regexp.MustCompile(`^refs/[A-Za-z0-9_][\w./@+=-]*[\w@+=-]$`)

func validRef(name string) bool {
	return refName.MatchString(name) && !strings.Contains(name, "..") && !strings.Contains(name, "//") &&
		!strings.HasSuffix(name, ".lock") && !strings.Contains(name, "/.") && strings.Count(name, "/") >= 2
}

// moveRefs moves references together. A single one needs no transaction.
func (r *repository) moveRefs(list []refChange) error {
	if len(list) == 1 && list[0].After != zeroSHA && r.loose.writeRef(list[0].Name, list[0].After) {
		return nil
	}
	var script strings.Builder
	script.WriteString("start\n")
	for _, c := range list {
		fmt.Fprintf(&script, "update %s %s %s\n", c.Name, c.After, c.Before)
	}
	script.WriteString("prepare\ncommit\n")
	_, _, err := r.git.run(gitCmd{dir: r.Dir, stdin: []byte(script.String()), args: []string{"update-ref", "--stdin"}})
	return err
}

// updateRef points a reference at an object; before is what must be there, "" for anything.
func (r *repository) updateRef(name, after, before string) error {
	if now, known := r.loose.ref(name); known && (before == "" || before == now) && r.loose.writeRef(name, after) {
		return nil
	}
	args := []string{"update-ref", name, after}
	if before != "" {
		args = append(args, before)
	}
	_, err := r.out(args...)
	return err
}

// resolve gives the commit that a revision names, or "" if there is none.
func (r *repository) resolve(rev string) string {
	if rev == "" || strings.HasPrefix(rev, "-") {
		return ""
	}
	if sha, known := r.loose.resolve(rev); known {
		return sha
	}
	sha, err := r.out("rev-parse", "--verify", "--quiet", rev+"^{commit}")
	if err != nil {
		return ""
	}
	return sha
}

// branch gives the head of a branch, or "" if it does not exist.
func (r *repository) branch(name string) string { return r.resolve("refs/heads/" + name) }

// ref gives the object that a full reference or another revision names, or "".
func (r *repository) ref(name string) string {
	if sha, known := r.loose.named(name); known {
		return sha
	}
	sha, err := r.out("rev-parse", "--verify", "--quiet", name)
	if err != nil {
		return ""
	}
	return sha
}

// refs lists full reference names with their objects, below a prefix, sorted by name.
func (r *repository) refs(prefix string) ([]gitRef, error) {
	if list, known := r.loose.refs(prefix); known {
		return list, nil
	}
	out, err := r.out("for-each-ref", "--format=%(refname) %(objectname) %(objecttype)", prefix)
	if err != nil {
		return nil, err
	}
	var list []gitRef
	for line := range strings.Lines(out) {
		if f := strings.Fields(line); len(f) == 3 {
			list = append(list, gitRef{Name: f[0], SHA: f[1], Type: f[2]})
		}
	}
	return list, nil
}

// gitRef is a reference and what it points to.
type gitRef struct{ Name, SHA, Type string }

// isAncestor tells whether old is reachable from new.
func (r *repository) isAncestor(old, new string) bool {
	if is, known := r.loose.isAncestor(old, new); known {
		return is
	}
	_, code, _ := r.git.run(gitCmd{dir: r.Dir, args: []string{"merge-base", "--is-ancestor", old, new}})
	return code == 0
}

// mergeBase is the best common ancestor, or "" if histories are unrelated.
func (r *repository) mergeBase(a, b string) string {
	if is, known := r.loose.isAncestor(a, b); is && known {
		return a
	}
	if is, known := r.loose.isAncestor(b, a); is && known {
		return b
	}
	sha, err := r.out("merge-base", a, b)
	if err != nil {
		return ""
	}
	return sha
}

// moved lists how references differ between two listings.
func moved(before, after []gitRef) []refChange {
	old := map[string]string{}
	for _, f := range before {
		old[f.Name] = f.SHA
	}
	var list []refChange
	for _, f := range after {
		was, ok := old[f.Name]
		delete(old, f.Name)
		if !ok {
			was = zeroSHA
		}
		if was != f.SHA {
			list = append(list, refChange{Name: f.Name, Before: was, After: f.SHA})
		}
	}
	for _, f := range before {
		if sha, gone := old[f.Name]; gone {
			list = append(list, refChange{Name: f.Name, Before: sha, After: zeroSHA})
		}
	}
	return list
}
