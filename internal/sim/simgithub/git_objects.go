package simgithub

import (
	"fmt"
	"strings"
	"time"
)

// newCommit is a commit to be made.
type newCommit struct {
	tree      string
	parents   []string
	message   string
	author    gitIdentity
	committer gitIdentity
}

// writeCommit writes a commit object.
func (r *repository) writeCommit(c newCommit) (string, error) {
	var b strings.Builder
	fmt.Fprintf(&b, "tree %s\n", c.tree)
	for _, p := range c.parents {
		fmt.Fprintf(&b, "parent %s\n", p)
	}
	for _, who := range []struct {
		role string
		id   gitIdentity
	}{{"author", c.author}, {"committer", c.committer}} {
		name := strings.NewReplacer("<", "", ">", "", "\n", " ").Replace(who.id.name)
		email := strings.NewReplacer("<", "", ">", "", "\n", " ").Replace(who.id.email)
		fmt.Fprintf(&b, "%s %s <%s> %d %s\n", who.role, name, email, who.id.at.Unix(), who.id.at.Format("-0700"))
	}
	fmt.Fprintf(&b, "\n%s", c.message)
	return r.loose.writeObject("commit", []byte(b.String()))
}

// gitCommit is a commit as read from git.
type gitCommit struct {
	SHA, Tree         string
	Parents           []string
	Message           string
	Author, Committer gitIdentity
}

// commits reads commits for a rev-list argument list, newest first; max bounds their number.
func (r *repository) commits(max int, revs ...string) ([]gitCommit, error) {
	args := []string{"log", fmt.Sprintf("--max-count=%d", max),
		"--format=%H%x1f%T%x1f%P%x1f%an%x1f%ae%x1f%aI%x1f%cn%x1f%ce%x1f%cI%x1f%B%x1e"}
	out, err := r.out(append(args, revs...)...)
	if err != nil {
		return nil, err
	}
	var list []gitCommit
	for rec := range strings.SplitSeq(out, "\x1e") {
		f := strings.Split(strings.TrimLeft(rec, "\n"), "\x1f")
		if len(f) != 10 {
			continue
		}
		c := gitCommit{SHA: f[0], Tree: f[1], Parents: strings.Fields(f[2]), Message: strings.TrimRight(f[9], "\n")}
		c.Author = gitIdentity{name: f[3], email: f[4], at: parseTime(f[5])}
		c.Committer = gitIdentity{name: f[6], email: f[7], at: parseTime(f[8])}
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

// commit reads one commit; nil if there is none of that name.
func (r *repository) commit(rev string) *gitCommit {
	sha := r.resolve(rev)
	if sha == "" {
		return nil
	}
	if c, known := r.loose.commit(sha); known {
		return c
	}
	list, err := r.commits(1, sha)
	if err != nil || len(list) == 0 {
		return nil
	}
	return &list[0]
}

// gitIdentity is who wrote a commit, and when.
type gitIdentity struct {
	name, email string
	at          time.Time
}
