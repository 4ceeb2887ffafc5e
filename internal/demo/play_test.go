package demo_test

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/rs/zerolog"

	"github.com/errand-bot/errand/internal/buildtest"
	"github.com/errand-bot/errand/internal/demo"
	"github.com/errand-bot/errand/internal/fleet/local/box"
	"github.com/errand-bot/errand/internal/rsatest"
	"github.com/errand-bot/errand/internal/sim/simagent"
	"github.com/errand-bot/errand/internal/sim/simgithub"
	"github.com/errand-bot/errand/state"
)

// TestMain also runs the agent, and the part of errand-runner that creates sandboxes.
func TestMain(m *testing.M) {
	boxes := map[string]func(context.Context, []string) error{"box-supervise": box.Supervise, "box-ssh": box.ServeSSH, "box-hostkey": box.HostKey}
	if len(os.Args) > 1 && boxes[os.Args[1]] != nil {
		if err := boxes[os.Args[1]](context.Background(), os.Args[2:]); err != nil {
			fmt.Fprintln(os.Stderr, os.Args[1]+":", err)
			syscall.Exit(1)
		}
		syscall.Exit(0) // with the race detector, os.Exit waits for a second
	}
	if len(os.Args) > 1 && os.Args[1] == "simagent" {
		syscall.Exit(simagent.Main(os.Args[2:], os.Stdin, os.Stdout, os.Stderr, os.Environ())) // not os.Exit: see the roles of sandboxes
	}
	os.Exit(m.Run())
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// runner builds errand-runner.
func runner(t *testing.T) (dir string) {
	t.Helper()
	dir = t.TempDir()
	check(t, buildtest.Program(t.Context(), dir, "errand-runner"))
	return dir
}

// played is the result of a complete life.
type played struct {
	t     *testing.T
	dir   string
	world *demo.World
	res   demo.Result
	task  *state.Task
	said  []string // by the demo
	bot   []*simgithub.Comment
	// answers are the bot's replies in review threads.
	answers []string
	boxes   []os.DirEntry     // remaining sandboxes after the end, before the world is closed
	secrets map[string]string // secrets that must not be anywhere, by kind
}

func play(t *testing.T) *played {
	t.Helper()
	return playWith(t, func(*demo.Config) {})
}

// playWith plays in a world with a modified configuration.
func playWith(t *testing.T, change func(*demo.Config)) *played {
	t.Helper()
	if testing.Short() {
		t.Skip("plays a complete life")
	}
	exe, err := os.Executable()
	check(t, err)
	p := &played{t: t, dir: t.TempDir()}
	log, err := os.Create(filepath.Join(p.dir, "errand.log"))
	check(t, err)
	t.Cleanup(func() { check(t, log.Close()) })
	cfg := demo.Config{
		Dir: p.dir, BinDir: runner(t), Agent: []string{exe, "simagent"}, StandIn: true, Fast: true, Kind: "plain", Key: rsatest.Key(),
		Log: zerolog.New(log).With().Timestamp().Logger(), Version: "test",
	}
	change(&cfg)
	p.world, err = demo.New(t.Context(), cfg)
	check(t, err)
	ended := false
	t.Cleanup(func() {
		if !ended {
			_ = p.world.Close() // the test has already failed
		}
	})
	say := func(format string, args ...any) { p.said = append(p.said, fmt.Sprintf(format, args...)) }
	script := &demo.Play{World: p.world, Say: say, Wait: func(string, time.Duration) {}, Patience: 5 * time.Minute}
	if p.res, err = script.Run(t.Context()); err != nil {
		text, _ := os.ReadFile(log.Name())
		t.Fatalf("%v\n%s", err, tail(string(text), 40))
	}
	p.look()
	ended = true
	check(t, p.world.Close())
	return p
}

func tail(text string, lines int) string {
	all := strings.Split(text, "\n")
	return strings.Join(all[max(0, len(all)-lines):], "\n")
}

// remaining returns the jobs of a task, without reminders, that are left a minute after its end. One that had begun before finds out that the task
// has ended.
func (p *played) remaining(key state.TaskKey) (left []state.Job) {
	p.t.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(time.Minute); ; <-tick.C {
		jobs, err := p.world.Server.Store().Jobs(p.t.Context(), key)
		check(p.t, err)
		left = slices.DeleteFunc(jobs, func(j state.Job) bool { return !j.NotBefore.IsZero() })
		if len(left) == 0 || time.Now().After(end) {
			return left
		}
	}
}

// look records the data to check before the world ends.
func (p *played) look() {
	p.t.Helper()
	sim := p.world.GitHub
	ada := sim.As(demo.Maintainer)
	app := sim.App()
	for _, n := range []int{p.res.Issue, p.res.Pull} {
		i, err := ada.Issue(demo.Full, n)
		check(p.t, err)
		for _, c := range i.Comments {
			if c.Author == app.BotLogin {
				p.bot = append(p.bot, c)
			}
		}
		if i.Pull == nil {
			continue
		}
		if !i.Pull.Merged {
			p.t.Error("the pull request is not merged")
		}
		for _, th := range i.Pull.Threads {
			for _, c := range th.Comments {
				if c.Author == app.BotLogin {
					p.answers = append(p.answers, c.Body)
				}
			}
		}
	}
	r, err := ada.Repo(demo.Full)
	check(p.t, err)
	key := state.TaskKey{Repo: r.ID, Issue: p.res.Issue}
	for _, j := range p.remaining(key) {
		p.t.Errorf("got a remaining job after the end: %s %s, %s", j.Kind, j.Key, j.LastError)
	}
	p.task, err = p.world.Server.Store().Task(p.t.Context(), key)
	check(p.t, err)
	if p.world.Cloud == nil {
		p.boxes, err = os.ReadDir(filepath.Join(p.dir, "data", "local", "boxes"))
		check(p.t, err)
	}
	pem := strings.Split(strings.TrimSpace(string(app.PEM)), "\n")
	p.secrets = map[string]string{"the App's key": pem[len(pem)/2], "the webhook secret": app.WebhookSecret, "the model's key": demo.ModelKey, "the admin token": demo.AdminToken, "the cloud's token": demo.CloudToken}
}

// marker matches the hidden, unique part of a comment.
// folded matches the folded blocks of a comment.
var folded = regexp.MustCompile(`(?s)<details>.*?\n</details>`)

var marker = regexp.MustCompile(`<!--.*?-->`)

// TestCompleteLife plays the demo once and checks the documented results.
func TestCompleteLife(t *testing.T) {
	t.Parallel()
	p := play(t)
	t.Run("few comments", func(t *testing.T) {
		if len(p.bot) > 8 {
			t.Errorf("got %d comments by the bot outside threads", len(p.bot))
		}
		seen := map[string]bool{}
		for _, text := range append(bodies(p.bot), p.answers...) {
			text = strings.TrimSpace(marker.ReplaceAllString(text, ""))
			if seen[text] {
				t.Errorf("got a repeated comment:\n%s", text)
			}
			seen[text] = true
		}
		if len(p.answers) != 2 {
			t.Errorf("got %d answers in 2 threads", len(p.answers))
		}
	})
	t.Run("one short status comment", func(t *testing.T) {
		if p.bot[0].ID != p.task.Status.Comment {
			t.Errorf("the first comment is not the status comment")
		}
		for _, e := range append(p.bot[0].Edits, simgithub.Edit{From: p.bot[0].Body}) {
			if n := strings.Count(folded.ReplaceAllString(e.From, ""), "\n") + 1; n > 15 {
				t.Errorf("got a status comment of %d lines:\n%s", n, e.From)
			}
		}
		if len(p.bot[0].Edits) == 0 {
			t.Error("the status comment was never edited")
		}
	})
	t.Run("secrets stay here", func(t *testing.T) { p.wantNoSecrets(t) })
	t.Run("phases in order", func(t *testing.T) {
		var got []state.Phase
		for _, h := range p.task.History {
			got = append(got, h.Phase)
		}
		want := []state.Phase{
			state.PhaseQueued, state.PhasePreliminaryPlanning, state.PhaseAwaitingPreliminaryApproval, state.PhasePreliminaryPlanning,
			state.PhaseAwaitingPreliminaryApproval, state.PhasePlanning, state.PhaseAwaitingPlanApproval, state.PhaseImplementing,
			state.PhasePROpen, state.PhaseAddressingReview, state.PhasePROpen, state.PhaseDone,
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("history (-want +got):\n%s", diff)
		}
	})
	t.Run("nothing is left", func(t *testing.T) {
		if p.task.VM != nil || len(p.task.VMs) != 1 || p.task.VMs[0].EndReason == "" {
			t.Errorf("got VM %+v, ended VMs %+v", p.task.VM, p.task.VMs)
		}
		for _, b := range p.boxes {
			t.Errorf("sandbox %s is left", b.Name())
		}
	})
}

func bodies(list []*simgithub.Comment) (out []string) {
	for _, c := range list {
		out = append(out, c.Body)
	}
	return out
}

// token matches the form of GitHub's tokens.
var token = regexp.MustCompile(`gh[spou]_[A-Za-z0-9]{16,}`)

// wantNoSecrets searches everything that people or operators can see.
func (p *played) wantNoSecrets(t *testing.T) {
	t.Helper()
	texts := map[string]string{}
	for _, c := range p.bot {
		texts[fmt.Sprint("comment ", c.ID)] = c.Body
		for n, e := range c.Edits {
			texts[fmt.Sprintf("comment %d before edit %d", c.ID, n)] = e.From
		}
	}
	for n, a := range p.answers {
		texts[fmt.Sprint("answer ", n)] = a
	}
	for n, s := range p.said {
		texts[fmt.Sprint("line of the demo ", n)] = s
	}
	transcripts := 0
	err := filepath.WalkDir(p.dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || filepath.Ext(path) != ".jsonl" && filepath.Ext(path) != ".log" {
			return err
		}
		data, err := os.ReadFile(path)
		texts[path] = string(data)
		transcripts++
		return err
	})
	check(t, err)
	if transcripts < p.res.Runs {
		t.Errorf("got %d transcripts and logs of %d runs", transcripts, p.res.Runs)
	}
	for where, text := range texts {
		for what, secret := range p.secrets {
			if secret != "" && strings.Contains(text, secret) {
				t.Errorf("found %s in %s", what, where)
			}
		}
		if found := token.FindString(text); found != "" {
			t.Errorf("found a GitHub token in %s", where)
		}
	}
}

