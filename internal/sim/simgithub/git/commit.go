package git

import (
	"fmt"
	"strings"
	"time"
)

// NewCommit is a commit to be written.
type NewCommit struct {
	Tree      string
	Parents   []string
	Message   string
	Author    Identity
	Committer Identity
}

// WriteCommit stores a commit and returns its id. It moves no branch.
func (r *Repository) WriteCommit(c NewCommit) (string, error) {
	var b strings.Builder
	fmt.Fprintf(&b, "tree %s\n", c.Tree)
	for _, p := range c.Parents {
		fmt.Fprintf(&b, "parent %s\n", p)
	}
	for _, who := range []struct {
		role string
		id   Identity
	}{{"author", c.Author}, {"committer", c.Committer}} {
		name := strings.NewReplacer("<", "", ">", "", "\n", " ").Replace(who.id.Name)
		email := strings.NewReplacer("<", "", ">", "", "\n", " ").Replace(who.id.Email)
		fmt.Fprintf(&b, "%s %s <%s> %d %s\n", who.role, name, email, who.id.At.Unix(), who.id.At.Format("-0700"))
	}
	fmt.Fprintf(&b, "\n%s", c.Message)
	return r.loose.writeObject("commit", []byte(b.String()))
}

// Commit is a commit of the repository.
type Commit struct {
	SHA, Tree         string
	Parents           []string
	Message           string
	Author, Committer Identity
}

// Commits returns at most max commits that `git log` lists for some revisions and options, newest first.
func (r *Repository) Commits(max int, revs ...string) ([]Commit, error) {
	args := []string{"log", fmt.Sprintf("--max-count=%d", max),
		"--format=%H%x1f%T%x1f%P%x1f%an%x1f%ae%x1f%aI%x1f%cn%x1f%ce%x1f%cI%x1f%B%x1e"}
	out, err := r.Output(append(args, revs...)...)
	if err != nil {
		return nil, err
	}
	var list []Commit
	for rec := range strings.SplitSeq(out, "\x1e") {
		f := strings.Split(strings.TrimLeft(rec, "\n"), "\x1f")
		if len(f) != 10 {
			continue
		}
		c := Commit{SHA: f[0], Tree: f[1], Parents: strings.Fields(f[2]), Message: strings.TrimRight(f[9], "\n")}
		c.Author = Identity{Name: f[3], Email: f[4], At: parseTime(f[5])}
		c.Committer = Identity{Name: f[6], Email: f[7], At: parseTime(f[8])}
		list = append(list, c)
	}
	return list, nil
}

func parseTime(s string) time.Time {
	t, err := time.Parse(time.RFC3339, s)
	if err != nil {
		return time.Time{}
	}
	return t.UTC()
}

// Commit returns the commit that a revision names, or nil if there is none.
func (r *Repository) Commit(rev string) *Commit {
	sha := r.Resolve(rev)
	if sha == "" {
		return nil
	}
	if c, known := r.loose.commit(sha); known {
		return c
	}
	list, err := r.Commits(1, sha)
	if err != nil || len(list) == 0 {
		return nil
	}
	return &list[0]
}

// Identity is the author or the committer of a commit, with the time of the commit.
type Identity struct {
	Name, Email string
	At          time.Time
}
