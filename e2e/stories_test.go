package e2e

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/errand-bot/errand/internal/demo"
	"github.com/errand-bot/errand/internal/heavytest"
	"github.com/errand-bot/errand/state"
)

// patience is the timeout of a condition, sufficient for a slow and busy machine with the race detector.
const patience = 5 * time.Minute

// TestStories plays every third of the stories that are not heavy, because most of a story is common to all, and with the race
// detector every fourth. With -run Stories, as in `go test -run TestStories/NAME`, it plays all of them.
func TestStories(t *testing.T) {
	_, light := stories(t)
	every := third
	switch {
	case strings.Contains(flag.Lookup("test.run").Value.String(), "Stories"):
		every = 1
	case heavytest.Raced:
		every = 4
	}
	some, rest := sample(light, every)
	t.Logf("%d of %d stories; see TestHeavyStories", len(some), len(some)+len(rest))
	play(t, some)
}

// TestHeavyStories plays the stories that begin with "[!full] skip", and those that TestStories leaves out.
func TestHeavyStories(t *testing.T) {
	heavytest.Mark(t)
	heavy, light := stories(t)
	_, rest := sample(light, third)
	play(t, append(heavy, rest...))
}

const third = 3

// sample returns one of every n stories, and the others.
func sample(all []string, n int) (some, rest []string) {
	for i, name := range all {
		if i%n == 0 {
			some = append(some, name)
		} else {
			rest = append(rest, name)
		}
	}
	return some, rest
}

func play(t *testing.T, files []string) {
	t.Helper()
	if common.Err != nil {
		t.Fatal(common.Err)
	}
	testscript.Run(t, testscript.Params{
		Files: files, RequireUniqueNames: true, Setup: setup, Condition: condition, UpdateScripts: os.Getenv("UPDATE") != "",
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"world": world, "server": serverCmd, "as": as, "await": await, "expect": expect, "settle": settle, "release": release,
			"comments": comments, "prompts": prompts, "transcripts": transcripts, "hooks": hooks, "fault": fault, "plan": planCmd,
			"box": boxCmd, "branch": branchCmd, "check": checkCmd, "script": scriptCmd, "repo": repoCmd, "page": page, "clock": clock,
			"hostile": hostile, "logs": logs, "sleep": sleepCmd, "key": keyCmd, "backup": backupCmd, "restore": restoreCmd, "writes": writesCmd,
			"adopt": adopt, "operator": operator, "drain": drainCmd, "errand": errandCmd, "verify": verifyCmd, "texts": textsCmd, "stolen": stolen, "visit": visit, "press": press, "revoke": revoke, "large": large, "submodule": submodule,
		},
	})
}

// stories lists the stories, long ones and others.
func stories(t *testing.T) (heavy, light []string) {
	t.Helper()
	all, err := filepath.Glob("testdata/stories/*.txtar")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range all {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if bytes.Contains(text, []byte("\n"+onlyFull)) || bytes.HasPrefix(text, []byte(onlyFull)) {
			heavy = append(heavy, name)
		} else {
			light = append(light, name)
		}
	}
	if len(heavy) == 0 || len(light) == 0 {
		t.Fatalf("%d stories begin with %q, %d do not", len(heavy), onlyFull, len(light))
	}
	return heavy, light
}

// onlyFull is the first line of a heavy story.
const onlyFull = "[!full] skip"

// condition evaluates [full], whether heavy stories are played, and [bwrap] and [userns], whether such sandboxes work
// here.
func condition(cond string) (bool, error) {
	switch cond {
	case "full":
		return os.Getenv(heavytest.Var) != "", nil
	case "bwrap", "userns":
		return common.kinds[cond], nil
	}
	return false, fmt.Errorf("unknown condition %q", cond)
}

// story is the state of one script.
type story struct {
	writes map[string]int // at the mark, by route
	dir    string         // of the world
	w      *demo.World
	child  *child
	full   string // the repository's name, OWNER/NAME
	issue  int    // the default issue of commands
	log    *os.File
	quiet  bool // errors in the log are expected

	hostile hostility
	bots    map[string]bool
	moved   map[int64]bool    // comments that were moved when their issue was transferred
	uploads map[string]string // addresses by file name

	browsers map[string]*browser // by person
}