// TestWorldCanBeRestarted: the address and the stored data stay the same.
func TestWorldCanBeRestarted(t *testing.T) {
	t.Parallel()
	bin := t.TempDir()
	check(t, os.WriteFile(filepath.Join(bin, "errand-runner"), []byte("#!/bin/sh\n"), 0o700)) // no sandbox is created
	w, err := demo.New(t.Context(), demo.Config{Dir: t.TempDir(), BinDir: bin, Agent: []string{"/bin/true"}, StandIn: true, Fast: true, Kind: "plain", Key: rsatest.Key(), Log: zerolog.Nop()})
	check(t, err)
	url := w.URL
	check(t, w.Server.Store().SetFact(t.Context(), "test", []byte("kept")))
	for range 2 {
		check(t, w.Stop())
		check(t, w.Start(t.Context()))
	}
	check(t, w.Stop())
	check(t, w.Stop())
	check(t, w.Start(t.Context()))
	if got, err := w.Server.Store().Fact(t.Context(), "test"); string(got) != "kept" || err != nil || w.URL != url {
		t.Errorf("after restarts: fact %q, error %v, address %s, was %s", got, err, w.URL, url)
	}
	check(t, w.Close())
}

func TestNewReportsMissingConfiguration(t *testing.T) {
	t.Parallel()
	if w, err := demo.New(t.Context(), demo.Config{Dir: t.TempDir(), BinDir: t.TempDir(), StandIn: true, Key: rsatest.Key(), Log: zerolog.Nop()}); err == nil || w != nil || !strings.Contains(err.Error(), "errand-runner") {
		t.Errorf("got error %v", err)
	}
	if w, err := demo.New(t.Context(), demo.Config{Dir: t.TempDir(), BinDir: t.TempDir(), Script: "rules: 7", StandIn: true, Key: rsatest.Key(), Log: zerolog.Nop()}); err == nil || w != nil {
		t.Errorf("a bad script: error %v", err)
	}
}
