package e2e

import (
	"context"
	"io"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/errand-bot/errand/internal/demo"
	"github.com/errand-bot/errand/internal/setup/setuptest"
	"github.com/errand-bot/errand/internal/sim/simgithub"
)

// TestTrialOfTheSetup does what docs/install.md says for those who have no account: `errand setup --answers` and `errand serve`, with
// production's intervals, and an issue from its assignment to the merged pull request. The agent works in an isolated sandbox.
func TestTrialOfTheSetup(t *testing.T) {
	t.Parallel()
	if !common.kinds["bwrap"] && !common.kinds["userns"] {
		t.Skip("this host cannot isolate agents")
	}
	program, err := errandProgram()
	if err != nil {
		t.Fatal(err)
	}
	trial, err := demo.NewTrial(t.TempDir(), zerolog.Nop())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := trial.Close(); err != nil {
			t.Error(err)
		}
	})
	ctx, stop := context.WithTimeout(t.Context(), 10*time.Minute)
	defer stop()
	setup := []string{"setup", "--dir", trial.Folder, "--answers", trial.Answers, "--skip", "service"}
	screen := &setuptest.Screen{}
	first := start(ctx, t, screen, program, setup...)
	setuptest.Play(ctx, t, screen, demo.Maintainer, demo.Full)
	if err := first.Wait(); err != nil {
		t.Fatalf("%v\n%s", err, screen)
	}
	config := filepath.Join(trial.Folder, "config.yml")
	wantAll(t, screen.String(), "0 failed", "serve -c "+config, "assign an issue to "+demo.Machine, "http://"+trial.Listen+"/status", program+" setup --dir "+trial.Folder)

	log := &setuptest.Screen{}
	server := start(ctx, t, log, program, "serve", "-c", config)
	if log.Await(ctx, regexp.MustCompile(`"message":"(errand is ready)"`)) == "" {
		t.Fatalf("errand did not start:\n%s", log)
	}
	journey(ctx, t, trial.GitHub.As(demo.Maintainer), trial.GitHub.App().BotLogin)

	second := &setuptest.Screen{}
	if err := start(ctx, t, second, program, setup...).Wait(); err != nil {
		t.Fatalf("%v\n%s", err, second)
	}
	wantAll(t, second.String(), "0 failed", "and errand is running", "arrived at 20")
	if err := server.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := server.Wait(); err != nil {
		t.Fatalf("%v\n%s", err, log)
	}
}

// start starts errand's program, which ends with the test.
func start(ctx context.Context, t *testing.T, out io.Writer, program string, args ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Stdout, cmd.Stderr, cmd.WaitDelay = out, out, 30*time.Second
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return cmd
}

// waitFor waits for a value that is not nil; missing is why there is none yet.
func waitFor[T any](ctx context.Context, t *testing.T, find func() (found *T, missing string)) *T {
	t.Helper()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		found, missing := find()
		if found != nil {
			return found
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatal(missing)
		}
	}
}

// wantAll checks that a text has all parts.
func wantAll(t *testing.T, text string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if !strings.Contains(text, part) {
			t.Errorf("%q is missing in:\n%s", part, text)
		}
	}
}

// journey is what a person does with the issue of a trial.
func journey(ctx context.Context, t *testing.T, ada simgithub.Person, bot string) {
	t.Helper()
	const issue = 1
	check := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	// said returns the bot's first comment with a text on the issue, once there is one.
	said := func(text string) *simgithub.Comment {
		t.Helper()
		return waitFor(ctx, t, func() (*simgithub.Comment, string) {
			i, err := ada.Issue(demo.Full, issue)
			check(err)
			var all strings.Builder
			for _, c := range i.Comments {
				if c.Author == bot && strings.Contains(c.Body, text) {
					return c, ""
				}
				all.WriteString(c.Author + ": " + c.Body + "\n")
			}
			return nil, "no comment has " + text + ":\n" + all.String()
		})
	}
	check(ada.Assign(demo.Full, issue, demo.Machine))
	check(ada.React(demo.Full, said("## Preliminary plan, revision 1").ID, "+1"))
	check(ada.React(demo.Full, said("## Plan, revision 1").ID, "+1"))
	opened := regexp.MustCompile(`/pull/(\d+)`).FindStringSubmatch(said("is open: ").Body)
	if len(opened) == 0 || opened[1] != "2" {
		t.Fatalf("got pull request %q", opened)
	}
	const pull = 2
	_, err := ada.Review(demo.Full, pull, simgithub.NewReview{Event: "REQUEST_CHANGES", Body: "One test is missing.", Comments: []simgithub.NewReviewComment{
		{Path: "test.sh", Line: 12, Body: "Please test the empty title, too."},
	}})
	check(err)
	waitFor(ctx, t, func() (*simgithub.ReviewComment, string) {
		i, err := ada.Issue(demo.Full, pull)
		check(err)
		for _, c := range i.Pull.Threads[0].Comments {
			if c.Author == bot && strings.Contains(c.Body, "I added a test for the empty title") {
				return c, ""
			}
		}
		return nil, "the thread has no answer"
	})
	waitFor(ctx, t, func() (*simgithub.Review, string) {
		i, err := ada.Issue(demo.Full, pull)
		check(err)
		for _, r := range i.Pull.Reviews {
			if r.Author == bot && r.State == simgithub.ReviewCommented {
				wantAll(t, r.Body, "Other feedback:\n- [review](", "): I added a test for the empty title")
				return r, ""
			}
		}
		return nil, "the text of the review has no answer"
	})
	_, err = ada.Review(demo.Full, pull, simgithub.NewReview{Event: "APPROVE"})
	check(err)
	check(ada.Merge(demo.Full, pull, simgithub.Merge{}))
	said("is merged; the task is done")
	for path, want := range map[string]string{"slug.sh": "s/-$//", "test.sh": "check '' ''"} {
		data, err := ada.File(demo.Full, "main", path)
		check(err)
		wantAll(t, string(data), want)
	}
}
