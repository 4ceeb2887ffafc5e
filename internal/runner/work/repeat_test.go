package work_test

import (
	"context"
	"errors"
	"path/filepath"
	"testing"
	"time"

	"github.com/gofrs/flock"

	"github.com/errand-bot/errand/internal/runner/work"
)

func TestRebaseTwice(t *testing.T) {
	t.Parallel()
	o := newOrigin(t)
	clone := t.TempDir()
	git(t, clone, "clone", "-q", o.url, ".")
	script(t, clone, "echo t > theirs; git add -A; git commit -qm Theirs; git push -q origin HEAD:refs/heads/moved")
	onto := git(t, clone, "rev-parse", "HEAD")
	for name, left := range map[string]string{
		"its answer was lost": "git fetch -q " + o.url + " moved && git rebase -q --onto " + onto + " " + o.head,
		"it was killed": "git fetch -q " + o.url + " moved && GIT_SEQUENCE_EDITOR='sed -i 1ibreak' git rebase -q -i --onto " + onto + " " + o.head +
			" && touch .git/HEAD.lock",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := preparedPlace(t, o)
			script(t, dir, "echo x > new; git add new; git commit -qm One; "+left)
			got, err := work.Rebase(testContext(t), work.RebaseSpec{Dir: dir, Source: work.Source{URL: o.url, Ref: "refs/heads/moved"}, Base: o.head, Onto: onto, Message: "Work"})
			if err != nil || !got.OK {
				t.Fatalf("%+v, %v", got, err)
			}
			if s := git(t, dir, "log", "--format=%s", onto+".."+got.Head); s != "One" || got.Head != git(t, dir, "rev-parse", "HEAD") {
				t.Errorf("the commits are %q", s)
			}
			if b := git(t, dir, "branch", "--show-current"); b != "errand/1-x" {
				t.Errorf("the branch is %q", b)
			}
		})
	}
}

// Of two commands on one workspace the second waits for the first, whose orchestrator has died.
func TestCommandsOnAWorkspaceWaitForEachOther(t *testing.T) {
	t.Parallel()
	o := newOrigin(t)
	dir := preparedPlace(t, o)
	lock := flock.New(filepath.Join(filepath.Dir(dir), "."+filepath.Base(dir)+".lock"))
	if err := lock.Lock(); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(testContext(t), 100*time.Millisecond)
	defer cancel()
	again := work.ResetSpec{Dir: dir, Branch: "errand/1-x", Head: o.head}
	if _, err := work.Reset(ctx, again); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("a second command did not wait: %v", err)
	}
	if err := lock.Unlock(); err != nil {
		t.Fatal(err)
	}
	if _, err := work.Reset(testContext(t), again); err != nil {
		t.Errorf("after the first: %v", err)
	}
}