type key struct{}

// of returns the story of a command.
func of(ts *testscript.TestScript) *story { return ts.Value(key{}).(*story) }

// setup creates the story and registers its clean-up and final checks.
func setup(env *testscript.Env) error {
	s := &story{full: demo.Full, dir: filepath.Join(env.WorkDir, ".world"), bots: map[string]bool{}, moved: map[int64]bool{}, uploads: map[string]string{}, browsers: map[string]*browser{}}
	env.Values[key{}] = s
	env.Setenv("BOT", "@errand")
	tb, ok := env.T().(testing.TB)
	if !ok {
		return errors.New("stories need a testing.TB")
	}
	env.Defer(func() {
		if s.w == nil {
			return
		}
		if tb.Failed() {
			tb.Log(s.report())
		} else {
			for _, p := range s.invariants() {
				tb.Errorf("invariant: %s", p)
			}
			if tb.Failed() {
				tb.Log(s.report())
			}
		}
		if err := s.close(); err != nil {
			tb.Errorf("end the world: %v", err)
		}
	})
	return nil
}

// close ends everything that the story started.
func (s *story) close() error {
	var errs []error
	if s.child != nil {
		errs = append(errs, s.child.kill())
	}
	errs = append(errs, s.w.Close(), s.log.Close())
	return errors.Join(errs...)
}

// report logs the final state of a failed story.
func (s *story) report() string {
	var b strings.Builder
	for _, t := range s.tasks() {
		fmt.Fprintf(&b, "task %s: %s, step %s, resume %s\n", t.Key, t.Phase, t.Step, t.Resume)
		for _, h := range t.History {
			fmt.Fprintf(&b, "  %s %s: %s\n", h.At.Format("05.000"), h.Phase, h.Reason)
		}
		if t.End != nil {
			fmt.Fprintf(&b, "  end: %+v\n", *t.End)
		}
		if t.Waiting != nil {
			fmt.Fprintf(&b, "  waiting: %+v\n", *t.Waiting)
		}
		for _, r := range append(append([]state.Run(nil), t.Runs...), active(t)...) {
			fmt.Fprintf(&b, "  run %s %s %s: %s %s %s\n", r.ID, r.Kind, r.State, r.Status, r.Class, r.Message)
		}
		for _, f := range t.Feedback {
			fmt.Fprintf(&b, "  feedback %s %s taken %q: %.100q\n", f.ID, f.Kind, f.TakenBy, f.Body)
		}
		for _, j := range s.jobs(t.Key) {
			fmt.Fprintf(&b, "  job %s %s %s attempt %d not before %s: %s\n", j.Kind, j.Key, j.State, j.Attempt, j.NotBefore.Format("15:04:05"), j.LastError)
		}
	}
	sn := s.w.GitHub.Snapshot()
	if r, ok := sn.Repo(s.full); ok {
		for _, n := range numbers(r) {
			i := r.Issues[n]
			fmt.Fprintf(&b, "--- #%d %s by %s (%s)\n", n, i.Title, i.Author, i.State)
			for _, c := range i.Comments {
				fmt.Fprintf(&b, "@%s (%d):\n%s\n\n", c.Author, c.ID, indent(c.Body))
			}
		}
	}
	for _, line := range s.logLines() {
		if strings.Contains(line, `"level":"error"`) || strings.Contains(line, `"level":"warn"`) {
			b.WriteString(line + "\n")
		}
	}
	return b.String()
}

func active(t *state.Task) []state.Run {
	if t.Run == nil {
		return nil
	}
	return []state.Run{*t.Run}
}

func indent(text string) string { return "    " + strings.ReplaceAll(text, "\n", "\n    ") }

// logLines returns errand's log so far.
func (s *story) logLines() []string {
	data, err := os.ReadFile(s.log.Name())
	if err != nil {
		return []string{err.Error()}
	}
	return strings.Split(strings.TrimSpace(string(data)), "\n")
}
