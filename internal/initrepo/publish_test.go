package initrepo

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/errand-bot/errand/internal/forge"
	"github.com/errand-bot/errand/internal/scan"
)

// A commit of a fake repository.
type commit struct{ message, parent, file string }

// fakeGitHub has one branch besides the default branch, whose newest commit is "main".
type fakeGitHub struct {
	GitHub
	head    string
	commits map[string]commit
	diff    forge.Comparison
	pr      *forge.PR
	moved   bool
	headErr error
}

func (f *fakeGitHub) PRByHead(context.Context, forge.Repo, string) (*forge.PR, error) {
	return f.pr, nil
}

func (f *fakeGitHub) FindRepo(context.Context, string) (forge.Found, error) {
	return forge.Found{Repo: forge.Repo{Owner: "acme", Name: "app"}, DefaultBranch: "main"}, nil
}

func (f *fakeGitHub) Installation(context.Context, int64) (forge.Installation, error) {
	return forge.Installation{Permissions: map[string]string{"contents": "write", "pull_requests": "write"}}, nil
}

func (f *fakeGitHub) Head(context.Context, forge.Repo, string) (string, error) {
	if f.headErr != nil {
		return "", f.headErr
	}
	if f.head == "" {
		return "", forge.ErrNotFound
	}
	return f.head, nil
}

func (f *fakeGitHub) ChangedSince(context.Context, forge.Repo, string, string) (forge.Comparison, error) {
	return f.diff, nil
}

func (f *fakeGitHub) CommitMessage(_ context.Context, _ forge.Repo, c string) (message, parent string, err error) {
	got, ok := f.commits[c]
	if !ok {
		return "", "", fmt.Errorf("no commit %q", c)
	}
	return got.message, got.parent, nil
}

func (f *fakeGitHub) CommitFiles(_ context.Context, _ forge.Repo, c string, _ []string) (map[string]string, error) {
	return map[string]string{scan.SettingsFile: f.commits[c].file}, nil
}

func (f *fakeGitHub) CommitFile(context.Context, forge.Repo, forge.FileCommit) (string, error) {
	return "new", nil
}

func (f *fakeGitHub) MoveBranch(context.Context, forge.Repo, string, string, string) error {
	f.moved = true
	return nil
}

func (f *fakeGitHub) OpenPR(context.Context, forge.Repo, forge.NewPR) (forge.PR, error) {
	return forge.PR{Number: 1}, nil
}

// TestBranchesOfOthersStay: a branch is replaced only if errand alone wrote it; --force replaces what people changed on it, but no
// branch that errand did not begin. What can be refused early is refused before the commands are tried.
func TestBranchesOfOthersStay(t *testing.T) {
	t.Parallel()
	const file, old = "check: [new]\n", "check: [old]\n"
	ours := func(file string) string { return messageOf(titleOf(false, false), []byte(file)) }
	const signed = "\nSigned-off-by: Ada <ada@example.org>\n"
	settings := []forge.ChangedFile{{Path: scan.SettingsFile}}
	type branch struct {
		commits []commit // of the branch, the newest first
		ahead   int
		files   []forge.ChangedFile
	}
	const (
		moved = "moved"
		left  = "left"
		late  = "refused late" // it depends on the file
	)
	const notOurs, changed = "is not errand's", "people have changed the branch"
	for name, row := range map[string]struct {
		branch
		name        string
		want, force string
	}{
		"none":                              {want: moved, force: moved},
		"none of another name":              {name: "x", want: moved, force: moved},
		"an older commit of main":           {branch: branch{commits: []commit{{"Fix a bug", "", ""}}}, name: "production", want: notOurs, force: notOurs},
		"an older commit with settings":     {branch: branch{commits: []commit{{"Add settings", "", old}}}, name: "production", want: notOurs, force: notOurs},
		"main itself under errand's name":   {branch: branch{commits: []commit{{"Fix a bug", "", ""}}}, want: changed, force: moved},
		"errand's commit, which was merged": {branch: branch{commits: []commit{{ours(old), "base", old}}}, name: "x", want: moved, force: moved},
		"errand's old file":                 {branch: branch{[]commit{{ours(old), "base", old}}, 1, settings}, name: "x", want: moved, force: moved},
		"errand's file":                     {branch: branch{[]commit{{ours(file), "main", file}}, 1, settings}, want: left, force: left},
		"errand's file on an old commit":    {branch: branch{[]commit{{ours(file), "base", file}}, 1, settings}, want: moved, force: moved},
		"errand's file, other title":        {branch: branch{[]commit{{messageOf(titleOf(true, true), []byte(old)), "main", old}}, 1, settings}, want: moved, force: moved},
		"signed off":                        {branch: branch{[]commit{{ours(file) + signed, "base", file}}, 1, settings}, want: left, force: left},
		"signed off, old file":              {branch: branch{[]commit{{ours(old) + signed, "main", old}}, 1, settings}, want: late, force: moved},
		"other words":                       {branch: branch{[]commit{{"Mine\n\n" + ours(old), "main", old}}, 1, settings}, want: late, force: moved},
		"a person's file":                   {branch: branch{[]commit{{ours(file), "main", "check: [mine]\n"}}, 1, settings}, want: changed, force: moved},
		"another file, too":                 {branch: branch{[]commit{{ours(file), "main", file}}, 1, append(settings, forge.ChangedFile{Path: "a"})}, want: changed, force: moved},
		"a commit on top":                   {branch: branch{[]commit{{"Mine", "1", old}, {ours(file), "main", file}}, 2, settings}, name: "x", want: changed, force: moved},
		"commits of people only":            {branch: branch{[]commit{{"Mine", "1", old}, {"First", "2", ""}, {ours(file), "", file}}, 2, settings}, name: "x", want: notOurs, force: notOurs},
	} {
		for _, force := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, force %v", name, force), func(t *testing.T) {
				t.Parallel()
				g := &fakeGitHub{commits: map[string]commit{}, diff: forge.Comparison{AheadBy: row.ahead, Files: row.files}}
				for i, c := range row.commits {
					g.head = "0"
					g.commits[fmt.Sprint(i)] = c
				}
				q := Request{Target: Target{Commit: "main"}, File: []byte(file), Branch: DefaultBranch, Force: force}
				if row.name != "" {
					q.Branch = row.name
				}
				want := row.want
				if force {
					want = row.force
				}
				p := &Proposer{GitHub: g}
				early := p.MayPublish(t.Context(), Request{Target: q.Target, Branch: q.Branch, Force: force})
				got, err := p.Publish(t.Context(), q)
				switch want {
				case moved, left:
					if early != nil || err != nil || g.moved != (want == moved) || got.Updated != g.moved {
						t.Errorf("refused with %v and %v, moved %v, %+v", early, err, g.moved, got)
					}
				case late:
					if early != nil || err == nil || !strings.Contains(err.Error(), changed) || g.moved {
						t.Errorf("refused with %v and %v, moved %v", early, err, g.moved)
					}
				default:
					if early == nil || err == nil || early.Error() != err.Error() || !strings.Contains(err.Error(), want) || g.moved {
						t.Errorf("refused with %v and %v, moved %v", early, err, g.moved)
					}
				}
			})
		}
	}
}

// TestClosedPullRequestIsRefusedEarly: before the commands are tried.
func TestClosedPullRequestIsRefusedEarly(t *testing.T) {
	t.Parallel()
	for force, want := range map[bool]string{false: "pull request #4 from errand/init was closed without a merge", true: ""} {
		p := &Proposer{GitHub: &fakeGitHub{pr: &forge.PR{Number: 4}}}
		err := p.MayPublish(t.Context(), Request{Branch: DefaultBranch, Force: force})
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("force %v: got %v", force, err)
		}
	}
}

// TestRepositoryWithoutCommits: an empty repository and one without its default branch get a hint, other errors stay errors.
func TestRepositoryWithoutCommits(t *testing.T) {
	t.Parallel()
	const empty = "acme/app has no commits on main yet: push a first commit"
	for name, row := range map[string]struct {
		err  error
		want string
	}{
		"empty":             {&forge.Error{Status: 409}, empty},
		"no default branch": {fmt.Errorf("read: %w", forge.ErrNotFound), empty},
		"GitHub is down":    {&forge.Error{Status: 502}, "read the default branch"},
	} {
		p := &Proposer{GitHub: &fakeGitHub{headErr: row.err}}
		if _, err := p.Find(t.Context(), "acme/app", false); err == nil || !strings.Contains(err.Error(), row.want) {
			t.Errorf("%s: got %v", name, err)
		}
	}
}
